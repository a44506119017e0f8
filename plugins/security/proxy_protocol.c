/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy_protocol.h"

static const mk_str v1_begin = MK_STR_INIT("PROXY ");
static const mk_str v2_begin = MK_STR_INIT("\r\n\r\n\0\r\nQUIT\n");

static int set_proxy_error(struct security_proxy_header *out, const char *error)
{
    out->wrong = error;
    return -1;
}

/* Returns whether the input so far is compatible with this prefix. */
static bool may_have_prefix(mk_str in, mk_str begin)
{
    return mk_str_starts(in.len < begin.len ? begin : in, in.len < begin.len ? in : begin);
}

/* ---- Version 1: a line of text ---- */

static bool parse_port(mk_str text, uint16_t *port)
{
    uint64_t n;
    if (!mk_num_parse(text, &n) || n > UINT16_MAX || (text.len > 1 && text.p[0] == '0'))
        return false;
    *port = (uint16_t)n;
    return true;
}

/* Parses an address of the announced family, without a port. */
static bool parse_address(mk_str text, bool v6, struct mk_addr *out)
{
    size_t colon = mk_str_find(text, ':');
    bool looks_v6 = colon != MK_STR_NONE && colon != mk_str_find_last(text, ':');
    bool odd = text.len == 0 || text.p[0] == '[' || (colon != MK_STR_NONE) != v6 || looks_v6 != v6;
    return !odd && mk_addr_parse(text, out);
}

static int parse_v1_addresses(mk_str rest, bool v6, int length, struct security_proxy_header *out)
{
    struct mk_addr local;
    mk_str from = mk_str_cut(&rest, ' '), to = mk_str_cut(&rest, ' '), from_port = mk_str_cut(&rest, ' ');
    uint16_t local_port;
    if (!parse_address(from, v6, &out->peer) || !parse_address(to, v6, &local))
        return set_proxy_error(out, "PROXY header: address does not match its family");
    if (!parse_port(from_port, &out->peer.port) || !rest.p || !parse_port(rest, &local_port))
        return set_proxy_error(out, "PROXY header: invalid port");
    out->has_peer = true;
    return length;
}

static int parse_v1_line(mk_str line, int length, struct security_proxy_header *out)
{
    mk_str rest = mk_str_skip(line, v1_begin.len), family = mk_str_cut(&rest, ' ');
    if (mk_str_eq(family, MK_STR("UNKNOWN")))
        return length; /* the rest of the line is ignored */
    if (mk_str_eq(family, MK_STR("TCP4")))
        return parse_v1_addresses(rest, false, length, out);
    if (mk_str_eq(family, MK_STR("TCP6")))
        return parse_v1_addresses(rest, true, length, out);
    return set_proxy_error(out, "PROXY header: unknown address family, not TCP4, TCP6 or UNKNOWN");
}

static int parse_v1(mk_str in, struct security_proxy_header *out)
{
    mk_str seen = mk_str_first(in, SECURITY_PROXY_V1_MAX);
    size_t end = mk_str_find(seen, '\n');
    if (end == MK_STR_NONE && seen.len < SECURITY_PROXY_V1_MAX)
        return 0;
    if (end == MK_STR_NONE)
        return set_proxy_error(out, "PROXY header: line exceeds 107 bytes");
    if (seen.p[end - 1] != '\r')
        return set_proxy_error(out, "PROXY header: line does not end with CR LF");
    return parse_v1_line(mk_str_first(seen, end - 1), (int)end + 1, out);
}

/* ---- Version 2: bytes ---- */

enum {
    V2_HEAD = 16,   /* signature, command, family, length */
    V2_VERSION = 2, /* upper half of the command byte */
    V2_LOCAL = 0,   /* lower half of the command byte: the proxy itself connects */
    V2_PROXY = 1,   /* lower half of the command byte: the proxy forwards a client */
    V2_UNSPEC = 0,  /* address families, in the upper half of the byte after the command */
    V2_INET = 1,
    V2_INET6 = 2,
    V2_UNIX = 3,
    V2_DGRAM = 2, /* the largest socket type, which is in the lower half of that byte */
    V2_TLV_HEAD = 3,
    V2_TLV_CRC32C = 3,
    V2_TLV_SSL = 0x20,
    V2_SSL_SIZE = 5, /* minimum size: a byte of flags, and the result of verifying the certificate */
    V2_SSL_CLIENT = 1,
    V2_CRC_SIZE = 4,
};

static unsigned read_u8(mk_str s, size_t at)
{
    return (unsigned char)s.p[at];
}

static unsigned read_u16(mk_str s, size_t at)
{
    return read_u8(s, at) << 8 | read_u8(s, at + 1);
}

#define CRC32C_POLYNOMIAL 0x82f63b78u

/* Updates a CRC-32C (RFC 9260, appendix A), which is initially 0. Computing it bit by bit is fast enough for
 * a few hundred bytes per connection, and only if a proxy sends a checksum. */
static uint32_t crc32c(uint32_t before, mk_str text)
{
    uint32_t crc = ~before;
    for (size_t i = 0; i < text.len; i++) {
        crc ^= (unsigned char)text.p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? CRC32C_POLYNOMIAL : 0);
    }
    return ~crc;
}

/* The checksum covers the whole header, with zeroes in place of the checksum itself. */
static bool checksum_matches(mk_str header, size_t at)
{
    uint32_t told = (uint32_t)read_u16(header, at) << 16 | read_u16(header, at + 2);
    uint32_t crc = crc32c(0, mk_str_first(header, at));
    crc = crc32c(crc, MK_STR("\0\0\0\0"));
    return crc32c(crc, mk_str_skip(header, at + V2_CRC_SIZE)) == told;
}

/* Parses the fields after the addresses to determine whether the client uses TLS. All fields must be
 * well-formed. Returns an error text or NULL. */
static const char *parse_tlvs(mk_str header, size_t at, struct security_proxy_header *out)
{
    while (at < header.len) {
        size_t left = header.len - at, size = left < V2_TLV_HEAD ? left : read_u16(header, at + 1);
        if (left < V2_TLV_HEAD || size > left - V2_TLV_HEAD)
            return "PROXY header: truncated TLV";
        bool is_sum = read_u8(header, at) == V2_TLV_CRC32C;
        if (is_sum && (size != V2_CRC_SIZE || !checksum_matches(header, at + V2_TLV_HEAD)))
            return "PROXY header: checksum mismatch";
        if (read_u8(header, at) == V2_TLV_SSL && size < V2_SSL_SIZE)
            return "PROXY header: truncated TLS information";
        if (read_u8(header, at) == V2_TLV_SSL)
            out->is_secure = read_u8(header, at + V2_TLV_HEAD) & V2_SSL_CLIENT;
        at += V2_TLV_HEAD + size;
    }
    return NULL;
}

static void set_v2_addr(mk_str header, unsigned family, struct security_proxy_header *out)
{
    static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};
    struct mk_addr *p = &out->peer;
    out->has_peer = family != V2_UNSPEC;
    p->is_unix = family == V2_UNIX;
    if (family == V2_INET) {
        memcpy(p->ip, v4, sizeof v4);
        memcpy(p->ip + sizeof v4, header.p + V2_HEAD, 4);
        p->port = (uint16_t)read_u16(header, V2_HEAD + 8);
    } else if (family == V2_INET6) {
        memcpy(p->ip, header.p + V2_HEAD, 16);
        p->port = (uint16_t)read_u16(header, V2_HEAD + 32);
    }
}

static int parse_v2_header(mk_str header, struct security_proxy_header *out)
{
    static const size_t sizes[] = {[V2_UNSPEC] = 0, [V2_INET] = 12, [V2_INET6] = 36, [V2_UNIX] = 216};
    unsigned command = read_u8(header, v2_begin.len), kind = read_u8(header, v2_begin.len + 1);
    unsigned family = kind >> 4;
    if ((command & 15) == V2_LOCAL)
        return (int)header.len; /* the rest of the header is ignored */
    if (family > V2_UNIX || (kind & 15) > V2_DGRAM)
        return set_proxy_error(out, "PROXY header: unknown address family");
    if (header.len - V2_HEAD < sizes[family])
        return set_proxy_error(out, "PROXY header: too short for its addresses");
    const char *wrong = family ? parse_tlvs(header, V2_HEAD + sizes[family], out) : NULL;
    if (wrong)
        return set_proxy_error(out, wrong);
    set_v2_addr(header, family, out);
    return (int)header.len;
}

static int parse_v2(mk_str in, struct security_proxy_header *out)
{
    if (in.len > v2_begin.len) {
        unsigned command = read_u8(in, v2_begin.len);
        if (command >> 4 != V2_VERSION || (command & 15) > V2_PROXY)
            return set_proxy_error(out, "PROXY header: unknown version or command");
    }
    if (in.len < V2_HEAD)
        return 0;
    size_t length = V2_HEAD + read_u16(in, v2_begin.len + 2);
    if (length > SECURITY_PROXY_V2_MAX)
        return set_proxy_error(out, "PROXY header: exceeds 8192 bytes");
    return in.len < length ? 0 : parse_v2_header(mk_str_first(in, length), out);
}

int security_proxy_header_parse(mk_str in, struct security_proxy_header *out)
{
    *out = (struct security_proxy_header){0};
    if (may_have_prefix(in, v2_begin))
        return in.len < v2_begin.len ? 0 : parse_v2(in, out);
    if (may_have_prefix(in, v1_begin))
        return in.len < v1_begin.len ? 0 : parse_v1(in, out);
    return set_proxy_error(out, "the connection does not begin with a PROXY header");
}

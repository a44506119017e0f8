/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy.h"

static const mk_str v1_begin = MK_STR_INIT("PROXY ");
static const mk_str v2_begin = MK_STR_INIT("\r\n\r\n\0\r\nQUIT\n");

static int fail(struct security_proxy *out, const char *why)
{
    out->wrong = why;
    return -1;
}

/* Can it still become what begins so? */
static bool may_begin(mk_str in, mk_str begin)
{
    return mk_str_starts(in.len < begin.len ? begin : in, in.len < begin.len ? in : begin);
}

/* ---- Version 1: a line of text ---- */

static bool is_port(mk_str text, uint16_t *port)
{
    uint64_t n;
    if (!mk_num_parse(text, &n) || n > UINT16_MAX || (text.len > 1 && text.p[0] == '0'))
        return false;
    *port = (uint16_t)n;
    return true;
}

/* An address alone, of the family that was announced. */
static bool is_address(mk_str text, bool v6, struct mk_addr *out)
{
    size_t colon = mk_str_find(text, ':');
    bool looks_v6 = colon != MK_STR_NONE && colon != mk_str_find_last(text, ':');
    bool odd = text.len == 0 || text.p[0] == '[' || (colon != MK_STR_NONE) != v6 || looks_v6 != v6;
    return !odd && mk_addr_parse(text, out);
}

static int read_addresses(mk_str rest, bool v6, int length, struct security_proxy *out)
{
    struct mk_addr local;
    mk_str from = mk_str_cut(&rest, ' '), to = mk_str_cut(&rest, ' '), from_port = mk_str_cut(&rest, ' ');
    uint16_t local_port;
    if (!is_address(from, v6, &out->peer) || !is_address(to, v6, &local))
        return fail(out, "an address of its line is none of the announced family");
    if (!is_port(from_port, &out->peer.port) || !rest.p || !is_port(rest, &local_port))
        return fail(out, "a port of its line is none");
    out->has_peer = true;
    return length;
}

static int read_line(mk_str line, int length, struct security_proxy *out)
{
    mk_str rest = mk_str_skip(line, v1_begin.len), family = mk_str_cut(&rest, ' ');
    if (mk_str_eq(family, MK_STR("UNKNOWN")))
        return length; /* ignore the rest of the line */
    if (mk_str_eq(family, MK_STR("TCP4")))
        return read_addresses(rest, false, length, out);
    if (mk_str_eq(family, MK_STR("TCP6")))
        return read_addresses(rest, true, length, out);
    return fail(out, "the family of its line is none of TCP4, TCP6 and UNKNOWN");
}

static int parse_v1(mk_str in, struct security_proxy *out)
{
    mk_str seen = mk_str_first(in, SECURITY_PROXY_V1_MAX);
    size_t end = mk_str_find(seen, '\n');
    if (end == MK_STR_NONE && seen.len < SECURITY_PROXY_V1_MAX)
        return 0;
    if (end == MK_STR_NONE)
        return fail(out, "its line is longer than 107 bytes");
    if (seen.p[end - 1] != '\r')
        return fail(out, "its line does not end with CR LF");
    return read_line(mk_str_first(seen, end - 1), (int)end + 1, out);
}

/* ---- Version 2: bytes ---- */

enum {
    V2_HEAD = 16,   /* signature, command, family, length */
    V2_VERSION = 2, /* the upper half of the command */
    V2_LOCAL = 0,   /* the lower: the proxy speaks for itself, */
    V2_PROXY = 1,   /* or for a client */
    V2_UNSPEC = 0,  /* families: the upper half */
    V2_INET = 1,
    V2_INET6 = 2,
    V2_UNIX = 3,
    V2_DGRAM = 2, /* the largest kind of socket: the lower half */
    V2_TLV_HEAD = 3,
    V2_TLV_CRC32C = 3,
    V2_TLV_SSL = 0x20,
    V2_SSL_SIZE = 5, /* at least: a byte of flags, and how the client's certificate was verified */
    V2_SSL_CLIENT = 1,
    V2_CRC_SIZE = 4,
};

static unsigned byte_at(mk_str s, size_t at)
{
    return (unsigned char)s.p[at];
}

static unsigned short_at(mk_str s, size_t at)
{
    return byte_at(s, at) << 8 | byte_at(s, at + 1);
}

#define CRC32C_POLYNOMIAL 0x82f63b78u

/* The checksum of RFC 9260, appendix A, over texts that follow each other, from 0 on; one bit after the other: it is for a few
 * hundred bytes, once a connection, and only where a proxy asks. */
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

/* The checksum is of the whole header, with zeroes in its own place. */
static bool is_sum_right(mk_str header, size_t at)
{
    uint32_t told = (uint32_t)short_at(header, at) << 16 | short_at(header, at + 2);
    uint32_t crc = crc32c(0, mk_str_first(header, at));
    crc = crc32c(crc, MK_STR("\0\0\0\0"));
    return crc32c(crc, mk_str_skip(header, at + V2_CRC_SIZE)) == told;
}

/* What follows the addresses: whether the client speaks TLS. All of it must be well made: what is wrong with it,
 * or NULL. */
static const char *read_extras(mk_str header, size_t at, struct security_proxy *out)
{
    while (at < header.len) {
        size_t left = header.len - at, size = left < V2_TLV_HEAD ? left : short_at(header, at + 1);
        if (left < V2_TLV_HEAD || size > left - V2_TLV_HEAD)
            return "an extra field of its header is cut off";
        bool is_sum = byte_at(header, at) == V2_TLV_CRC32C;
        if (is_sum && (size != V2_CRC_SIZE || !is_sum_right(header, at + V2_TLV_HEAD)))
            return "the checksum of its header is wrong";
        if (byte_at(header, at) == V2_TLV_SSL && size < V2_SSL_SIZE)
            return "what its header says about TLS is cut off";
        if (byte_at(header, at) == V2_TLV_SSL)
            out->is_secure = byte_at(header, at + V2_TLV_HEAD) & V2_SSL_CLIENT;
        at += V2_TLV_HEAD + size;
    }
    return NULL;
}

static void set_peer(mk_str header, unsigned family, struct security_proxy *out)
{
    static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};
    struct mk_addr *p = &out->peer;
    out->has_peer = family != V2_UNSPEC;
    p->is_unix = family == V2_UNIX;
    if (family == V2_INET) {
        memcpy(p->ip, v4, sizeof v4);
        memcpy(p->ip + sizeof v4, header.p + V2_HEAD, 4);
        p->port = (uint16_t)short_at(header, V2_HEAD + 8);
    } else if (family == V2_INET6) {
        memcpy(p->ip, header.p + V2_HEAD, 16);
        p->port = (uint16_t)short_at(header, V2_HEAD + 32);
    }
}

static int read_header(mk_str header, struct security_proxy *out)
{
    static const size_t sizes[] = {[V2_UNSPEC] = 0, [V2_INET] = 12, [V2_INET6] = 36, [V2_UNIX] = 216};
    unsigned command = byte_at(header, v2_begin.len), kind = byte_at(header, v2_begin.len + 1);
    unsigned family = kind >> 4;
    if ((command & 15) == V2_LOCAL)
        return (int)header.len; /* nothing else of it counts */
    if (family > V2_UNIX || (kind & 15) > V2_DGRAM)
        return fail(out, "the family of its header is unknown");
    if (header.len - V2_HEAD < sizes[family])
        return fail(out, "its header is too short for its addresses");
    const char *wrong = family ? read_extras(header, V2_HEAD + sizes[family], out) : NULL;
    if (wrong)
        return fail(out, wrong);
    set_peer(header, family, out);
    return (int)header.len;
}

static int parse_v2(mk_str in, struct security_proxy *out)
{
    if (in.len > v2_begin.len) {
        unsigned command = byte_at(in, v2_begin.len);
        if (command >> 4 != V2_VERSION || (command & 15) > V2_PROXY)
            return fail(out, "the version or the command of its header is unknown");
    }
    if (in.len < V2_HEAD)
        return 0;
    size_t length = V2_HEAD + short_at(in, v2_begin.len + 2);
    if (length > SECURITY_PROXY_V2_MAX)
        return fail(out, "its header is longer than 8192 bytes");
    return in.len < length ? 0 : read_header(mk_str_first(in, length), out);
}

int security_proxy_parse(mk_str in, struct security_proxy *out)
{
    *out = (struct security_proxy){0};
    if (may_begin(in, v2_begin))
        return in.len < v2_begin.len ? 0 : parse_v2(in, out);
    if (may_begin(in, v1_begin))
        return in.len < v1_begin.len ? 0 : parse_v1(in, out);
    return fail(out, "it did not begin with one");
}

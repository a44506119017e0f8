/* SPDX-License-Identifier: Apache-2.0 */
/* Parses networks and client addresses, and tests whether a network contains an address. */
#include <arpa/inet.h>

#include "base/num.h"
#include "os/sockaddr.h"

/* Lengths in bits: the prefix of IPv4-mapped addresses, and a whole address. */
enum { V4_BEFORE = 96, BITS = 128 };

static bool to_cstr(mk_str text, char buf[INET6_ADDRSTRLEN])
{
    if (text.len >= INET6_ADDRSTRLEN || mk_str_find(text, '\0') != MK_STR_NONE)
        return false;
    if (text.len)
        memcpy(buf, text.p, text.len);
    buf[text.len] = '\0';
    return true;
}

static const uint8_t v4_prefix[V4_BEFORE / 8] = {[10] = 0xff, [11] = 0xff};

static bool parse_v4(mk_str text, uint8_t ip[16])
{
    char buf[INET6_ADDRSTRLEN];
    memcpy(ip, v4_prefix, sizeof v4_prefix);
    return to_cstr(text, buf) && inet_pton(AF_INET, buf, ip + sizeof v4_prefix) == 1;
}

static bool parse_v6(mk_str text, uint8_t ip[16])
{
    char buf[INET6_ADDRSTRLEN];
    return to_cstr(text, buf) && inet_pton(AF_INET6, buf, ip) == 1;
}

/* Parses the port after an address, such as ":8080". An empty text is valid: there is no port. */
static bool parse_port(mk_str text, uint16_t *port)
{
    uint64_t n = 0;
    if (text.len && (text.p[0] != ':' || !mk_num_parse(mk_str_skip(text, 1), &n) || n > UINT16_MAX))
        return false;
    *port = (uint16_t)n;
    return true;
}

bool mk_addr_parse(mk_str text, struct mk_addr *out)
{
    *out = (struct mk_addr){0};
    if (mk_str_starts(text, MK_STR("["))) {
        size_t close = mk_str_find(text, ']');
        return close != MK_STR_NONE && parse_v6(mk_str_of(text.p + 1, close - 1), out->ip) &&
               parse_port(mk_str_skip(text, close + 1), &out->port);
    }
    size_t colon = mk_str_find(text, ':');
    if (colon != mk_str_find_last(text, ':'))
        return parse_v6(text, out->ip);
    return parse_v4(mk_str_first(text, colon), out->ip) && parse_port(mk_str_skip(text, colon), &out->port);
}

/* Parses a dotted netmask: one bits followed by zero bits. */
static bool parse_mask(mk_str text, uint64_t *bits)
{
    uint8_t ip[16];
    uint32_t mask;
    if (!parse_v4(text, ip))
        return false;
    memcpy(&mask, ip + 12, sizeof mask);
    uint32_t zeroes = ~ntohl(mask);
    *bits = 32;
    for (uint32_t rest = zeroes; rest; rest >>= 1)
        --*bits;
    return (zeroes & (zeroes + 1)) == 0;
}

static bool is_zero_after(const uint8_t ip[16], unsigned bits)
{
    for (unsigned i = bits; i < BITS; i++)
        if (ip[i / 8] & (0x80u >> i % 8))
            return false;
    return true;
}

bool mk_network_parse(mk_str text, struct mk_network *out)
{
    mk_str length = text, address = mk_str_cut(&length, '/');
    uint64_t bits = BITS;
    *out = (struct mk_network){.is_unix = mk_str_eq(text, MK_STR("unix:")),
                               .is_all = mk_str_eq(text, MK_STR("all"))};
    if (out->is_unix || out->is_all)
        return true;
    if (parse_v6(address, out->ip)) {
        if (length.p && !mk_num_parse(length, &bits))
            return false;
    } else if (parse_v4(address, out->ip)) {
        if (length.p && !mk_num_parse(length, &bits) && !parse_mask(length, &bits))
            return false;
        if (length.p && bits > BITS - V4_BEFORE)
            return false;
        bits += length.p ? V4_BEFORE : 0;
    } else {
        return false;
    }
    if (bits > BITS || !is_zero_after(out->ip, (unsigned)bits))
        return false;
    out->bits = (uint8_t)bits;
    return true;
}

bool mk_network_contains(const struct mk_network *n, const struct mk_addr *p)
{
    if (n->is_all)
        return true;
    if (n->is_unix || p->is_unix)
        return n->is_unix && p->is_unix;
    if (n->bits < V4_BEFORE && memcmp(p->ip, v4_prefix, sizeof v4_prefix) == 0)
        return false; /* an IPv6 network never matches an IPv4 client */
    unsigned whole = n->bits / 8, rest = n->bits % 8;
    if (memcmp(n->ip, p->ip, whole) != 0)
        return false;
    return rest == 0 || (n->ip[whole] ^ p->ip[whole]) >> (8 - rest) == 0;
}

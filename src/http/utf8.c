/* SPDX-License-Identifier: Apache-2.0 */
#include "http/utf8.h"

enum { FIRST = 0x80, LAST = 0xbf }; /* range of continuation bytes */

/* The first byte of a non-ASCII character determines the number of continuation bytes. After some first
 * bytes, the second byte has a smaller range, which excludes overlong forms, surrogates and code points above
 * U+10FFFF. */
static bool begin_sequence(struct mk_utf8 *u, unsigned char c)
{
    u->low = FIRST;
    u->top = LAST;
    if (c >= 0xc2 && c <= 0xdf) {
        u->more = 1;
    } else if (c >= 0xe0 && c <= 0xef) {
        u->more = 2;
        u->low = c == 0xe0 ? 0xa0 : FIRST;
        u->top = c == 0xed ? 0x9f : LAST;
    } else if (c >= 0xf0 && c <= 0xf4) {
        u->more = 3;
        u->low = c == 0xf0 ? 0x90 : FIRST;
        u->top = c == 0xf4 ? 0x8f : LAST;
    } else {
        return false;
    }
    return true;
}

/* Returns the number of leading ASCII bytes: eight at a time, the rest one by one. */
static size_t skip_ascii(const unsigned char *p, size_t len)
{
    size_t i = 0;
    for (uint64_t eight; i + sizeof eight <= len; i += sizeof eight) {
        memcpy(&eight, p + i, sizeof eight);
        if (eight & UINT64_C(0x8080808080808080))
            break;
    }
    while (i < len && p[i] < FIRST)
        i++;
    return i;
}

bool mk_utf8_feed(struct mk_utf8 *u, mk_str s)
{
    const unsigned char *p = (const unsigned char *)s.p;
    for (size_t i = 0; i < s.len; i++) {
        if (u->more) {
            if (p[i] < u->low || p[i] > u->top)
                return false;
            u->more--;
            u->low = FIRST;
            u->top = LAST;
            continue;
        }
        i += skip_ascii(p + i, s.len - i);
        if (i < s.len && !begin_sequence(u, p[i]))
            return false;
    }
    return true;
}

bool mk_utf8_is_valid(mk_str s)
{
    struct mk_utf8 u = {0, 0, 0};
    return mk_utf8_feed(&u, s) && mk_utf8_is_complete(&u);
}

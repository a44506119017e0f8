/* SPDX-License-Identifier: Apache-2.0 */
#include <monkey/utf8.h>

static inline bool is_continuation(unsigned char c)
{
    return c >> 6 == 2;
}

/* Unrolled and inline, because readers of JSON check each character beyond ASCII. */
static inline size_t decode_char(mk_str s, uint32_t *c)
{
    const unsigned char *p = (const unsigned char *)s.p;
    uint32_t first = p[0], code;
    *c = first;
    if (first < 0x80)
        return 1;
    if (first < 0xe0) {
        if (first < 0xc2 || s.len < 2 || !is_continuation(p[1]))
            return 0;
        *c = (first & 0x1f) << 6 | (p[1] & 0x3fu);
        return 2;
    }
    if (first < 0xf0) {
        if (s.len < 3 || !is_continuation(p[1]) || !is_continuation(p[2]))
            return 0;
        code = (first & 0xf) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
        if (code < 0x800 || code >> 11 == 0xd800 >> 11)
            return 0;
        *c = code;
        return 3;
    }
    if (first > 0xf4 || s.len < 4 || !is_continuation(p[1]) || !is_continuation(p[2]) ||
        !is_continuation(p[3]))
        return 0;
    code = (first & 7) << 18 | (p[1] & 0x3fu) << 12 | (p[2] & 0x3fu) << 6 | (p[3] & 0x3fu);
    if (code < 0x10000 || code > 0x10ffff)
        return 0;
    *c = code;
    return 4;
}

size_t mk_utf8_decode(mk_str s, uint32_t *c)
{
    return decode_char(s, c);
}

size_t mk_utf8_char_len(mk_str s)
{
    uint32_t c;
    return decode_char(s, &c);
}

size_t mk_utf8_find_invalid(mk_str s)
{
    for (size_t i = 0; i < s.len;) {
        uint32_t c;
        size_t len = decode_char(mk_str_skip(s, i), &c);
        if (len == 0)
            return i;
        i += len;
    }
    return MK_STR_NONE;
}

size_t mk_utf8_count(mk_str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++)
        n += !is_continuation((unsigned char)s.p[i]);
    return n;
}

size_t mk_utf8_encode(char out[4], uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t len = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = len - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (c & 0x3f));
        c >>= 6;
    }
    out[0] = (char)(first[len] | c);
    return len;
}

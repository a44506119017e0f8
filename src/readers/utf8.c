/* SPDX-License-Identifier: Apache-2.0 */
#include <monkey/utf8.h>

/* Is the second byte valid after the first? Not if they begin an overlong form, a surrogate, or a character
 * beyond U+10FFFF. */
static bool is_valid_second_byte(unsigned char first, unsigned char second)
{
    unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    return second >= low && second <= high;
}

size_t mk_utf8_char_len(mk_str s)
{
    unsigned char first = (unsigned char)s.p[0];
    if (first < 0x80)
        return 1;
    size_t len = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    if (len == 0 || len > s.len || !is_valid_second_byte(first, (unsigned char)s.p[1]))
        return 0;
    for (size_t i = 2; i < len; i++)
        if (((unsigned char)s.p[i] & 0xc0) != 0x80)
            return 0;
    return len;
}

size_t mk_utf8_find_invalid(mk_str s)
{
    for (size_t i = 0; i < s.len;) {
        size_t len = mk_utf8_char_len(mk_str_skip(s, i));
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
        n += ((unsigned char)s.p[i] & 0xc0) != 0x80;
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "escape.h"

/* Returns the length of a character with this first byte; 0 if the byte is invalid. */
static size_t utf8_sequence_len(unsigned char first)
{
    return first < 0x80                    ? 1
           : first >= 0xc2 && first < 0xe0 ? 2
           : first >= 0xe0 && first < 0xf0 ? 3
           : first >= 0xf0 && first < 0xf5 ? 4
                                           : 0;
}

/* Decodes the first character. Returns its length; 0 if the text is not well-formed UTF-8. */
static size_t utf8_decode(mk_str s, uint32_t *c)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = (unsigned char)s.p[0];
    size_t len = utf8_sequence_len(first);
    if (len == 0 || len > s.len)
        return 0;
    *c = len == 1 ? first : first & (0xffu >> (len + 1));
    for (size_t i = 1; i < len; i++) {
        unsigned char next = (unsigned char)s.p[i];
        if ((next & 0xc0) != 0x80)
            return 0;
        *c = *c << 6 | (next & 0x3f);
    }
    bool is_surrogate = *c >= 0xd800 && *c <= 0xdfff;
    return *c < least[len] || *c > 0x10ffff || is_surrogate ? 0 : len;
}

static bool in_range(uint32_t c, uint32_t first, uint32_t last)
{
    return c >= first && c <= last;
}

/* Rejects control characters, zero-width characters, direction marks and overrides, line separators, tags. */
static bool is_displayable(uint32_t c)
{
    if (c < 0x80)
        return c == '\t' || in_range(c, 0x20, 0x7e);
    return !in_range(c, 0x80, 0x9f) && c != 0xad && c != 0x61c && c != 0x180e &&
           !in_range(c, 0x200b, 0x200f) && !in_range(c, 0x2028, 0x202e) && !in_range(c, 0x2060, 0x206f) &&
           c != 0xfeff && !in_range(c, 0xfff0, 0xfffb) && !in_range(c, 0xe0000, 0xe0fff);
}

static void append_hex_escapes(struct mk_buf *out, mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        mk_buf_addf(out, "\\x%02x", (unsigned char)s.p[i]);
}

void cheetah_escape_append(struct mk_buf *out, mk_str s)
{
    while (s.len && !out->failed) {
        uint32_t c = 0;
        size_t len = utf8_decode(s, &c);
        mk_str character = mk_str_first(s, len ? len : 1);
        if (len && is_displayable(c))
            mk_buf_add(out, character);
        else
            append_hex_escapes(out, character);
        s = mk_str_skip(s, character.len);
    }
}

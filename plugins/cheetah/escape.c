/* SPDX-License-Identifier: Apache-2.0 */
#include "escape.h"

#include <monkey/utf8.h>

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
        uint32_t c;
        size_t len = mk_utf8_decode(s, &c);
        mk_str character = mk_str_first(s, len ? len : 1);
        if (len && is_displayable(c))
            mk_buf_add(out, character);
        else
            append_hex_escapes(out, character);
        s = mk_str_skip(s, character.len);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Content-Disposition of downloads (RFC 6266). */
#include <errno.h>
#include <monkey/utf8.h>

#include "service/response.h"
#include "service/suspend.h"

enum {
    FALLBACK_MAX = 255,
    ENCODED_MAX = 3 * FALLBACK_MAX, /* each byte as %XX */
    VALUE_MAX = FALLBACK_MAX + ENCODED_MAX + 64,
};

struct range {
    uint32_t first, last;
};

/* Returns whether the character is invisible: a control or format character. Some of these change the
 * direction of text, and could disguise the extension of a file. */
static bool is_invisible(uint32_t c)
{
    static const struct range all[] = {{0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},
                                       {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},
                                       {0xfeff, 0xfeff}, {0xfff0, 0xfffb}, {0xe0000, 0xe0fff}};
    for (size_t i = 0; i < MK_LEN(all); i++)
        if (c >= all[i].first && c <= all[i].last)
            return true;
    return false;
}

/* Removes the next character from *name. Returns it, or `_` if a file name must not contain it. */
static mk_str next_name_char(mk_str *name)
{
    uint32_t c;
    size_t len = mk_utf8_decode(*name, &c);
    mk_str character = mk_str_first(*name, len ? len : 1);
    *name = mk_str_skip(*name, character.len);
    return len == 0 || c == '/' || c == '\\' || is_invisible(c) ? MK_STR("_") : character;
}

/* Clients parse filename="..." differently, so its value contains no quotes, percent signs or non-ASCII
 * characters. Returns whether the character was added unchanged. */
static bool add_fallback_char(struct mk_buf *out, mk_str c)
{
    bool is_plain = c.len == 1 && c.p[0] != '"' && c.p[0] != '%';
    mk_buf_add(out, is_plain ? c : MK_STR("_"));
    return is_plain;
}

/* Adds the character, with %XX for each byte that is not an attr-char (RFC 8187, section 3.2.1). */
static void add_encoded_char(struct mk_buf *out, mk_str c)
{
    for (size_t i = 0; i < c.len; i++) {
        char one = c.p[i];
        if (mk_char_is_alpha(one) || mk_char_is_digit(one) || (one && strchr("!#$&+-.^_`|~", one)))
            mk_buf_add_char(out, one);
        else
            mk_buf_addf(out, "%%%02X", (unsigned char)one);
    }
}

int duda_attachment(struct duda_ctx *d, mk_str file_name)
{
    char *room = duda_alloc(d, FALLBACK_MAX + ENCODED_MAX + VALUE_MAX);
    if (!room)
        return -ENOMEM;
    struct mk_buf plain = mk_buf_fixed(room, FALLBACK_MAX),
                  encoded = mk_buf_fixed(room + FALLBACK_MAX, ENCODED_MAX),
                  value = mk_buf_fixed(room + FALLBACK_MAX + ENCODED_MAX, VALUE_MAX);
    size_t n = 0;
    bool is_plain = true;
    while (file_name.len) {
        mk_str c = next_name_char(&file_name);
        n += c.len;
        if (n > FALLBACK_MAX)
            break;
        is_plain &= add_fallback_char(&plain, c);
        add_encoded_char(&encoded, c);
    }
    mk_buf_add(&value, MK_STR("attachment"));
    if (plain.len)
        mk_buf_addf(&value, "; filename=\"%.*s\"", MK_STR_ARG(mk_buf_str(&plain)));
    if (!is_plain)
        mk_buf_addf(&value, "; filename*=UTF-8''%.*s", MK_STR_ARG(mk_buf_str(&encoded)));
    return duda_header_set(d, "Content-Disposition", mk_buf_str(&value));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Sanitizes file names chosen by clients. */
#include <monkey/multipart.h>
#include <monkey/text.h>

#include <monkey/utf8.h>

enum { CLEAN_MAX = 100 };

struct range {
    uint32_t first, last;
};

/* Is the character unsafe in a file name: a blank, an invisible character, a bidirectional control, or a
 * lookalike of a dot or a slash? */
static bool is_unsafe_code_point(uint32_t c)
{
    static const struct range all[] = {
        {0x80, 0xa0},     {0xad, 0xad},       {0x34f, 0x34f},   {0x61c, 0x61c},   {0x115f, 0x1160},
        {0x1680, 0x1680}, {0x17b4, 0x17b5},   {0x180b, 0x180f}, {0x2000, 0x200b}, {0x200e, 0x200f},
        {0x2024, 0x2024}, {0x2028, 0x202f},   {0x2044, 0x2044}, {0x205f, 0x206f}, {0x2215, 0x2216},
        {0x29f5, 0x29f9}, {0x3000, 0x3000},   {0x3164, 0x3164}, {0xe000, 0xf8ff}, {0xfe52, 0xfe52},
        {0xfe68, 0xfe68}, {0xfeff, 0xfeff},   {0xff0e, 0xff0f}, {0xff3c, 0xff3c}, {0xffa0, 0xffa0},
        {0xfff0, 0xffff}, {0xe0000, 0x10ffff}};
    for (size_t i = 0; i < MK_LEN(all); i++)
        if (c >= all[i].first && c <= all[i].last)
            return true;
    return false;
}

static bool is_plain_char(char c)
{
    return mk_char_is_alpha(c) || mk_char_is_digit(c) || c == '-' || c == '_' || c == '.';
}

/* Returns the next character, sanitized, and sets *used to its length in `s`. */
static mk_str next_clean_char(mk_str s, size_t *used)
{
    static const mk_str escapes[] = {MK_STR("%22"), MK_STR("%0D"), MK_STR("%0A")}; /* browsers escape these */
    uint32_t c;
    size_t len = mk_utf8_decode(s, &c);
    *used = len ? len : 1;
    for (size_t i = 0; i < MK_LEN(escapes); i++)
        if (mk_str_eq_nocase(mk_str_first(s, 3), escapes[i]))
            *used = 3;
    if (len > 1 && !is_unsafe_code_point(c))
        return mk_str_first(s, len);
    return len == 1 && *used == 1 && is_plain_char(s.p[0]) ? mk_str_first(s, 1) : MK_STR("_");
}

static mk_str strip_folders(mk_str name)
{
    for (size_t i = name.len; i > 0; i--)
        if (name.p[i - 1] == '/' || name.p[i - 1] == '\\')
            return mk_str_skip(name, i);
    return name;
}

void mk_file_name_clean(struct mk_buf *out, mk_str name)
{
    size_t begin = out->len, used;
    bool dot = true; /* the start counts as a dot: no leading dot, and no two dots in a row */
    for (name = strip_folders(name); name.len; name = mk_str_skip(name, used)) {
        mk_str c = next_clean_char(name, &used);
        bool is_dot = c.p[0] == '.';
        if (out->len - begin + c.len > CLEAN_MAX)
            break;
        if (!(is_dot && dot))
            mk_buf_add(out, c);
        dot = is_dot;
    }
    if (out->len == begin)
        mk_buf_add(out, MK_STR("file"));
}

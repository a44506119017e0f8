/* SPDX-License-Identifier: Apache-2.0 */
#include "text/part.h"

#include <errno.h>
#include <monkey/text.h>

#include "text/utf8.h"

/* What a name may be: UTF-8 without control characters. */
static bool is_clean(mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
            return false;
    return duda_utf8_bad(s) == MK_STR_NONE;
}

/* A quoted text whose opening quote was taken. Browsers escape a quote as %22 and leave backslashes alone;
 * other clients write \" and \\. */
static bool quoted(mk_str *rest, mk_str *out)
{
    char *to = (char *)(uintptr_t)rest->p; /* part of the reader's own room */
    size_t len = 0, i = 0;
    for (; i < rest->len && rest->p[i] != '"'; i++) {
        bool escape =
            rest->p[i] == '\\' && i + 1 < rest->len && (rest->p[i + 1] == '"' || rest->p[i + 1] == '\\');
        i += escape;
        to[len++] = rest->p[i];
    }
    if (i == rest->len)
        return false;
    *out = mk_str_of(rest->p, len);
    *rest = mk_str_skip(*rest, i + 1);
    return true;
}

static mk_str left_trimmed(mk_str s)
{
    while (s.len && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = mk_str_skip(s, 1);
    return s;
}

/* The next `; name=value`; false at the end, with *good saying whether it was one. */
static bool next_parameter(mk_str *rest, mk_str *name, mk_str *value, bool *good)
{
    *rest = left_trimmed(*rest);
    *good = rest->len == 0;
    if (rest->len == 0 || rest->p[0] != ';')
        return false;
    *rest = left_trimmed(mk_str_skip(*rest, 1));
    size_t equals = mk_str_find(*rest, '=');
    *good = rest->len == 0; /* a last semicolon does no harm */
    if (equals == MK_STR_NONE)
        return false;
    *name = mk_str_trim(mk_str_first(*rest, equals));
    *rest = left_trimmed(mk_str_skip(*rest, equals + 1));
    *good = mk_is_token(*name);
    if (*good && rest->len && rest->p[0] == '"') {
        *rest = mk_str_skip(*rest, 1);
        *good = quoted(rest, value);
    } else if (*good) {
        size_t end = mk_str_find(*rest, ';');
        *value = mk_str_trim(mk_str_first(*rest, end == MK_STR_NONE ? rest->len : end));
        *rest = mk_str_skip(*rest, end == MK_STR_NONE ? rest->len : end);
        *good = mk_is_token(*value);
    }
    return *good;
}

static bool read_disposition(mk_str value, struct duda_part *out)
{
    size_t end = mk_str_find(value, ';');
    mk_str name, text;
    bool good;
    if (out->name.p || end == MK_STR_NONE ||
        !mk_str_eq_nocase(mk_str_trim(mk_str_first(value, end)), MK_STR("form-data")))
        return false;
    value = mk_str_skip(value, end);
    while (next_parameter(&value, &name, &text, &good)) {
        mk_str *to = mk_str_eq_nocase(name, MK_STR("name"))       ? &out->name
                     : mk_str_eq_nocase(name, MK_STR("filename")) ? &out->file_name
                                                                  : NULL;
        if (to && (to->p || !is_clean(text)))
            return false;
        if (to)
            *to = text;
    }
    return good && out->name.p;
}

/* What RFC 7578, section 4.7 has left of it: content as it is. */
static bool is_identity(mk_str value)
{
    return mk_str_eq_nocase(value, MK_STR("7bit")) || mk_str_eq_nocase(value, MK_STR("8bit")) ||
           mk_str_eq_nocase(value, MK_STR("binary"));
}

static bool read_line(mk_str line, struct duda_part *out)
{
    mk_str name = mk_str_cut(&line, ':');
    if (!line.p || !mk_is_token(name))
        return false;
    mk_str value = mk_str_trim(line);
    if (mk_str_eq_nocase(name, MK_STR("Content-Disposition")))
        return read_disposition(value, out);
    if (!mk_is_field_value(value))
        return false;
    if (mk_str_eq_nocase(name, MK_STR("Content-Type")))
        out->type = value;
    return !mk_str_eq_nocase(name, MK_STR("Content-Transfer-Encoding")) || is_identity(value);
}

int duda_part_parse(mk_str head, size_t name_max, struct duda_part *out)
{
    *out = (struct duda_part){MK_ABSENT, MK_ABSENT, MK_ABSENT};
    while (head.len) {
        size_t end = mk_str_find(head, '\n');
        if (end == MK_STR_NONE || end == 0 || head.p[end - 1] != '\r' ||
            !read_line(mk_str_first(head, end - 1), out))
            return -EBADMSG;
        head = mk_str_skip(head, end + 1);
    }
    if (!out->name.p)
        return -EBADMSG;
    return out->name.len > name_max || out->file_name.len > name_max ? -EFBIG : 0;
}

static bool is_boundary(mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!mk_char_is_alpha(s.p[i]) && !mk_char_is_digit(s.p[i]) &&
            !(s.p[i] && strchr("'()+_,-./:=? ", s.p[i])))
            return false;
    return s.len > 0 && s.len <= DUDA_BOUNDARY_MAX && s.p[s.len - 1] != ' ';
}

bool duda_multipart_boundary(mk_str type, mk_str *out)
{
    size_t end = mk_str_find(type, ';');
    if (end == MK_STR_NONE ||
        !mk_str_eq_nocase(mk_str_trim(mk_str_first(type, end)), MK_STR("multipart/form-data")))
        return false;
    while (end != MK_STR_NONE) {
        type = left_trimmed(mk_str_skip(type, end + 1));
        end = mk_str_find(type, ';');
        mk_str value = mk_str_first(type, end == MK_STR_NONE ? type.len : end);
        mk_str name = mk_str_trim(mk_str_cut(&value, '='));
        value = mk_str_trim(value);
        if (!mk_str_eq_nocase(name, MK_STR("boundary")))
            continue;
        if (value.len >= 2 && value.p[0] == '"' && value.p[value.len - 1] == '"')
            value = mk_str_of(value.p + 1, value.len - 2);
        *out = value;
        return is_boundary(value);
    }
    return false;
}

enum { CLEAN_MAX = 100 };

static bool is_plain(char c)
{
    return mk_char_is_alpha(c) || mk_char_is_digit(c) || c == '-' || c == '_';
}

void duda_file_name_clean(struct mk_buf *out, mk_str name)
{
    for (size_t i = name.len; i > 0; i--)
        if (name.p[i - 1] == '/' || name.p[i - 1] == '\\') {
            name = mk_str_skip(name, i);
            break;
        }
    size_t begin = out->len;
    bool dot = true; /* none in front, no two in a row */
    for (size_t i = 0; i < name.len && out->len - begin < CLEAN_MAX; i++) {
        unsigned char c = (unsigned char)name.p[i];
        if ((c & 0xc0) == 0x80 || (c == '.' && dot))
            continue; /* one `_` for a character of more bytes */
        dot = c == '.';
        mk_buf_add_char(out, is_plain((char)c) || dot ? (char)c : '_');
    }
    if (out->len == begin)
        mk_buf_add(out, MK_STR("file"));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "readers/multipart_header.h"

#include <errno.h>
#include <monkey/text.h>

#include <monkey/utf8.h>

/* Is the text valid UTF-8 without control characters? */
static bool is_clean_text(mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
            return false;
    return mk_utf8_find_invalid(s) == MK_STR_NONE;
}

static mk_str trim_left(mk_str s)
{
    while (s.len && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = mk_str_skip(s, 1);
    return s;
}

/* Does a quoted string end at the quote before `rest`? It does if the line ends there, or if the next
 * parameter follows. */
static bool is_end_of_quoted_string(mk_str rest)
{
    rest = trim_left(rest);
    if (!mk_str_starts(rest, MK_STR(";")))
        return rest.len == 0;
    rest = trim_left(mk_str_skip(rest, 1));
    size_t equals = mk_str_find(rest, '=');
    return rest.len == 0 || (equals != MK_STR_NONE && mk_is_token(mk_str_trim(mk_str_first(rest, equals))));
}

/* Parses a quoted string after its opening quote. Browsers write a quote as %22 and do not escape
 * backslashes, even at the end (WHATWG HTML, section 4.10.21.8); other clients write \" for a quote. */
static bool parse_quoted_text(mk_str *rest, mk_str *out)
{
    char *to = (char *)(uintptr_t)rest->p; /* part of the parser's own buffer, which may be modified */
    size_t len = 0, i = 0;
    for (; i < rest->len && rest->p[i] != '"'; i++) {
        bool escape = rest->p[i] == '\\' && i + 1 < rest->len && rest->p[i + 1] == '"' &&
                      !is_end_of_quoted_string(mk_str_skip(*rest, i + 2));
        i += escape;
        to[len++] = rest->p[i];
    }
    if (i == rest->len)
        return false;
    *out = mk_str_of(rest->p, len);
    *rest = mk_str_skip(*rest, i + 1);
    return true;
}

/* Parses the next `; name=value`. False: none follows, or it is malformed; *good is false if anything was
 * malformed. */
static bool next_parameter(mk_str *rest, mk_str *name, mk_str *value, bool *good)
{
    *rest = trim_left(*rest);
    *good = rest->len == 0;
    if (rest->len == 0 || rest->p[0] != ';')
        return false;
    *rest = trim_left(mk_str_skip(*rest, 1));
    size_t equals = mk_str_find(*rest, '=');
    *good = rest->len == 0; /* a trailing semicolon is harmless */
    if (equals == MK_STR_NONE)
        return false;
    *name = mk_str_trim(mk_str_first(*rest, equals));
    *rest = trim_left(mk_str_skip(*rest, equals + 1));
    *good = mk_is_token(*name);
    if (*good && rest->len && rest->p[0] == '"') {
        *rest = mk_str_skip(*rest, 1);
        *good = parse_quoted_text(rest, value);
    } else if (*good) {
        size_t end = mk_str_find(*rest, ';');
        *value = mk_str_trim(mk_str_first(*rest, end == MK_STR_NONE ? rest->len : end));
        *rest = mk_str_skip(*rest, end == MK_STR_NONE ? rest->len : end);
        *good = mk_is_token(*value);
    }
    return *good;
}

/* Decodes an extended value (RFC 8187) in place; absent if it is malformed or in an unknown charset. The
 * result is never longer: a character of ISO-8859-1 takes at most two bytes in UTF-8, but three in
 * percent-encoding. */
static mk_str decoded_ext_value(mk_str value)
{
    mk_str charset = mk_str_cut(&value, '\''), language = mk_str_cut(&value, '\'');
    bool is_latin = mk_str_eq_nocase(charset, MK_STR("ISO-8859-1"));
    char *to = (char *)(uintptr_t)value.p;
    size_t len = 0;
    (void)language;
    if (!value.p || (!is_latin && !mk_str_eq_nocase(charset, MK_STR("UTF-8"))))
        return MK_STR_NULL;
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.p[i];
        if (c == '%') {
            int high = i + 2 < value.len ? mk_char_hex(value.p[i + 1]) : -1,
                low = high < 0 ? -1 : mk_char_hex(value.p[i + 2]);
            if (low < 0)
                return MK_STR_NULL;
            c = (unsigned char)(high * 16 + low);
            i += 2;
        }
        if (is_latin)
            len += mk_utf8_encode(to + len, c);
        else
            to[len++] = (char)c;
    }
    return mk_str_of(value.p, len);
}

/* A name in its plain and extended form. RFC 7578 allows only the plain form, but some clients send the
 * extended form, or both; the extended form is then more accurate. */
struct name_forms {
    mk_str plain, decoded_ext_value;
};

static const char *set_name_once(struct name_forms *n, mk_str text, bool is_extended)
{
    mk_str *to = is_extended ? &n->decoded_ext_value : &n->plain;
    if (to->p)
        return "a parameter of Content-Disposition occurs twice";
    *to = is_extended ? decoded_ext_value(text) : text;
    if (to->p && !is_clean_text(*to))
        return "a name is not UTF-8, or contains a control character";
    return is_extended && !to->p && !n->plain.p ? "an extended name is not in UTF-8 or ISO-8859-1" : NULL;
}

static mk_str preferred_name(const struct name_forms *n)
{
    return n->decoded_ext_value.p ? n->decoded_ext_value : n->plain;
}

static const char *parse_content_disposition(mk_str value, struct mk_multipart_part *out)
{
    static const struct {
        mk_str word;
        bool is_file, is_extended;
    } known[] = {{MK_STR("name"), false, false},
                 {MK_STR("filename"), true, false},
                 {MK_STR("name*"), false, true},
                 {MK_STR("filename*"), true, true}};
    struct name_forms name_forms[2] = {{MK_STR_NULL, MK_STR_NULL}, {MK_STR_NULL, MK_STR_NULL}};
    size_t end = mk_str_find(value, ';');
    mk_str name, text;
    bool good;
    if (out->name.p)
        return "Content-Disposition occurs twice";
    if (!mk_str_eq_nocase(mk_str_trim(mk_str_first(value, end == MK_STR_NONE ? value.len : end)),
                          MK_STR("form-data")))
        return "its Content-Disposition is not form-data";
    value = mk_str_skip(value, end == MK_STR_NONE ? value.len : end);
    while (next_parameter(&value, &name, &text, &good))
        for (size_t i = 0; i < MK_LEN(known); i++) {
            const char *error = mk_str_eq_nocase(name, known[i].word)
                                    ? set_name_once(&name_forms[known[i].is_file], text, known[i].is_extended)
                                    : NULL;
            if (error)
                return error;
        }
    out->name = preferred_name(&name_forms[0]);
    out->file_name = preferred_name(&name_forms[1]);
    if (!good)
        return "its Content-Disposition is malformed";
    return out->name.p ? NULL : "its Content-Disposition has no name";
}

/* Does this Content-Transfer-Encoding leave the data unencoded? Other encodings are rejected (RFC 7578,
 * section 4.7, deprecates the header). */
static bool is_identity_encoding(mk_str value)
{
    return mk_str_eq_nocase(value, MK_STR("7bit")) || mk_str_eq_nocase(value, MK_STR("8bit")) ||
           mk_str_eq_nocase(value, MK_STR("binary"));
}

static const char *parse_header_line(mk_str line, struct mk_multipart_part *out)
{
    mk_str name = mk_str_cut(&line, ':');
    if (!line.p || !mk_is_token(name))
        return "a line of its headers is malformed";
    mk_str value = mk_str_trim(line);
    if (mk_str_eq_nocase(name, MK_STR("Content-Disposition")))
        return parse_content_disposition(value, out);
    if (!mk_is_header_value(value))
        return "a line of its headers contains a control character";
    if (mk_str_eq_nocase(name, MK_STR("Content-Type")))
        out->content_type = value;
    return !mk_str_eq_nocase(name, MK_STR("Content-Transfer-Encoding")) || is_identity_encoding(value)
               ? NULL
               : "its Content-Transfer-Encoding is not 7bit, 8bit or binary";
}

int mk_multipart_header_parse(mk_str head, size_t name_max, struct mk_multipart_part *out, const char **error)
{
    *out = (struct mk_multipart_part){MK_STR_NULL, MK_STR_NULL, MK_STR_NULL};
    while (head.len) {
        size_t end = mk_str_find(head, '\n');
        *error = "a line of its headers does not end with CR LF";
        if (end == MK_STR_NONE || end == 0 || head.p[end - 1] != '\r')
            return -EBADMSG;
        *error = parse_header_line(mk_str_first(head, end - 1), out);
        if (*error)
            return -EBADMSG;
        head = mk_str_skip(head, end + 1);
    }
    *error = out->name.p ? "a name exceeds `.name` of the struct mk_multipart_limits"
                         : "it has no Content-Disposition";
    if (!out->name.p)
        return -EBADMSG;
    return out->name.len > name_max || out->file_name.len > name_max ? -EMSGSIZE : 0;
}

static bool is_valid_boundary(mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!mk_char_is_alpha(s.p[i]) && !mk_char_is_digit(s.p[i]) &&
            !(s.p[i] && strchr("'()+_,-./:=? ", s.p[i])))
            return false;
    return s.len > 0 && s.len <= MK_BOUNDARY_MAX && s.p[s.len - 1] != ' ';
}

bool mk_multipart_boundary(mk_str type, mk_str *out)
{
    size_t end = mk_str_find(type, ';');
    if (end == MK_STR_NONE ||
        !mk_str_eq_nocase(mk_str_trim(mk_str_first(type, end)), MK_STR("multipart/form-data")))
        return false;
    while (end != MK_STR_NONE) {
        type = trim_left(mk_str_skip(type, end + 1));
        end = mk_str_find(type, ';');
        mk_str value = mk_str_first(type, end == MK_STR_NONE ? type.len : end);
        mk_str name = mk_str_trim(mk_str_cut(&value, '='));
        value = mk_str_trim(value);
        if (!mk_str_eq_nocase(name, MK_STR("boundary")))
            continue;
        if (value.len >= 2 && value.p[0] == '"' && value.p[value.len - 1] == '"')
            value = mk_str_of(value.p + 1, value.len - 2);
        *out = value;
        return is_valid_boundary(value);
    }
    return false;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <duda/mime.h>

#include <monkey/text.h>

static mk_str trim_left(mk_str s)
{
    while (s.len && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = mk_str_skip(s, 1);
    return s;
}

/* Returns whether the character is allowed in a quoted string (RFC 9110, section 5.6.4), possibly after a
 * backslash. */
static bool is_quotable_char(char c)
{
    return c == '\t' || ((unsigned char)c >= ' ' && c != 0x7f);
}

/* Parses the text after an opening quote, up to the closing one; `buf` may be NULL. */
static bool parse_quoted_string(mk_str *rest, struct mk_buf *buf)
{
    size_t i = 0;
    for (; i < rest->len && rest->p[i] != '"'; i++) {
        i += rest->p[i] == '\\';
        if (i == rest->len || !is_quotable_char(rest->p[i]))
            return false;
        if (buf)
            mk_buf_add_char(buf, rest->p[i]);
    }
    if (i == rest->len)
        return false;
    *rest = mk_str_skip(*rest, i + 1);
    return !buf || !buf->failed;
}

static bool parse_parameter_value(mk_str *rest, struct mk_buf *buf, mk_str *value)
{
    if (rest->len && rest->p[0] == '"') {
        size_t begin = buf ? buf->len : 0;
        *rest = mk_str_skip(*rest, 1);
        if (!parse_quoted_string(rest, buf))
            return false;
        *value = buf ? mk_str_skip(mk_buf_str(buf), begin) : MK_STR("");
        return true;
    }
    size_t end = 0;
    while (end < rest->len && rest->p[end] != ';' && rest->p[end] != ' ' && rest->p[end] != '\t')
        end++;
    *value = mk_str_first(*rest, end);
    *rest = mk_str_skip(*rest, end);
    return mk_is_token(*value);
}

/* Parses one parameter. Returns 1, 0 if there is no other, or -1 if it is malformed. */
static int parse_parameter(mk_str *rest, struct mk_buf *buf, mk_str *name, mk_str *value)
{
    for (*rest = trim_left(*rest); rest->len && rest->p[0] == ';';)
        *rest = trim_left(mk_str_skip(*rest, 1)); /* empty parameters are allowed (section 5.6.6) */
    if (!rest->len)
        return 0;
    size_t equals = mk_str_find(*rest, '=');
    if (equals == MK_STR_NONE)
        return -1;
    *name = mk_str_first(*rest, equals);
    *rest = mk_str_skip(*rest, equals + 1);
    if (!mk_is_token(*name) || !parse_parameter_value(rest, buf, value))
        return -1;
    *rest = trim_left(*rest);
    return !rest->len || rest->p[0] == ';' ? 1 : -1;
}

bool duda_mime_next(mk_str *rest, struct mk_buf *buf, mk_str *name, mk_str *value)
{
    return parse_parameter(rest, buf, name, value) == 1;
}

bool duda_mime_read(mk_str text, struct duda_mime *out)
{
    mk_str rest = mk_str_trim(text), name, value;
    size_t end = mk_str_find(rest, ';');
    mk_str subtype = mk_str_trim(mk_str_first(rest, end == MK_STR_NONE ? rest.len : end));
    int more;
    *out = (struct duda_mime){.type = mk_str_cut(&subtype, '/')};
    out->subtype = subtype;
    out->parameters = rest = mk_str_skip(rest, end == MK_STR_NONE ? rest.len : end);
    while ((more = parse_parameter(&rest, NULL, &name, &value)) == 1)
        ;
    return more == 0 && mk_is_token(out->type) && mk_is_token(out->subtype);
}

static bool matches_pattern(mk_str s, mk_str pattern)
{
    if (!pattern.len || pattern.p[0] != '*')
        return mk_str_eq_nocase(s, pattern);
    pattern = mk_str_skip(pattern, 1);
    return s.len >= pattern.len && mk_str_eq_nocase(mk_str_skip(s, s.len - pattern.len), pattern);
}

bool duda_mime_is(const struct duda_mime *mime, mk_str pattern)
{
    mk_str subtype = pattern, type = mk_str_cut(&subtype, '/');
    return subtype.p && matches_pattern(mime->type, type) && matches_pattern(mime->subtype, subtype);
}

mk_str duda_mime_parameter(const struct duda_mime *mime, mk_str name, struct mk_buf *buf)
{
    mk_str rest = mime->parameters, parameter, value;
    size_t begin = buf->len;
    while (duda_mime_next(&rest, buf, &parameter, &value)) {
        if (mk_str_eq_nocase(parameter, name))
            return value;
        buf->len = begin; /* discards the value of a different parameter */
    }
    return MK_STR_NULL;
}

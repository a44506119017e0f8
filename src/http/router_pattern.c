/* SPDX-License-Identifier: Apache-2.0 */
#include "http/router_pattern.h"

#include "http/router_param_type.h"

enum { SHOWN = 40 }; /* maximum bytes of invalid text shown in a message */

struct pattern_parser {
    struct mk_router_pattern *out;
    char *next_byte; /* where the next decoded byte goes */
    struct mk_buf *error_text;
};

static bool reject_pattern(const struct pattern_parser *r, const char *error)
{
    mk_buf_add(r->error_text, mk_str_from_c(error));
    return false;
}

/* ---- Methods ---- */

static bool is_method_name(mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!((s.p[i] >= 'A' && s.p[i] <= 'Z') || mk_char_is_digit(s.p[i]) || s.p[i] == '-' || s.p[i] == '_'))
            return false;
    return s.len > 0;
}

/* Parses the methods, and moves *route to the pattern. */
static bool parse_methods(struct pattern_parser *r, mk_str *route)
{
    r->out->methods = MK_STR("");
    if (route->len && route->p[0] != '/') {
        r->out->methods = mk_str_first(*route, mk_str_find(*route, ' '));
        *route = mk_str_trim(mk_str_skip(*route, r->out->methods.len));
        for (mk_str rest = r->out->methods; rest.p;)
            if (!is_method_name(mk_str_cut(&rest, ',')))
                return reject_pattern(
                    r, "its methods must be uppercase words separated by commas, as in GET,POST");
    }
    if (route->len == 0 || route->p[0] != '/')
        return reject_pattern(r, "its path must begin with a slash");
    return true;
}

/* ---- Segments ---- */

static bool is_name(mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!mk_char_is_alpha(s.p[i]) && s.p[i] != '_' && !(i && mk_char_is_digit(s.p[i])))
            return false;
    return s.len > 0;
}

static bool has_param_named(const struct mk_router_pattern *p, mk_str name)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->segments[i].type != MK_ROUTER_NO_TYPE && mk_str_eq(p->segments[i].text, name))
            return true;
    return false;
}

static bool add_param(struct pattern_parser *r, mk_str name, enum mk_router_type type)
{
    struct mk_router_pattern *p = r->out;
    if (!is_name(name))
        return reject_pattern(
            r, "a parameter must be a whole segment: a name of letters, digits and _, optionally with "
               "a type, as in :id<int>");
    if (has_param_named(p, name))
        return reject_pattern(r, "two parameters have the same name");
    if (p->n_params == MK_ROUTER_PARAMS_MAX) {
        mk_buf_addf(r->error_text, "it has more than %d parameters", MK_ROUTER_PARAMS_MAX);
        return false;
    }
    p->n_params++;
    p->segments[p->n++] = (struct mk_router_segment){name, type};
    return true;
}

/* Parses the text after the colon. */
static bool parse_param(struct pattern_parser *r, mk_str s)
{
    size_t at = mk_str_find(s, '<');
    if (at == MK_STR_NONE || !mk_str_ends(s, MK_STR(">")))
        return add_param(r, s, MK_ROUTER_TEXT);
    mk_str name = mk_str_first(s, at), type = mk_str_skip(s, at + 1);
    type.len--;
    enum mk_router_type found = mk_router_type_find(type);
    if (found != MK_ROUTER_NO_TYPE)
        return add_param(r, name, found);
    mk_buf_addf(r->error_text,
                "<%.*s> is not a parameter type; the types are: ", MK_STR_ARG(mk_str_first(type, SHOWN)));
    mk_router_type_list(r->error_text);
    return false;
}

/* Returns the byte of the escape at s.p[i]; negative: none. */
static int decode_escape(mk_str s, size_t i)
{
    int high = i + 2 < s.len ? mk_char_hex(s.p[i + 1]) : -1,
        low = i + 2 < s.len ? mk_char_hex(s.p[i + 2]) : -1;
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static bool is_dot_segment(mk_str s)
{
    return mk_str_eq(s, MK_STR(".")) || mk_str_eq(s, MK_STR(".."));
}

static bool parse_text(struct pattern_parser *r, mk_str s)
{
    char *begin = r->next_byte;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.p[i];
        if (c == '?' || c == '#' || (unsigned char)c <= ' ' || c == 127)
            return reject_pattern(
                r, "a space, ? or # must be written as %20, %3F or %23, and control characters must be "
                   "percent-encoded, too");
        if (c == '*')
            return reject_pattern(
                r, "a * is allowed only at the beginning of the last segment, before a name, as in "
                   "/files/*path; write %2A for a literal star");
        int byte = c == '%' ? decode_escape(s, i) : (unsigned char)c;
        if (byte <= 0 || (c == '%' && byte == '/'))
            return reject_pattern(
                r, "a % must be followed by two hexadecimal digits that do not encode NUL or /");
        i += c == '%' ? 2 : 0;
        *r->next_byte++ = (char)byte;
    }
    mk_str text = mk_str_of(begin, (size_t)(r->next_byte - begin));
    if (is_dot_segment(text))
        return reject_pattern(r, "a segment is . or .., which the server removes from paths before routing");
    r->out->segments[r->out->n++] = (struct mk_router_segment){text, MK_ROUTER_NO_TYPE};
    return true;
}

static bool parse_segment(struct pattern_parser *r, mk_str s, bool is_last)
{
    if (r->out->n == MK_ROUTER_SEGMENTS_MAX) {
        mk_buf_addf(r->error_text, "it has more than %d segments", MK_ROUTER_SEGMENTS_MAX);
        return false;
    }
    if (s.len == 0 && !is_last)
        return reject_pattern(r, "it has two slashes in a row, which the server merges before routing");
    if (s.len && s.p[0] == ':')
        return parse_param(r, mk_str_skip(s, 1));
    if (s.len && s.p[0] == '*' && is_last)
        return add_param(r, mk_str_skip(s, 1), MK_ROUTER_REST);
    return parse_text(r, s);
}

bool mk_router_pattern_parse(struct mk_router_pattern *out, mk_str route, char *buf, struct mk_buf *error)
{
    struct pattern_parser r = {out, buf, error};
    out->n = out->n_params = 0;
    if (route.len > MK_ROUTER_PATTERN_MAX) {
        mk_buf_addf(error, "it has more than %d bytes", MK_ROUTER_PATTERN_MAX);
        return false;
    }
    if (!parse_methods(&r, &route))
        return false;
    for (mk_str rest = mk_str_skip(route, 1); rest.p;) {
        mk_str segment = mk_str_cut(&rest, '/');
        if (!parse_segment(&r, segment, rest.p == NULL))
            return false;
    }
    return true;
}

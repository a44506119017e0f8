/* SPDX-License-Identifier: Apache-2.0 */
#include "text/template_url.h"

#include "text/template_name.h"

static bool is_blank(char c)
{
    return (unsigned char)c <= ' ';
}

static mk_str skip_blanks(mk_str s)
{
    while (s.len && is_blank(s.p[0]))
        s = mk_str_skip(s, 1);
    return s;
}

bool duda_template_is_url(mk_str inner)
{
    const mk_str word = MK_STR("url_for");
    mk_str rest = mk_str_skip(inner, word.len);
    if (!mk_str_starts(inner, word) || !rest.len || !is_blank(rest.p[0]))
        return false;
    rest = skip_blanks(rest);
    return rest.len && rest.p[0] != '|'; /* a value named `url_for`, with a filter */
}

/* Removes text in quotes from the start of *rest, with the blanks after it. Returns an absent string if *rest
 * begins with no quoted text. */
static mk_str parse_quoted(mk_str *rest)
{
    if (!rest->len || (rest->p[0] != '"' && rest->p[0] != '\''))
        return MK_STR_NULL;
    size_t len = mk_str_find(mk_str_skip(*rest, 1), rest->p[0]);
    if (len == MK_STR_NONE || (len + 2 < rest->len && !is_blank(rest->p[len + 2])))
        return MK_STR_NULL;
    mk_str text = mk_str_of(rest->p + 1, len);
    *rest = skip_blanks(mk_str_skip(*rest, len + 2));
    return text;
}

static mk_str parse_word(mk_str *rest)
{
    size_t len = 0;
    while (len < rest->len && !is_blank(rest->p[len]))
        len++;
    mk_str word = mk_str_first(*rest, len);
    *rest = skip_blanks(mk_str_skip(*rest, len));
    return word;
}

/* Parses the value of a parameter: text in quotes, a number, or the name of a value. */
static bool parse_value(mk_str *rest, struct duda_template_param *param)
{
    bool is_quoted = rest->len && (rest->p[0] == '"' || rest->p[0] == '\'');
    param->value = is_quoted ? parse_quoted(rest) : parse_word(rest);
    if (is_quoted || !param->value.len) {
        param->is_literal = true;
        return is_quoted && param->value.p;
    }
    param->is_literal = param->value.p[0] >= '0' && param->value.p[0] <= '9';
    param->lookup = duda_template_lookup_of(param->value);
    return param->is_literal || duda_template_is_name(param->value);
}

const char *duda_template_url_parse(char *source, mk_str inner, mk_str *route,
                                    struct duda_template_param *params, size_t *n)
{
    mk_str rest = skip_blanks(mk_str_skip(inner, strlen("url_for")));
    *route = parse_quoted(&rest);
    if (!route->len)
        return "`url_for` needs the name of a route in quotes: {{url_for \"issue\" id=issue.id}}";
    while (rest.len) {
        size_t len = 0;
        while (len < rest.len && rest.p[len] != '=' && !is_blank(rest.p[len]))
            len++;
        if (!len || len == rest.len || rest.p[len] != '=')
            return "the parameters of `url_for` have the form `name=value`";
        if (*n == DUDA_TEMPLATE_PARAMS_MAX)
            return "`url_for` has more than 16 parameters";
        struct duda_template_param *param = &params[(*n)++];
        *param = (struct duda_template_param){.name = rest.p};
        source[(size_t)(rest.p - source) + len] = '\0';
        rest = mk_str_skip(rest, len + 1);
        if (!parse_value(&rest, param))
            return "the value of a parameter is a name, a number, or text in quotes";
    }
    return NULL;
}

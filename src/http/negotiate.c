/* SPDX-License-Identifier: Apache-2.0 */
#include "http/negotiate.h"

enum { BEST = 1000, LEAST = 1 };

/* qvalue = ( "0" [ "." 0*3DIGIT ] ) / ( "1" [ "." 0*3("0") ] ), in thousandths. */
static unsigned parse_qvalue(mk_str s)
{
    if (s.len < 1 || s.len > 5 || (s.p[0] != '0' && s.p[0] != '1') || (s.len > 1 && s.p[1] != '.'))
        return 0;
    unsigned q = s.p[0] == '1' ? BEST : 0, worth = 100;
    for (size_t i = 2; i < s.len; i++, worth /= 10) {
        if (!mk_char_is_digit(s.p[i]))
            return 0;
        q += worth * (unsigned)(s.p[i] - '0');
    }
    return q <= BEST ? q : 0;
}

/* Parses the parameters of a coding: either none, or only a weight, as in "q=0.5". Malformed: 0. */
static unsigned parse_weight(mk_str parameters)
{
    if (!parameters.p)
        return BEST;
    parameters = mk_str_trim(parameters);
    if (parameters.len < 2 || mk_char_lower(parameters.p[0]) != 'q' || parameters.p[1] != '=')
        return 0;
    return parse_qvalue(mk_str_skip(parameters, 2));
}

static bool is_coding(mk_str name, mk_str coding)
{
    if (mk_str_eq_nocase(name, coding))
        return true;
    return mk_str_eq_nocase(name, MK_STR("x-gzip")) && mk_str_eq_nocase(coding, MK_STR("gzip"));
}

unsigned mk_negotiate_coding_q(const struct mk_headers *fields, enum mk_header_id id, mk_str coding)
{
    bool identity = mk_str_eq_nocase(coding, MK_STR("identity")), any = false;
    if (!mk_headers_has(fields, id))
        return identity ? BEST : 0;
    unsigned otherwise = identity ? LEAST : 0;
    mk_str value, element;
    for (unsigned at = 0; mk_headers_next(fields, id, &at, &value);) {
        while (mk_header_list_next(&value, &element)) {
            mk_str name = mk_str_trim(mk_str_cut(&element, ';'));
            if (is_coding(name, coding))
                return parse_weight(element);
            if (!any && mk_str_eq(name, MK_STR("*"))) {
                otherwise = parse_weight(element);
                any = true;
            }
        }
    }
    return otherwise;
}

/* ---- Media types ---- */

/* Returns the next parameter of a type, without its ';'. Quoted strings may contain ';'. */
static mk_str next_parameter(mk_str *rest)
{
    bool quoted = false;
    size_t i = 0;
    for (; i < rest->len && (quoted || rest->p[i] != ';'); i++) {
        if (rest->p[i] == '"')
            quoted = !quoted;
        else if (quoted && rest->p[i] == '\\')
            i++;
    }
    mk_str parameter = mk_str_trim(mk_str_first(*rest, i));
    *rest = i < rest->len ? mk_str_skip(*rest, i + 1) : (mk_str){NULL, 0};
    return parameter;
}

static mk_str unquote_value(mk_str value)
{
    bool quoted = value.len >= 2 && value.p[0] == '"' && value.p[value.len - 1] == '"';
    return quoted ? mk_str_of(value.p + 1, value.len - 2) : value;
}

static bool parameters_are_equal(mk_str a, mk_str b)
{
    mk_str a_name = mk_str_cut(&a, '='), b_name = mk_str_cut(&b, '=');
    return mk_str_eq_nocase(a_name, b_name) && mk_str_eq_nocase(unquote_value(a), unquote_value(b));
}

static bool has_parameter(mk_str parameters, mk_str expected)
{
    while (parameters.p)
        if (parameters_are_equal(next_parameter(&parameters), expected))
            return true;
    return false;
}

static bool is_weight_parameter(mk_str parameter)
{
    return parameter.len >= 2 && mk_char_lower(parameter.p[0]) == 'q' && parameter.p[1] == '=';
}

/* Returns 1 for star/star, 2 for TYPE/star, 3 for the type itself; 0: no match. */
static unsigned match_media_range(mk_str range, mk_str type)
{
    mk_str subtype = type, main_type = mk_str_cut(&subtype, '/');
    mk_str range_sub = range, range_main = mk_str_cut(&range_sub, '/');
    if (mk_str_eq(range, MK_STR("*/*")))
        return 1;
    if (!range_sub.p || !subtype.p || !mk_str_eq_nocase(range_main, main_type))
        return 0;
    if (mk_str_eq(range_sub, MK_STR("*")))
        return 2;
    return mk_str_eq_nocase(range_sub, subtype) ? 3 : 0;
}

/* Returns the specificity of the element's range, or 0 if the type does not match; stores the element's
 * weight in *q. */
static unsigned match_accept_element(mk_str element, mk_str type, mk_str parameters, unsigned *q)
{
    unsigned specific = match_media_range(mk_str_trim(mk_str_cut(&element, ';')), type);
    *q = BEST;
    while (specific && element.p) {
        mk_str parameter = next_parameter(&element);
        if (is_weight_parameter(parameter)) { /* parameters after the weight do not belong to the type */
            *q = parse_qvalue(mk_str_skip(parameter, 2));
            return specific;
        }
        if (parameter.len && !has_parameter(parameters, parameter))
            return 0;
        specific += parameter.len > 0;
    }
    return specific;
}

unsigned mk_negotiate_type_q(const struct mk_headers *fields, mk_str type)
{
    mk_str value, element, parameters = type;
    unsigned best = 0, best_q = 0;
    bool any = false;
    type = mk_str_trim(mk_str_cut(&parameters, ';'));
    for (unsigned at = 0; mk_headers_next(fields, MK_HEADER_ACCEPT, &at, &value);) {
        while (mk_header_list_next(&value, &element)) {
            unsigned q, specific = match_accept_element(element, type, parameters, &q);
            any = true;
            if (specific > best) {
                best = specific;
                best_q = q;
            }
        }
    }
    return any ? best_q : BEST;
}

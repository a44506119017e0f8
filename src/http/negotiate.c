/* SPDX-License-Identifier: Apache-2.0 */
#include "http/negotiate.h"

enum { BEST = 1000, LEAST = 1 };

/* qvalue = ( "0" [ "." 0*3DIGIT ] ) / ( "1" [ "." 0*3("0") ] ), in thousandths. */
static unsigned read_q(mk_str s)
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

/* What stands behind the name of a coding: nothing, or ";q=" with a weight. */
static unsigned read_weight(mk_str parameters)
{
    if (!parameters.p)
        return BEST;
    parameters = mk_str_trim(parameters);
    if (parameters.len < 2 || mk_char_lower(parameters.p[0]) != 'q' || parameters.p[1] != '=')
        return 0;
    return read_q(mk_str_skip(parameters, 2));
}

static bool is_coding(mk_str name, mk_str coding)
{
    if (mk_str_eq_nocase(name, coding))
        return true;
    return mk_str_eq_nocase(name, MK_STR("x-gzip")) && mk_str_eq_nocase(coding, MK_STR("gzip"));
}

unsigned mk_accept_q(const struct mk_fields *fields, enum mk_field_id id, mk_str coding)
{
    bool identity = mk_str_eq_nocase(coding, MK_STR("identity")), any = false;
    if (!mk_fields_has(fields, id))
        return identity ? BEST : 0;
    unsigned otherwise = identity ? LEAST : 0;
    mk_str value, element;
    for (unsigned at = 0; mk_fields_next(fields, id, &at, &value);) {
        while (mk_element_next(&value, &element)) {
            mk_str name = mk_str_trim(mk_str_cut(&element, ';'));
            if (is_coding(name, coding))
                return read_weight(element);
            if (!any && mk_str_eq(name, MK_STR("*"))) {
                otherwise = read_weight(element);
                any = true;
            }
        }
    }
    return otherwise;
}

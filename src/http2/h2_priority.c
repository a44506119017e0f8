/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/h2_priority.h"

/* A list member without its parameters ("u=1;x=2"). */
static mk_str next_member(mk_str *list)
{
    size_t n = mk_str_find(*list, ',');
    bool last = n >= list->len;
    mk_str member = mk_str_first(*list, n);
    *list = last ? mk_str_skip(*list, list->len) : mk_str_skip(*list, n + 1);
    n = mk_str_find(member, ';');
    return mk_str_trim(mk_str_first(member, n));
}

struct mk_h2_priority mk_h2_priority_parse(mk_str value)
{
    struct mk_h2_priority p = {.urgency = MK_URGENCY_USUAL};
    while (value.len) {
        mk_str m = next_member(&value);
        bool is_urgency = m.len == 3 && m.p[0] == 'u' && m.p[1] == '=';
        if (is_urgency && m.p[2] >= '0' && m.p[2] < '0' + MK_URGENCIES)
            p.urgency = (uint8_t)(m.p[2] - '0');
        else if (mk_str_eq(m, MK_STR("i")) || mk_str_eq(m, MK_STR("i=?1")))
            p.incremental = true;
        else if (mk_str_eq(m, MK_STR("i=?0")))
            p.incremental = false;
    }
    return p;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "hops.h"

#include <monkey/text.h>

/* The field, if there is one. False: there are more, or it is no number. */
static bool find_limit(const struct mk_request *request, mk_str *found)
{
    mk_str name, value;
    *found = MK_ABSENT;
    for (size_t i = 0; mk_request_field_at(request, i, &name, &value); i++) {
        if (mk_request_field_role(request, i) != MK_ROLE_MAX_FORWARDS)
            continue;
        if (found->p || !value.len)
            return false;
        *found = value;
    }
    for (size_t i = 0; i < found->len; i++)
        if (!mk_char_is_digit(found->p[i]))
            return false;
    return true;
}

/* One that is larger becomes the largest that we know. */
static uint32_t number_of(mk_str digits)
{
    uint64_t n;
    return mk_num_parse(digits, &n) && n <= UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

/* This server is the last one. It reflects no TRACE: scripts could read fields that browsers hide from them. */
static enum mk_verdict answer(struct proxy_call *c, enum mk_method method)
{
    c->step = PROXY_OVER;
    if (method == MK_METHOD_OPTIONS && !mk_response_set_status(c->response, 200) &&
        !mk_response_set_static(c->response, MK_STR("")))
        return MK_DONE;
    (void)mk_response_set_status(c->response, method == MK_METHOD_TRACE ? 501 : 503);
    return MK_REFUSE;
}

bool proxy_hops_end(struct proxy_call *c, enum mk_verdict *verdict)
{
    enum mk_method method = mk_request_method(c->request);
    mk_str limit;
    if ((method != MK_METHOD_OPTIONS && method != MK_METHOD_TRACE) || c->route->is_part)
        return false;
    if (!find_limit(c->request, &limit)) {
        (void)mk_response_set_status(c->response, 400);
        *verdict = MK_REFUSE;
        return true;
    }
    uint32_t n = limit.p ? number_of(limit) : 0;
    if (limit.p && n == 0) {
        *verdict = answer(c, method);
        return true;
    }
    c->hops = (struct proxy_hops){.is_limited = limit.p, .left = n - (limit.p != NULL)};
    return false;
}

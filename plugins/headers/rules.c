/* SPDX-License-Identifier: Apache-2.0 */
#include "rules.h"

#include <errno.h>
#include <monkey/log.h>
#include <monkey/request.h>

/* Adds the header. Omits it if out of memory. */
static void add_rule_header(struct response_facts *facts, const struct rule *r)
{
    mk_str value = r->template ? mk_format_expand(r->template, facts->request) : r->value;
    if (value.p)
        headers_response_add(facts, r->name, value);
}

void headers_rules_apply(const struct rules *rules, struct response_facts *facts)
{
    for (const struct rule *r = rules->v; r < rules->v + rules->n; r++) {
        if (!headers_condition_matches(&r->when, facts))
            continue;
        if (r->is_type) /* caches the type while the response still has the header */
            (void)headers_response_facts_media_type(facts);
        if (r->kind != RULE_ADD)
            headers_response_remove(facts, r->name);
        if (r->kind != RULE_REMOVE)
            add_rule_header(facts, r);
    }
}

static int apply_to_request(const struct rule *r, struct mk_request *request)
{
    if (r->kind == RULE_REMOVE)
        return mk_request_remove_header(request, r->name);
    mk_str value = r->template ? mk_format_expand(r->template, request) : r->value;
    if (!value.p)
        return -ENOMEM;
    return r->kind == RULE_SET ? mk_request_set_header(request, r->name, value)
                               : mk_request_add_header(request, r->name, value);
}

/* A request whose headers cannot be changed is rejected: a backend trusts the headers that a rule sets. */
static unsigned reject_request(struct mk_request *request, const struct rule *r, int e)
{
    unsigned status = e == -ENOMEM ? 503 : e == -E2BIG ? 431 : 400;
    mk_request_log(request, MK_LOG_WARN, "headers: cannot change the request header %.*s: %s: %u",
                   MK_STR_ARG(r->name),
                   e == -ENOMEM  ? "out of memory"
                   : e == -E2BIG ? "too many headers"
                                 : "its value contains a control character",
                   status);
    return status;
}

unsigned headers_rules_apply_to_request(const struct rules *rules, struct mk_request *request)
{
    mk_str path = mk_request_path(request);
    for (const struct rule *r = rules->v; r < rules->v + rules->n; r++) {
        if (r->when.has_path && !mk_pattern_matches(&r->when.path, path))
            continue;
        mk_request_explain(request, "headers", "%.*s request header %.*s",
                           MK_STR_ARG(headers_rule_words[r->kind]), MK_STR_ARG(r->name));
        int e = apply_to_request(r, request);
        if (e)
            return reject_request(request, r, e);
    }
    return 0;
}

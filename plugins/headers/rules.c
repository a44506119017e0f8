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

/* The paths that decide which rules apply to a request. */
struct request_paths {
    mk_str path;
    const mk_str *variants;
    size_t n;
    bool *has_matched; /* which rules, by index, apply to this path or to the path before an index file or a
                        * fallback; NULL: no rule has a path */
};

void headers_rules_begin_path(const struct rules *rules, const struct mk_request *request)
{
    bool *has_matched = rules->has_path ? mk_request_attached(request, rules) : NULL;
    if (has_matched)
        memset(has_matched, 0, rules->n * sizeof *has_matched);
}

/* Returns 0 or a status with which to reject the request. */
static unsigned find_request_paths(const struct rules *rules, struct mk_request *request,
                                   struct request_paths *out)
{
    *out = (struct request_paths){.path = mk_request_path(request)};
    if (!rules->has_path)
        return 0;
    unsigned status = mk_request_variants(request, &out->variants, &out->n);
    if (status || (out->has_matched = mk_request_attached(request, rules)))
        return status;
    out->has_matched = mk_request_alloc(request, rules->n * sizeof *out->has_matched);
    if (!out->has_matched)
        return 503;
    memset(out->has_matched, 0, rules->n * sizeof *out->has_matched);
    return mk_request_attach(request, rules, out->has_matched, NULL) ? 503 : 0;
}

/* Does the rule treat a variant differently from the path? A script that handles the rest of the path may rely
 * on a rule for that rest, but not on the absence of a rule for the script. The backend relates headers to the
 * path of the request, and never to its Destination. */
static bool distinguishes_variants(const struct rule *r, const struct mk_request *request,
                                   const struct request_paths *paths, bool matches)
{
    for (size_t i = 0; i < paths->n; i++) {
        enum mk_variant kind = mk_request_variant_kind(request, i);
        if (kind == MK_VARIANT_DESTINATION || (kind == MK_VARIANT_AFTER_SCRIPT && matches))
            continue;
        if (mk_pattern_matches(&r->when.path, paths->variants[i]) != matches)
            return true;
    }
    return false;
}

/* Gateways must not get a request if a backend might derive a path from it to which other rules apply: the
 * backend trusts the headers that the rules set. */
static bool applies_to_request(const struct rules *rules, const struct rule *r, struct mk_request *request,
                               const struct request_paths *paths)
{
    if (!r->when.has_path)
        return true;
    bool matches = mk_pattern_matches(&r->when.path, paths->path);
    bool *has_matched = &paths->has_matched[r - rules->v];
    if (distinguishes_variants(r, request, paths, matches)) {
        mk_request_explain(request, "headers",
                           "%.*s %.*s: decides differently for the path as a backend interprets it: gateways "
                           "respond with 400 (unless the route sets paths=raw)",
                           MK_STR_ARG(headers_rule_words[r->kind]), MK_STR_ARG(r->written));
        mk_request_set_ambiguous(request);
    }
    *has_matched = *has_matched || matches;
    return *has_matched;
}

unsigned headers_rules_apply_to_request(const struct rules *rules, struct mk_request *request)
{
    struct request_paths paths;
    unsigned status = find_request_paths(rules, request, &paths);
    if (status)
        return status;
    for (const struct rule *r = rules->v; r < rules->v + rules->n; r++) {
        if (!applies_to_request(rules, r, request, &paths))
            continue;
        mk_request_explain(request, "headers", "%.*s request header %.*s",
                           MK_STR_ARG(headers_rule_words[r->kind]), MK_STR_ARG(r->name));
        int e = apply_to_request(r, request);
        if (e)
            return reject_request(request, r, e);
    }
    return 0;
}

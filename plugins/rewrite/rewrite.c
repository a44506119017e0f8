/* SPDX-License-Identifier: Apache-2.0 */
/* Applies rules that redirect clients or rewrite paths. */
#include <errno.h>
#include <monkey/version.h>

#include "rules.h"

MK_PLUGIN_DECLARE(rewrite);
static const struct mk_plugin *const self = &MK_PLUGIN_OF(rewrite);

enum { TARGET_MAX = 64 * 1024 };

/* ---- Logging ---- */

/* A worker's state for limiting log messages, so that clients cannot flood the log. */
struct quiet {
    int64_t logged; /* time of the last message, in seconds */
};

static void log_mismatch_rate_limited(struct mk_request *request, const struct rule *rule, const char *what)
{
    struct mk_worker *worker = mk_request_worker(request);
    struct quiet *quiet = worker ? mk_worker_data(worker, self) : NULL;
    mk_request_explain(request, "rewrite", "%.*s %.*s: %s", MK_STR_ARG(rule->key), MK_STR_ARG(rule->value),
                       what);
    if (!quiet || quiet->logged == mk_worker_now(worker))
        return;
    quiet->logged = mk_worker_now(worker);
    mk_request_log(request, MK_LOG_WARN, "%.*s %.*s does not match: %s", MK_STR_ARG(rule->key),
                   MK_STR_ARG(rule->value), what);
}

/* ---- Rule actions ---- */

static enum mk_verdict respond_error(struct mk_response *response, unsigned status)
{
    (void)mk_response_set_status(response, status);
    return MK_ERROR;
}

static enum mk_verdict respond_redirect(struct mk_response *response, unsigned status, mk_str url)
{
    if (mk_response_set_status(response, status) ||
        mk_response_add_header(response, MK_STR("Location"), url) ||
        mk_response_add_header_nocopy(response, MK_STR("Content-Type"), MK_STR("text/html; charset=utf-8")) ||
        mk_response_set_body_nocopy(
            response, MK_STR("<!doctype html>\n<html lang=\"en\"><head><title>Moved</title></head>\n"
                             "<body><p>Moved.</p></body></html>\n")))
        return respond_error(response, 503);
    return MK_DONE;
}

/* The state of a request that a rule has changed. */
struct rewrite_state {
    bool is_last;  /* no further rule applies */
    mk_str judged; /* the path that limits and auth have checked; absent: unknown */
};

static struct rewrite_state *get_rewrite_state(struct mk_request *request)
{
    struct rewrite_state *p = mk_request_attached(request, self);
    if (p || !(p = mk_request_alloc(request, sizeof *p)))
        return p;
    *p = (struct rewrite_state){0};
    return mk_request_attach(request, self, p, NULL) ? NULL : p;
}

/* Returns whether the result is the current target. If so, rule processing ends. */
static bool is_current_target(const struct mk_request *request, mk_str target)
{
    struct mk_buf here = mk_buf_growing(TARGET_MAX);
    rewrite_target_print_current(request, &here);
    bool is = !here.failed && mk_str_eq(mk_buf_str(&here), target);
    mk_buf_free(&here);
    return is;
}

static enum mk_verdict rewrite_request(struct mk_request *request, struct mk_response *response,
                                       mk_str target)
{
    int e = mk_request_rewrite(request, target);
    return e == 0 ? MK_REWRITTEN : respond_error(response, e == -EINVAL ? 400 : 503);
}

static enum mk_verdict apply_rewrite(const struct rule *rule, struct mk_request *request,
                                     struct mk_response *response, mk_str target)
{
    struct rewrite_state *past = rule->last ? get_rewrite_state(request) : NULL;
    if (rule->last && !past)
        return respond_error(response, 503);
    if (past)
        past->is_last = true;
    return is_current_target(request, target) ? MK_NEXT : rewrite_request(request, response, target);
}

/* A redirect that depends on a file reveals whether the file exists. So the request is first rewritten to its
 * own path: then limits and auth check it before the rules see it again. */
static enum mk_verdict recheck_original_path(struct rewrite_state *past, struct mk_request *request,
                                             struct mk_response *response)
{
    struct mk_buf here = mk_buf_growing(TARGET_MAX);
    past->judged = mk_request_path(request);
    rewrite_target_print_current(request, &here);
    enum mk_verdict v =
        here.failed ? respond_error(response, 503) : rewrite_request(request, response, mk_buf_str(&here));
    mk_buf_free(&here);
    return v;
}

static enum mk_verdict apply_rule(const struct rule *rule, struct mk_request *request,
                                  struct mk_response *response, mk_str target)
{
    mk_request_explain(request, "rewrite", "%.*s %.*s: %.*s", MK_STR_ARG(rule->key), MK_STR_ARG(rule->value),
                       MK_STR_ARG(target));
    return rule->status ? respond_redirect(response, rule->status, target)
                        : apply_rewrite(rule, request, response, target);
}

/* Returns false if the rule does not match. */
static bool try_rule(const struct rule *rule, struct mk_request *request, struct mk_response *response,
                     enum mk_verdict *verdict)
{
    struct mk_regex_captures found;
    const char *error;
    if (!rewrite_rule_matches(rule, request, &found, &error)) {
        if (error)
            log_mismatch_rate_limited(request, rule, error);
        return false;
    }
    struct mk_buf target = mk_buf_growing(TARGET_MAX);
    bool can = rewrite_target_expand(rule, request, &found, &target);
    if (can)
        *verdict = apply_rule(rule, request, response, mk_buf_str(&target));
    else if (target.failed)
        *verdict = respond_error(response, 503);
    else
        log_mismatch_rate_limited(request, rule, "the request has no Host");
    can = can || target.failed;
    mk_buf_free(&target);
    return can;
}

/* A rule may protect paths of a program: if a program may interpret the path as one that the rule covers,
 * gateways must not get the request. */
static void mark_ambiguous_variants(const struct rule *rule, struct mk_request *request)
{
    const mk_str *variants;
    size_t n;
    bool is_unclear = mk_request_variants(request, &variants, &n) != 0;
    if (is_unclear ? !rewrite_rule_conditions_may_hold(rule, request)
                   : !rewrite_rule_may_match_variants(rule, request, variants, n))
        return;
    mk_request_explain(request, "rewrite",
                       "%.*s %.*s: does not match, but might match the path as a backend interprets it: "
                       "gateways respond with 400 (unless the route sets paths=raw)",
                       MK_STR_ARG(rule->key), MK_STR_ARG(rule->value));
    mk_request_set_ambiguous(request);
}

static enum mk_verdict on_request(struct mk_request *request, struct mk_response *response, void *host_data)
{
    const struct rules *rules = host_data;
    struct rewrite_state *past = mk_request_attached(request, self);
    enum mk_verdict verdict = MK_NEXT;
    mk_str path = mk_request_path(request);
    if (!mk_str_starts(path, MK_STR("/")) || (past && past->is_last))
        return MK_NEXT;
    const struct rule *r = rules->first;
    for (; (r = rewrite_rules_skip(rules, r, request)); r = r->next) {
        if (r->rechecks_access && !(past && mk_str_eq(past->judged, path))) {
            past = get_rewrite_state(request);
            return past ? recheck_original_path(past, request, response) : respond_error(response, 503);
        }
        if (try_rule(r, request, response, &verdict))
            return verdict;
        mark_ambiguous_variants(r, request);
    }
    return MK_NEXT;
}

/* ---- Configuration and lifetime ---- */

static int compile_regex(struct mk_config *config, struct rule *r)
{
    struct mk_regex_error error;
    if (r->kind != KIND_REGEX || r->regex)
        return 0;
    r->regex = mk_regex_new(r->pattern, r->nocase, &error);
    if (!r->regex)
        return -ENOMEM;
    if (mk_config_add_cleanup(config, mk_regex_free, r->regex))
        return 0;
    mk_regex_free(r->regex);
    r->regex = NULL;
    return -ENOMEM;
}

static void mark_rules_before_file_redirects(const struct rules *rules)
{
    struct rule *r, *last = NULL;
    for (r = rules->first; r; r = r->next)
        last = r->status ? r : last;
    for (r = last ? rules->first : NULL; r; r = r == last ? NULL : r->next)
        r->rechecks_access = rewrite_rule_checks_files(r);
}

static int bind_vhost(struct mk_config *config, struct mk_vhost *host, void *data, void **host_data)
{
    struct rules *rules = mk_config_section(config, &rewrite_rules_table, NULL);
    (void)host;
    (void)data;
    if (!rules)
        return 0;
    if (rules->pending)
        mk_config_error(config, rules, "When", "condition without a rule after it");
    for (struct rule *r = rules->first; r; r = r->next) {
        int e = compile_regex(config, r);
        if (e)
            return e;
    }
    mark_rules_before_file_redirects(rules);
    if (!rewrite_rules_index(config, rules))
        return -ENOMEM;
    *host_data = rules->first ? rules : NULL;
    return 0;
}

static int worker_start(struct mk_worker *worker, void *data)
{
    struct quiet *quiet = mk_mem_zalloc(1, sizeof *quiet);
    (void)data;
    mk_worker_set_data(worker, self, quiet);
    return quiet ? 0 : -ENOMEM;
}

static void worker_stop(struct mk_worker *worker, void *data)
{
    (void)data;
    mk_mem_free(mk_worker_data(worker, self));
}

static const struct mk_conf_table *const sections[] = {&rewrite_rules_table, NULL};

MK_PLUGIN(rewrite) = {
    MK_PLUGIN_HEAD,
    .name = "rewrite",
    .version = MONKEY_VERSION,
    .help = "Redirects and rewrites requests by prefix, glob or regular expression.",
    .priority = MK_PRIORITY_REWRITE,
    .sections = sections,
    .host = bind_vhost,
    .worker_start = worker_start,
    .worker_stop = worker_stop,
    .on_request = on_request,
};

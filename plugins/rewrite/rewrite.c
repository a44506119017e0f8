/* SPDX-License-Identifier: Apache-2.0 */
/* Sends clients elsewhere, or lets a path stand for another one, by rules. */
#include <errno.h>
#include <monkey/version.h>

#include "rules.h"

MK_PLUGIN_DECLARE(rewrite);
static const struct mk_plugin *const self = &MK_PLUGIN_OF(rewrite);

enum { TARGET_MAX = 64 * 1024 };

/* ---- Logging ---- */

/* Of a worker: a client must not be able to fill the log. */
struct quiet {
    int64_t logged; /* the second of the last message */
};

static void log_once(struct mk_request *request, const struct rule *rule, const char *what)
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

/* ---- What a rule does ---- */

static enum mk_verdict refuse(struct mk_response *response, unsigned status)
{
    (void)mk_response_set_status(response, status);
    return MK_REFUSE;
}

static enum mk_verdict redirect(struct mk_response *response, unsigned status, mk_str url)
{
    if (mk_response_set_status(response, status) || mk_response_add(response, MK_STR("Location"), url) ||
        mk_response_add_static(response, MK_STR("Content-Type"), MK_STR("text/html; charset=utf-8")) ||
        mk_response_set_static(response,
                               MK_STR("<!doctype html>\n<html lang=\"en\"><head><title>Moved</title></head>\n"
                                      "<body><p>Moved.</p></body></html>\n")))
        return refuse(response, 503);
    return MK_DONE;
}

/* Is that where the request is already? Then the rules are done with. */
static bool is_here(const struct mk_request *request, mk_str target)
{
    struct mk_buf here = mk_buf_growing(TARGET_MAX);
    mk_str query = mk_request_query(request);
    mk_url_escape(&here, mk_request_path(request));
    if (query.p)
        mk_buf_add_char(&here, '?');
    mk_buf_add(&here, query);
    bool is = !here.failed && mk_str_eq(mk_buf_str(&here), target);
    mk_buf_free(&here);
    return is;
}

static enum mk_verdict rewrite(const struct rule *rule, struct mk_request *request,
                               struct mk_response *response, mk_str target)
{
    /* Only its address matters: whether something is attached. */
    if (rule->last && mk_request_attach(request, self, (void *)(uintptr_t)rule, NULL))
        return refuse(response, 503);
    if (is_here(request, target))
        return MK_NEXT;
    int e = mk_request_rewrite(request, target);
    return e == 0 ? MK_NEXT : refuse(response, e == -EINVAL ? 400 : 503);
}

static enum mk_verdict apply(const struct rule *rule, struct mk_request *request,
                             struct mk_response *response, mk_str target)
{
    mk_request_explain(request, "rewrite", "%.*s %.*s: %.*s", MK_STR_ARG(rule->key), MK_STR_ARG(rule->value),
                       MK_STR_ARG(target));
    return rule->status ? redirect(response, rule->status, target) : rewrite(rule, request, response, target);
}

/* False: the rule does not match after all. */
static bool try_rule(const struct rule *rule, struct mk_request *request, struct mk_response *response,
                     enum mk_verdict *verdict)
{
    struct captures found;
    const char *why;
    if (!rewrite_rule_matches(rule, request, &found, &why)) {
        if (why)
            log_once(request, rule, why);
        return false;
    }
    struct mk_buf target = mk_buf_growing(TARGET_MAX);
    bool can = rewrite_target_print(rule, request, &found, &target);
    if (can)
        *verdict = apply(rule, request, response, mk_buf_str(&target));
    else if (target.failed)
        *verdict = refuse(response, 503);
    else
        log_once(request, rule, "the client did not say which host it wants");
    can = can || target.failed;
    mk_buf_free(&target);
    return can;
}

static enum mk_verdict on_request(struct mk_request *request, struct mk_response *response, void *host_data)
{
    const struct rules *rules = host_data;
    enum mk_verdict verdict = MK_NEXT;
    if (!mk_str_starts(mk_request_path(request), MK_STR("/")) || mk_request_attached(request, self))
        return MK_NEXT;
    for (const struct rule *r = rules->first; r; r = r->next)
        if (try_rule(r, request, response, &verdict))
            return verdict;
    return MK_NEXT;
}

/* ---- Life ---- */

static int take_regex(struct mk_config *config, struct rule *r)
{
    struct regex_error why;
    if (r->kind != KIND_REGEX || r->regex)
        return 0;
    r->regex = rewrite_regex_new(r->pattern, r->nocase, &why);
    if (!r->regex)
        return -ENOMEM;
    if (mk_config_on_end(config, rewrite_regex_free, r->regex))
        return 0;
    rewrite_regex_free(r->regex);
    r->regex = NULL;
    return -ENOMEM;
}

static int take_host(struct mk_config *config, struct mk_host *host, void *data, void **host_data)
{
    struct rules *rules = mk_config_section(config, &rewrite_rules_table, NULL);
    (void)host;
    (void)data;
    if (!rules)
        return 0;
    if (rules->pending)
        mk_config_error(config, rules, "When", "a condition stands before the rule that it is for");
    for (struct rule *r = rules->first; r; r = r->next) {
        int e = take_regex(config, r);
        if (e)
            return e;
    }
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
    .help = "Redirects and internal rewrites by prefix, glob or regular expression.",
    .order = MK_ORDER_REWRITE,
    .sections = sections,
    .host = take_host,
    .worker_start = worker_start,
    .worker_stop = worker_stop,
    .on_request = on_request,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* Applies access rules, and determines the client's real address behind proxies. */
#include <errno.h>

#include "accept.h"

MK_PLUGIN_DECLARE(security);

static struct security_worker *get_worker_state(struct mk_worker *w)
{
    return w ? mk_worker_data(w, &MK_PLUGIN_OF(security)) : NULL;
}

static enum mk_verdict on_accept(struct mk_conn *c, void *data)
{
    const struct security *all = data;
    return security_accept_check(c, all,
                                 all->requires_proxy_header ? get_worker_state(mk_conn_worker(c)) : NULL);
}

/* ---- Requests ---- */

/* Returns false if out of memory. */
static bool find_real_client(const struct security_policy *place, struct mk_request *request)
{
    const struct security_real_ip *real = &place->real;
    const struct mk_addr *proxy = mk_request_client_addr(request);
    if (!mk_network_set_contains(place->trusted, proxy))
        return true;
    mk_request_trust_proxy(request);
    if (!real->trusted)
        return true;
    struct security_client client = {.peer = *proxy};
    struct mk_worker *w = mk_request_worker(request);
    if (security_real_ip_find(real, request, &client) == SECURITY_REAL_IP_INVALID)
        security_log_proxy_fault(get_worker_state(w), w, &client.peer,
                                 "invalid client address in its header");
    security_real_ip_find_scheme(real, request, &client);
    if (client.knows_scheme)
        mk_request_set_secure(request, client.is_secure);
    return mk_request_set_client_addr(request, &client.peer) == 0;
}

/* A regular expression that exceeds its limit denies the request. */
static bool rule_matches(const struct security_rule *rule, struct mk_request *request, mk_str path)
{
    unsigned found = rule->is_indexed ? MK_CONDITION_FROM : 0;
    enum mk_regex_result result = mk_conditions_match_path(rule->conditions, request, path, found);
    return rule->allows ? result == MK_REGEX_MATCH : result != MK_REGEX_NO_MATCH;
}

/* Skips rules that cannot match, unless a rule that was found by its networks comes first. */
static const struct security_rule *next_candidate(struct security_walk *w, struct mk_request *request,
                                                  mk_str path)
{
    const struct security_policy *p = w->place;
    if (w->other < p->n_others && p->others[w->other] < w->found)
        w->other = mk_condition_index_next(p->index, request, path, w->other);
    return security_walk_next(w);
}

static const struct security_rule *find_matching_rule(const struct security_policy *place,
                                                      struct mk_request *request, mk_str path)
{
    struct security_walk walk = security_walk_of(place, mk_request_client_addr(request));
    const struct security_rule *rule;
    while ((rule = next_candidate(&walk, request, path)) && !rule_matches(rule, request, path))
        ;
    return rule;
}

static ssize_t read_empty_body(void *ctx, char *buf, size_t cap)
{
    (void)ctx;
    (void)buf;
    (void)cap;
    return 0;
}

static enum mk_verdict respond_denied(struct mk_response *response, unsigned status)
{
    static const struct mk_body_source_ops nothing = {.read = read_empty_body};
    mk_response_set_status(response, status == SECURITY_404 ? 404 : 403);
    if (status == SECURITY_CLOSE && mk_response_set_raw_source(response, &nothing, NULL) == 0)
        return MK_DONE;
    return MK_ERROR;
}

static void explain_match(struct mk_request *request, const struct security_rule *rule, mk_str path)
{
    mk_request_explain(request, "security", "%.*s %.*s%s%.*s", MK_STR_ARG(rule->key), MK_STR_ARG(rule->value),
                       path.p ? ", for a path that might be interpreted as " : "", MK_STR_ARG(path));
}

/* Returns the path in the form that rules match: in lower case if there is a buffer. */
static mk_str lowercase_for_rules(mk_str path, char *buf)
{
    for (size_t i = 0; buf && i < path.len; i++)
        buf[i] = mk_char_lower(path.p[i]);
    return buf ? mk_str_of(buf, path.len) : path;
}

static bool is_path_denied(const struct security_policy *place, struct mk_request *request, mk_str path)
{
    const struct security_rule *rule = find_matching_rule(place, request, path);
    if (rule)
        explain_match(request, rule, mk_str_of(NULL, 0));
    return rule && !rule->allows;
}

/* Checks the i-th variant. A rule that matches both the PATH_INFO after a script and the whole path does not
 * deny the PATH_INFO, because an earlier rule has allowed the path. */
static bool is_variant_denied(const struct security_policy *place, struct mk_request *request, mk_str path,
                              mk_str variant, size_t i)
{
    const struct security_rule *rule = find_matching_rule(place, request, variant);
    if (!rule || rule->allows)
        return false;
    if (mk_request_variant_kind(request, i) == MK_VARIANT_AFTER_SCRIPT && rule_matches(rule, request, path))
        return false;
    explain_match(request, rule, variant);
    return true;
}

static size_t longest_path_len(mk_str path, const mk_str *variants, size_t n)
{
    size_t len = path.len;
    for (size_t i = 0; i < n; i++)
        len = variants[i].len > len ? variants[i].len : len;
    return len;
}

/* Checks the path and its variants. Returns 0, 403, or another status if the variants cannot be
 * determined. */
static unsigned check_path_and_variants(const struct security_policy *place, struct mk_request *request)
{
    mk_str path = mk_request_path(request);
    bool by_path = place->subjects & (MK_CONDITION_PATH | MK_CONDITION_CONTAINS);
    const mk_str *variants = NULL;
    size_t n = 0;
    unsigned status = by_path ? mk_request_variants(request, &variants, &n) : 0;
    if (status)
        return status;
    char *buf = NULL, *other = NULL;
    if (by_path && place->ignore_case) {
        size_t len = longest_path_len(path, variants, n) + 1;
        buf = mk_request_alloc(request, 2 * len);
        other = buf + len;
        if (!buf)
            return 503;
    }
    path = lowercase_for_rules(path, buf);
    if (is_path_denied(place, request, path))
        return 403;
    for (size_t i = 0; i < n; i++)
        if (is_variant_denied(place, request, path, lowercase_for_rules(variants[i], other), i))
            return 403;
    return 0;
}

static enum mk_verdict on_request(struct mk_request *request, struct mk_response *response, void *host_data)
{
    const struct security_policy *place = host_data;
    unsigned denied = 503;
    if (find_real_client(place, request))
        denied = place->n ? check_path_and_variants(place, request) : 0;
    if (!denied)
        return MK_NEXT;
    if (denied == 403)
        return respond_denied(response, place->status);
    mk_response_set_status(response, denied);
    return MK_ERROR;
}

/* ---- Lifetime ---- */

static int worker_start(struct mk_worker *worker, void *data)
{
    struct security_worker *w = mk_mem_zalloc(1, sizeof *w);
    (void)data;
    if (!w)
        return -ENOMEM;
    mk_worker_set_data(worker, &MK_PLUGIN_OF(security), w);
    return 0;
}

static void worker_stop(struct mk_worker *worker, void *data)
{
    (void)data;
    mk_mem_free(get_worker_state(worker));
    mk_worker_set_data(worker, &MK_PLUGIN_OF(security), NULL);
}

static const struct mk_conf_table *const sections[] = {&security_table, &security_old_table, NULL};

MK_PLUGIN(security) = {
    MK_PLUGIN_HEAD,
    .name = "security",
    .version = "1.0",
    .help = "Allows and denies requests by rules; determines the address of clients behind proxies.",
    .replaces = "mandril",
    .priority = MK_PRIORITY_ADDRESS,
    .sections = sections,
    .load = security_policy_load,
    .host = security_policy_bind_vhost,
    .worker_start = worker_start,
    .worker_stop = worker_stop,
    .on_accept = on_accept,
    .on_request = on_request,
};

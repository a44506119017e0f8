/* SPDX-License-Identifier: Apache-2.0 */
/* Limits how often clients may send requests, and how fast responses are sent. */
#include <errno.h>

#include "rate_key.h"
#include "throttle.h"

enum { TELL_EVERY_MS = 1000, LIST_MAX = LIMITS_THROTTLE_RULES_MAX };

struct limits {
    struct limits_settings *top; /* [LIMITS] above all hosts; NULL: none */
    struct limits_table *table;
};

/* Per-host data. */
struct vhost_limits {
    const struct limits_settings *settings;
    struct limits_table *table;
};

/* A worker's state for throttling log lines about limited clients. */
struct log_throttle {
    uint64_t told_ms;
    bool has_logged; /* the worker has logged before */
    unsigned n;      /* number of limited requests since the last log line */
};

MK_PLUGIN_DECLARE(limits);

/* ---- Configuration ---- */

static int load_plugin(struct mk_config *config, void **data)
{
    struct limits *all = mk_config_alloc(config, sizeof *all);
    if (!all)
        return -ENOMEM;
    all->table = mk_config_shared(config, "limits/table", sizeof *all->table);
    if (!all->table)
        return -ENOMEM;
    if (!all->table->is_ready)
        mk_random(&all->table->key, sizeof all->table->key);
    all->table->is_ready = true;
    all->top = mk_config_section(config, &limits_conf_table, NULL);
    if (all->top)
        limits_settings_assign_ids(all->top, NULL);
    *data = all;
    return 0;
}

static int bind_vhost(struct mk_config *config, struct mk_vhost *host, void *data, void **host_data)
{
    const struct limits *all = data;
    struct limits_settings *s = mk_config_section(config, &limits_conf_table, NULL);
    if (!s || (!s->requests.first && !s->bandwidth.first))
        return 0;
    limits_settings_assign_ids(s, host);
    if (!limits_settings_prepare(config, s))
        return -ENOMEM;
    struct vhost_limits *vhost_limits = mk_config_alloc(config, sizeof *vhost_limits);
    if (!vhost_limits)
        return -ENOMEM;
    *vhost_limits = (struct vhost_limits){.settings = s, .table = all->table};
    *host_data = vhost_limits;
    return 0;
}

/* ---- Requests ---- */

static void log_limit_hit(struct mk_request *request, const char *what, const struct limits_rule *rule)
{
    struct mk_worker *w = mk_request_worker(request);
    struct log_throttle *t = mk_worker_data(w, &MK_PLUGIN_OF(limits));
    uint64_t now = mk_worker_now_ms(w);
    if (!t)
        return;
    t->n++;
    if (t->has_logged && now - t->told_ms < TELL_EVERY_MS)
        return;
    mk_request_log(request, MK_LOG_WARN, "limits: %s by `%.*s` (%u times recently)", what,
                   MK_STR_ARG(rule->written), t->n);
    t->has_logged = true;
    t->told_ms = now;
    t->n = 0;
}

/* The path of a request and its variants. */
struct paths {
    mk_str path;
    const mk_str *variants;
    size_t n;
};

/* Returns 0, or the status to reject the request with. */
static unsigned get_path_variants(const struct mk_request *request, struct paths *out)
{
    *out = (struct paths){.path = mk_request_path(request)};
    return mk_request_variants(request, &out->variants, &out->n);
}

/* Returns the path of the request if `i` is 0, otherwise a variant. */
static mk_str path_or_variant_at(const struct paths *p, size_t i)
{
    return i ? p->variants[i - 1] : p->path;
}

static bool is_path_exempt(const struct limits_exempt *e, struct mk_request *request, mk_str path)
{
    if (limits_settings_match_paths(e->paths, e->n_paths, path))
        return true;
    for (size_t i = 0; (i = mk_condition_index_next(e->index, request, path, i)) < e->n_when; i++)
        if (mk_conditions_match_path(e->when[i], request, path, 0) == MK_REGEX_MATCH)
            return true;
    return false;
}

static bool is_request_exempt(const struct limits_exempt *e, struct mk_request *request,
                              const struct paths *p)
{
    if (mk_network_set_contains(e->set, mk_request_client_addr(request)))
        return true;
    for (size_t i = 0; i <= p->n; i++)
        if (!is_path_exempt(e, request, path_or_variant_at(p, i)))
            return false;
    return true;
}

static bool rule_matches_any_path(const struct limits_rule *rule, struct mk_request *request,
                                  const struct paths *p)
{
    for (size_t i = 0; i <= p->n; i++)
        if (limits_rule_matches(rule, request, path_or_variant_at(p, i)))
            return true;
    return false;
}

/* Skips rules whose conditions are false for all paths. Returns NULL if no rule is left. */
static const struct limits_rule *skip_rules(const struct limits_rules *rules, const struct limits_rule *rule,
                                            struct mk_request *request, const struct paths *p)
{
    size_t at = rule->index - rules->first->index, next = rules->n;
    for (size_t i = 0; i <= p->n && next > at; i++) {
        size_t found = mk_condition_index_next(rules->index, request, path_or_variant_at(p, i), at);
        next = found < next ? found : next;
    }
    return next < rules->n ? rules->at[next] : NULL;
}

/* Returns the first rule, from `rule` on, that may apply to a path of the request; NULL: none. */
static inline const struct limits_rule *next_candidate(const struct limits_rules *rules,
                                                       const struct limits_rule *rule,
                                                       struct mk_request *request, const struct paths *p)
{
    return rule && rules->index ? skip_rules(rules, rule, request, p) : rule;
}

/* Counts a request for the path. Returns how long the client has to wait, in ticks. */
static uint64_t charge_path(const struct limits_rule *rule, struct limits_table *table,
                            struct mk_request *request, mk_str path)
{
    struct limits_charge c = {.cost = rule->interval, .tolerance = rule->tolerance};
    uint64_t subject = limits_rate_key_hash(rule, table, request, path);
    return limits_bucket_charge(limits_table_bucket(table, subject), subject,
                                mk_worker_now_ms(mk_request_worker(request)), &c);
}

/* A rule that counts by path also counts the variants, because `/login;1` and `/login;2` may be the same
 * page. */
static uint64_t charge_path_and_variants(const struct limits_rule *rule, struct limits_table *table,
                                         struct mk_request *request, const struct paths *p)
{
    uint64_t longest = 0;
    if (!(rule->by & LIMITS_BY_PATH))
        return charge_path(rule, table, request, p->path);
    for (size_t i = 0; i <= p->n; i++) {
        uint64_t wait = limits_rule_matches(rule, request, path_or_variant_at(p, i))
                            ? charge_path(rule, table, request, path_or_variant_at(p, i))
                            : 0;
        longest = wait > longest ? wait : longest;
    }
    return longest;
}

static enum mk_verdict respond_429(struct mk_response *response, uint64_t wait)
{
    char buf[24];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    mk_buf_add_num(&text, wait / (1000 * LIMITS_TICKS) + 1);
    mk_response_set_header(response, MK_STR("Retry-After"), mk_buf_str(&text));
    mk_response_set_status(response, 429);
    return MK_ERROR;
}

/* Returns which rules, by index, have matched a path of the request. A rule counts a request once, however
 * many paths a rewrite gives it. */
static bool *matched_rules(struct mk_request *request)
{
    return mk_request_attached(request, &MK_PLUGIN_OF(limits));
}

static bool has_rule_matched(const struct limits_rule *rule, struct mk_request *request)
{
    const bool *list = matched_rules(request);
    return list && list[rule->index];
}

/* Returns false if out of memory. */
static bool mark_rule_matched(const struct limits_settings *s, const struct limits_rule *rule,
                              struct mk_request *request)
{
    bool *list = matched_rules(request);
    if (!list && (list = mk_request_alloc(request, s->n_rules * sizeof *list))) {
        memset(list, 0, s->n_rules * sizeof *list);
        if (mk_request_attach(request, &MK_PLUGIN_OF(limits), list, NULL))
            return false;
    }
    if (list)
        list[rule->index] = true;
    return list;
}

static enum mk_verdict apply_request_rule(const struct vhost_limits *vhost_limits,
                                          const struct limits_rule *rule, struct mk_request *request,
                                          struct mk_response *response, const struct paths *p)
{
    const struct limits_settings *s = vhost_limits->settings;
    mk_request_explain(request, "rate", "Requests %.*s", MK_STR_ARG(rule->written));
    uint64_t wait = charge_path_and_variants(rule, vhost_limits->table, request, p);
    if (wait == 0)
        return MK_NEXT;
    log_limit_hit(request, s->report ? "would be rejected (429)" : "rejected (429)", rule);
    return s->report ? MK_NEXT : respond_429(response, wait);
}

static enum mk_verdict respond_error(struct mk_response *response, unsigned status)
{
    mk_response_set_status(response, status);
    return MK_ERROR;
}

static enum mk_verdict on_request(struct mk_request *request, struct mk_response *response, void *host_data)
{
    const struct vhost_limits *vhost_limits = host_data;
    const struct limits_settings *s = vhost_limits->settings;
    struct paths p;
    unsigned status = get_path_variants(request, &p);
    if (status)
        return respond_error(response, status);
    if (is_request_exempt(&s->exempt, request, &p))
        return MK_NEXT;
    const struct limits_rule *rule;
    for (rule = s->bandwidth.first; (rule = next_candidate(&s->bandwidth, rule, request, &p));
         rule = rule->next)
        if (rule_matches_any_path(rule, request, &p) && !mark_rule_matched(s, rule, request))
            return respond_error(response, 503);
    for (rule = s->requests.first; (rule = next_candidate(&s->requests, rule, request, &p));
         rule = rule->next) {
        if (has_rule_matched(rule, request) || !rule_matches_any_path(rule, request, &p))
            continue;
        if (!mark_rule_matched(s, rule, request))
            return respond_error(response, 503);
        enum mk_verdict v = apply_request_rule(vhost_limits, rule, request, response, &p);
        if (v != MK_NEXT)
            return v;
    }
    return MK_NEXT;
}

/* ---- Responses ---- */

/* Returns the shortest variant, so that clients cannot get another share by adding path parameters or by
 * inventing a Destination. */
static mk_str shortest_variant(const struct mk_request *request, const struct paths *p)
{
    mk_str found = p->path;
    for (size_t i = 0; i < p->n; i++)
        if (p->variants[i].len < found.len && mk_request_variant_kind(request, i) != MK_VARIANT_DESTINATION)
            found = p->variants[i];
    return found;
}

static void on_response(struct mk_request *request, struct mk_response *response, void *host_data)
{
    const struct vhost_limits *vhost_limits = host_data;
    const struct limits_settings *s = vhost_limits->settings;
    const struct limits_rule *list[LIST_MAX];
    size_t n = 0;
    if (!s->bandwidth.first || !mk_response_will_send_body(request, response) ||
        mk_network_set_contains(s->exempt.set, mk_request_client_addr(request)))
        return;
    struct paths p;
    (void)get_path_variants(request, &p); /* on_request() has rejected requests for which this fails */
    bool exempt = is_request_exempt(&s->exempt, request, &p);
    const struct limits_rule *rule = s->bandwidth.first;
    for (; rule && n < LIST_MAX; rule = rule->next) {
        /* A rule that has matched an earlier path still applies. */
        if (!matched_rules(request) && !(rule = next_candidate(&s->bandwidth, rule, request, &p)))
            break;
        if (!has_rule_matched(rule, request) && (exempt || !rule_matches_any_path(rule, request, &p)))
            continue;
        mk_request_explain(request, "rate", "Bandwidth %.*s", MK_STR_ARG(rule->written));
        list[n++] = rule;
    }
    if (n && !s->report)
        limits_throttle_response(vhost_limits->table, list, n, shortest_variant(request, &p), request,
                                 response);
}

/* ---- Lifetime ---- */

static int worker_start(struct mk_worker *worker, void *data)
{
    struct log_throttle *t = mk_mem_zalloc(1, sizeof *t);
    (void)data;
    if (!t)
        return -ENOMEM;
    mk_worker_set_data(worker, &MK_PLUGIN_OF(limits), t);
    return 0;
}

static void worker_stop(struct mk_worker *worker, void *data)
{
    (void)data;
    mk_mem_free(mk_worker_data(worker, &MK_PLUGIN_OF(limits)));
    mk_worker_set_data(worker, &MK_PLUGIN_OF(limits), NULL);
}

static const struct mk_conf_table *const sections[] = {&limits_conf_table, NULL};

MK_PLUGIN(limits) = {
    MK_PLUGIN_HEAD,
    .name = "limits",
    .version = "1.0",
    .help = "Limits requests and bandwidth by address, path or key.",
    .priority = MK_PRIORITY_LIMIT,
    .sections = sections,
    .load = load_plugin,
    .host = bind_vhost,
    .worker_start = worker_start,
    .worker_stop = worker_stop,
    .on_request = on_request,
    .on_response = on_response,
};

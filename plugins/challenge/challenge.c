/* SPDX-License-Identifier: Apache-2.0 */
/* Makes clients solve a computational task before they get a response. The result is a signed cookie, so the server
 * stores nothing. */
#include <errno.h>
#include <monkey/cookie.h>
#include <monkey/form.h>
#include <stdatomic.h>

#include "cache.h"
#include "settings.h"

MK_PLUGIN_DECLARE(challenge);

/* The path of page.js, which requests it with the solution. */
#define ANSWER_PATH "/.well-known/monkey-challenge"
#define COOKIE      "monkey-challenge"

/* Maximum number of cookies of one name that are verified for a request. */
enum { COOKIES_MAX = 4 };

enum { ISSUED, SOLVED, FAILED };

/* The statistics of a host. The first event creates the series: the statistics have room for fewer series than there may
 * be hosts. */
struct challenge_counts {
    struct mk_stat_registry *registry;
    unsigned table;
    mk_str host;
    _Atomic uint32_t series; /* 0: none yet */
};

struct challenge_vhost {
    const struct challenge_settings *settings;
    struct challenge_counts *counts;
};

/* ---- Statistics ---- */

static const struct mk_stat_metric metrics[] = {
    [ISSUED] = {.name = "monkey_challenge_issued_total",
                .help = "Requests that got a challenge.",
                .column = "issued"},
    [SOLVED] = {.name = "monkey_challenge_solved_total",
                .help = "Valid solutions of challenges.",
                .column = "solved"},
    [FAILED] = {.name = "monkey_challenge_failed_total",
                .help = "Rejected solutions of challenges.",
                .column = "failed"},
};
static const struct mk_stat_table stats = {
    .name = "challenges", .labels = {"host"}, .metrics = metrics, .n_metrics = MK_LEN(metrics)};

static uint32_t find_series(struct challenge_counts *c)
{
    uint32_t series = atomic_load(&c->series);
    if (!series)
        series = mk_stat_series(c->registry, c->table, &c->host);
    if (series != MK_STAT_RETRY)
        atomic_store(&c->series, series);
    return series;
}

static void count(const struct challenge_vhost *vhost, struct mk_request *request, unsigned what)
{
    const struct mk_worker *worker = mk_request_worker(request);
    uint64_t *cells = worker ? mk_worker_cells(worker, find_series(vhost->counts)) : NULL;
    if (cells)
        mk_stat_add(&cells[what], 1);
}

/* ---- Responses ---- */

/* Each scheme has a name of its own: browsers do not let a page without TLS replace a cookie with `Secure`. */
static const char *get_cookie_name(const struct mk_request *request)
{
    bool is_tls = mk_str_eq(mk_request_scheme(request), MK_STR("https"));
    return is_tls ? "__Host-" COOKIE : COOKIE;
}

static enum mk_verdict respond_error(struct mk_response *response, unsigned status)
{
    mk_response_set_status(response, status);
    return MK_ERROR;
}

/* Adds what all our responses have in common; on_response() does it again. */
static int add_headers(const struct challenge_settings *s, struct mk_response *response)
{
    int e = mk_response_set_header(response, MK_STR("Cache-Control"), MK_STR("no-store"));
    return e ? e : mk_response_set_header(response, MK_STR("Content-Security-Policy"), s->policy);
}

/* Sends a response with a body, and marks the request for on_response(). */
static enum mk_verdict respond(const struct challenge_vhost *vhost, struct mk_request *request,
                               struct mk_response *response, mk_str type, mk_str body)
{
    if (mk_request_attach(request, &MK_PLUGIN_OF(challenge), request, NULL) ||
        mk_response_add_header_nocopy(response, MK_STR("Content-Type"), type) ||
        add_headers(vhost->settings, response) || mk_response_set_body(response, body))
        return respond_error(response, 503);
    return MK_DONE;
}

static bool wants_page(const struct mk_request *request)
{
    enum mk_method method = mk_request_method(request);
    return (method == MK_METHOD_GET || method == MK_METHOD_HEAD) &&
           mk_request_accepts_type(request, MK_STR("text/html"));
}

/* Frees the page. */
static enum mk_verdict respond_html(const struct challenge_vhost *vhost, struct mk_request *request,
                                    struct mk_response *response, struct mk_buf *page)
{
    enum mk_verdict verdict = page->failed ? respond_error(response, 503)
                                           : respond(vhost, request, response,
                                                     MK_STR("text/html; charset=utf-8"), mk_buf_str(page));
    mk_buf_free(page);
    return verdict;
}

static enum mk_verdict respond_page(const struct challenge_vhost *vhost, struct mk_request *request,
                                    struct mk_response *response, mk_str task)
{
    struct mk_buf page = mk_buf_growing(2 * CHALLENGE_PAGE_MAX);
    challenge_page_write(&vhost->settings->page, task, &page);
    return respond_html(vhost, request, response, &page);
}

static enum mk_verdict respond_challenge(const struct challenge_vhost *vhost, struct mk_request *request,
                                         struct mk_response *response, const struct challenge_scope *scope)
{
    char task[CHALLENGE_TOKEN_LEN];
    const struct challenge_token token = {.bits = vhost->settings->bits, .time = mk_request_time(request)};
    if (!challenge_token_write(scope, CHALLENGE_TASK, &token, task))
        return respond_error(response, 503);
    count(vhost, request, ISSUED);
    mk_request_set_reason(request, "challenged");
    mk_response_set_status(response, challenge_settings_status(vhost->settings));
    if (wants_page(request))
        return respond_page(vhost, request, response, mk_str_of(task, sizeof task));
    return respond(
        vhost, request, response, MK_STR("text/plain; charset=utf-8"),
        MK_STR("This site checks browsers. Open one of its pages in a browser, then repeat this request.\n"));
}

/* ---- Solutions ---- */

static mk_str describe_fault(const struct challenge_vhost *vhost, struct mk_request *request,
                             const struct challenge_scope *scope, const struct mk_form *form,
                             struct challenge_token *task)
{
    mk_str text = mk_form_get(form, "token");
    if (!challenge_target_is_local(mk_form_get(form, "target")))
        return MK_STR("invalid target");
    if (!challenge_token_read(scope, CHALLENGE_TASK, text, task))
        return MK_STR("not a token for this client and host");
    if (!challenge_task_is_fresh(task, mk_request_time(request)))
        return MK_STR("expired token");
    if (task->bits < vhost->settings->bits)
        return MK_STR("token of a lower difficulty");
    if (!challenge_task_is_solved(text, task->bits, mk_form_get(form, "nonce")))
        return MK_STR("wrong nonce");
    return MK_STR_NULL;
}

static enum mk_verdict respond_failed(const struct challenge_vhost *vhost, struct mk_request *request,
                                      struct mk_response *response, mk_str target, mk_str fault)
{
    struct mk_buf page = mk_buf_growing(SIZE_MAX);
    mk_request_log(request, MK_LOG_DEBUG, "challenge: rejected a solution: %.*s", MK_STR_ARG(fault));
    mk_request_explain(request, "challenge", "the solution is rejected: %.*s", MK_STR_ARG(fault));
    count(vhost, request, FAILED);
    mk_request_set_reason(request, "challenge_failed");
    mk_response_set_status(response, 403);
    mk_buf_add(&page, MK_STR("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                             "<title>Check failed</title></head>\n<body><h1>Check failed</h1>"
                             "<p>The check took too long, or your address has changed. <a href=\""));
    mk_html_escape(&page, challenge_target_is_local(target) ? target : MK_STR("/"));
    mk_buf_add(&page, MK_STR("\">Try again</a></p></body></html>\n"));
    return respond_html(vhost, request, response, &page);
}

/* The pass expires a lifetime after the task was issued, so that sending a solution again does not prolong it. */
static enum mk_verdict respond_solved(const struct challenge_vhost *vhost, struct mk_request *request,
                                      struct mk_response *response, const struct challenge_scope *scope,
                                      const struct challenge_token *task, mk_str target)
{
    char text[CHALLENGE_TOKEN_LEN];
    int64_t lifetime = (int64_t)(vhost->settings->lifetime_ms / 1000);
    const struct challenge_token pass = {.bits = task->bits, .time = task->time + lifetime};
    if (!challenge_token_write(scope, CHALLENGE_PASS, &pass, text))
        return respond_error(response, 503);
    const struct mk_cookie cookie = {
        .name = get_cookie_name(request), .value = mk_str_of(text, sizeof text), .max_age = lifetime};
    if (mk_response_add_cookie(request, response, &cookie) ||
        mk_response_add_header(response, MK_STR("Location"), target))
        return respond_error(response, 503);
    count(vhost, request, SOLVED);
    mk_request_set_reason(request, "challenge_solved");
    mk_response_set_status(response, 303);
    return respond(vhost, request, response, MK_STR("text/plain; charset=utf-8"), MK_STR(""));
}

static enum mk_verdict check_solution(const struct challenge_vhost *vhost, struct mk_request *request,
                                      struct mk_response *response, const struct challenge_scope *scope)
{
    struct mk_form form;
    struct challenge_token task;
    enum mk_method method = mk_request_method(request);
    if (method != MK_METHOD_GET && method != MK_METHOD_HEAD) {
        mk_response_set_header(response, MK_STR("Allow"), MK_STR("GET, HEAD"));
        return respond_error(response, 405);
    }
    int e = mk_request_query_form(request, NULL, &form);
    if (e)
        return respond_error(response, mk_form_status(e));
    mk_str fault = describe_fault(vhost, request, scope, &form, &task), target = mk_form_get(&form, "target");
    return fault.p ? respond_failed(vhost, request, response, target, fault)
                   : respond_solved(vhost, request, response, scope, &task, target);
}

/* ---- The hooks ---- */

/* Returns false if the text is no pass for this client and host. */
static bool read_pass(const struct mk_request *request, const struct challenge_scope *scope, mk_str text,
                      struct challenge_token *pass)
{
    const struct mk_worker *worker = mk_request_worker(request);
    struct challenge_cache *cache = worker ? mk_worker_data(worker, &MK_PLUGIN_OF(challenge)) : NULL;
    const struct challenge_token *cached = cache ? challenge_cache_find(cache, scope, text) : NULL;
    if (cached) {
        *pass = *cached;
        return true;
    }
    if (!challenge_token_read(scope, CHALLENGE_PASS, text, pass))
        return false;
    if (cache)
        challenge_cache_store(cache, scope, text, pass);
    return true;
}

static bool is_valid_pass(const struct challenge_settings *s, const struct mk_request *request,
                          const struct challenge_scope *scope, mk_str text)
{
    struct challenge_token pass;
    return read_pass(request, scope, text, &pass) &&
           challenge_pass_is_valid(&pass, s->bits, (int64_t)(s->lifetime_ms / 1000),
                                   mk_request_time(request));
}

/* Looks for a pass in a Cookie header. *n counts the cookies of our name in all headers. */
static bool header_has_pass(const struct challenge_settings *s, const struct mk_request *request,
                            const struct challenge_scope *scope, mk_str header, unsigned *n)
{
    mk_str expected = mk_str_from_c(get_cookie_name(request)), name, value;
    while (mk_cookie_next(&header, &name, &value))
        if (mk_str_eq(name, expected) && (*n)++ < COOKIES_MAX && is_valid_pass(s, request, scope, value))
            return true;
    return false;
}

/* The browser also sends cookies of the same name that another host of the domain has set, possibly first. */
static bool has_pass(const struct challenge_settings *s, const struct mk_request *request,
                     const struct challenge_scope *scope)
{
    mk_str name, value;
    unsigned n = 0;
    for (size_t i = 0; mk_request_header_at(request, i, &name, &value); i++)
        if (mk_str_eq_nocase(name, MK_STR("Cookie")) && header_has_pass(s, request, scope, value, &n))
            return true;
    return false;
}

static enum mk_verdict on_request(struct mk_request *request, struct mk_response *response, void *host_data)
{
    const struct challenge_vhost *vhost = host_data;
    const struct challenge_settings *s = vhost->settings;
    const struct challenge_rule *rule = NULL;
    bool is_answer = mk_str_eq(mk_request_path(request), MK_STR(ANSWER_PATH));
    unsigned status = is_answer ? 0 : challenge_settings_find_rule(s, request, &rule);
    if (status)
        return respond_error(response, status);
    if (!is_answer && !rule)
        return MK_NEXT;
    const struct challenge_scope scope = {
        .key = s->key, .host = mk_request_vhost_name(request), .client = *mk_request_client_addr(request)};
    if (!scope.host.p)
        return respond_error(response, 503);
    if (is_answer)
        return check_solution(vhost, request, response, &scope);
    bool passes = has_pass(s, request, &scope);
    mk_request_explain(request, "challenge", "%.*s %.*s: the client %s", MK_STR_ARG(rule->key),
                       MK_STR_ARG(rule->value), passes ? "has a pass" : "must solve a challenge");
    return passes ? MK_NEXT : respond_challenge(vhost, request, response, &scope);
}

/* Other plugins may have set a policy that forbids our script, or a lifetime in caches. */
static void on_response(struct mk_request *request, struct mk_response *response, void *host_data)
{
    const struct challenge_vhost *vhost = host_data;
    if (mk_request_attached(request, &MK_PLUGIN_OF(challenge)))
        (void)add_headers(vhost->settings, response);
}

/* ---- Configuration and lifetime ---- */

static struct challenge_counts *counts_new(struct mk_config *config, const struct mk_vhost *host)
{
    struct challenge_counts *c = mk_config_alloc(config, sizeof *c);
    struct mk_stat_registry *registry = mk_config_statistics(config);
    if (!c || !registry)
        return NULL;
    c->registry = registry;
    c->table = mk_stat_register_table(registry, &stats);
    c->host = mk_vhost_name(host).len ? mk_vhost_name(host) : MK_STR("-");
    return c;
}

static int bind_vhost(struct mk_config *config, struct mk_vhost *host, void *data, void **host_data)
{
    struct challenge_settings *s = mk_config_section(config, &challenge_table, NULL);
    struct challenge_vhost *vhost = s ? mk_config_alloc(config, sizeof *vhost) : NULL;
    struct challenge_counts *counts = vhost ? counts_new(config, host) : NULL;
    (void)data;
    if (!s)
        return 0;
    int e = counts ? challenge_settings_prepare(config, s) : -ENOMEM;
    if (e)
        return e;
    *vhost = (struct challenge_vhost){.settings = s, .counts = counts};
    *host_data = vhost;
    return 0;
}

static int worker_start(struct mk_worker *worker, void *data)
{
    struct challenge_cache *cache = mk_mem_zalloc(1, sizeof *cache);
    (void)data;
    mk_worker_set_data(worker, &MK_PLUGIN_OF(challenge), cache);
    return cache ? 0 : -ENOMEM;
}

static void worker_stop(struct mk_worker *worker, void *data)
{
    (void)data;
    mk_mem_free(mk_worker_data(worker, &MK_PLUGIN_OF(challenge)));
    mk_worker_set_data(worker, &MK_PLUGIN_OF(challenge), NULL);
}

static const struct mk_conf_table *const sections[] = {&challenge_table, NULL};

MK_PLUGIN(challenge) = {
    MK_PLUGIN_HEAD,
    .name = "challenge",
    .version = "1.0",
    .help = "Makes clients solve a computational task (proof of work) before they get a response.",
    .priority = MK_PRIORITY_LIMIT + 50, /* after redirects and rate limits, before passwords and backends */
    .sections = sections,
    .host = bind_vhost,
    .worker_start = worker_start,
    .worker_stop = worker_stop,
    .on_request = on_request,
    .on_response = on_response,
};

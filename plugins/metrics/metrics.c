/* SPDX-License-Identifier: Apache-2.0 */
/* Counts requests, and serves metrics: as text for Prometheus, as JSON and on a live page. */
#include <errno.h>
#include <monkey/readiness.h>
#include <monkey/version.h>
#include <sys/stat.h>

#include "live.h"
#include "page.h"
#include "snapshot.h"

MK_PLUGIN_DECLARE(metrics);
static const struct mk_plugin *const self = &MK_PLUGIN_OF(metrics);

static enum mk_verdict respond_error(struct mk_response *response, unsigned status)
{
    (void)mk_response_set_status(response, status);
    return MK_ERROR;
}

/* ---- Text ---- */

static bool add_text_headers(struct mk_response *response, mk_str type)
{
    return !mk_response_add_header_nocopy(response, MK_STR("Content-Type"), type) &&
           !mk_response_add_header_nocopy(response, MK_STR("Cache-Control"), MK_STR("no-store")) &&
           !mk_response_add_header_nocopy(response, MK_STR("X-Content-Type-Options"), MK_STR("nosniff"));
}

static enum mk_verdict respond_text(struct mk_response *response, mk_str type, mk_str text)
{
    if (!add_text_headers(response, type) || mk_response_set_body(response, text))
        return respond_error(response, 503);
    return MK_DONE;
}

/* The parts of the page are gzip-compressed in the program, whatever Accept-Encoding says: the page needs a browser
 * anyway, and all browsers decompress. */
static enum mk_verdict respond_part(struct mk_response *response, mk_str type, mk_str gzip)
{
    if (!add_text_headers(response, type) ||
        mk_response_add_header_nocopy(response, MK_STR("Content-Encoding"), MK_STR("gzip")) ||
        mk_response_set_body_nocopy(response, gzip))
        return respond_error(response, 503);
    return MK_DONE;
}

static enum mk_verdict respond_metrics(struct live *l, struct mk_response *response, enum view view)
{
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    metrics_process_reporter_run(&l->reporter, l->worker);
    struct snapshot *s = metrics_snapshot_new(l->worker, l->metrics);
    if (!s)
        return respond_error(response, 503);
    mk_str type = MK_STR("text/plain; version=0.0.4; charset=utf-8");
    if (view == VIEW_JSON) {
        type = MK_STR("application/json");
        metrics_json_print(s, true, &text);
        mk_buf_add_char(&text, '\n');
    } else {
        metrics_prometheus_print(s, &text);
    }
    mk_mem_free(s);
    enum mk_verdict v =
        text.failed ? respond_error(response, 503) : respond_text(response, type, mk_buf_str(&text));
    mk_buf_free(&text);
    return v;
}

/* ---- The page and its parts ---- */

static enum mk_verdict respond_event_stream(struct live *l, struct mk_request *request,
                                            struct mk_response *response, const struct settings *s)
{
    /* Marks the request for on_done: it lasts as long as the page is open, so its duration must not be
     * counted. */
    if (mk_request_attach(request, self, l, NULL) || mk_response_begin_sse(response) ||
        mk_response_set_header(response, MK_STR("Cache-Control"), MK_STR("no-store, no-transform")))
        return respond_error(response, 503);
    if (mk_request_method(request) == MK_METHOD_HEAD)
        return MK_DONE;
    int e = metrics_live_add_viewer(l, request, response, s->viewers);
    if (e == -EBUSY)
        (void)mk_response_add_header_nocopy(response, MK_STR("Retry-After"), MK_STR("10"));
    return e ? respond_error(response, 503) : MK_DONE;
}

static enum mk_verdict respond_certificates(struct live *l, struct mk_response *response)
{
    struct mk_buf list = mk_buf_growing(TEXT_MAX);
    if (!mk_certificate_list_read(l->metrics->certificates, &list))
        mk_buf_add(&list, MK_STR("[]"));
    enum mk_verdict v = list.failed ? respond_error(response, 503)
                                    : respond_text(response, MK_STR("application/json"), mk_buf_str(&list));
    mk_buf_free(&list);
    return v;
}

static enum mk_verdict respond_page(struct live *l, struct mk_request *request, struct mk_response *response,
                                    const struct settings *s)
{
    mk_str part = mk_request_query(request);
    if (mk_str_eq(part, MK_STR("events")))
        return respond_event_stream(l, request, response, s);
    if (mk_str_eq(part, MK_STR("certificates")))
        return respond_certificates(l, response);
    if (mk_str_eq(part, MK_STR("style")))
        return respond_part(response, MK_STR("text/css; charset=utf-8"), metrics_page_style);
    if (mk_str_eq(part, MK_STR("script")))
        return respond_part(response, MK_STR("text/javascript; charset=utf-8"), metrics_page_script);
    if (mk_response_add_header_nocopy(
            response, MK_STR("Content-Security-Policy"),
            MK_STR("default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
                   "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")))
        return respond_error(response, 503);
    return respond_part(response, MK_STR("text/html; charset=utf-8"), metrics_page_html);
}

/* ---- Health ---- */

enum { REASON_MAX = 192 };

static const char *write_component_reason(const struct mk_stat_registry *r, uint32_t series,
                                          struct mk_buf *out)
{
    mk_buf_addf(out, "%.*s: %.*s%c", MK_STR_ARG(mk_stat_label(r, series, MK_READINESS_COMPONENT)),
                MK_STR_ARG(mk_stat_label(r, series, MK_READINESS_REASON)), '\0');
    return out->failed ? "a component is not ready" : out->p;
}

/* Writes the name of the first component that is not ready in this worker, and its reason, to `out`. Returns
 * the text; NULL: all components are ready. */
static const char *find_component_reason(const struct mk_worker *worker, struct mk_buf *out)
{
    const struct mk_stat_registry *r = mk_worker_statistics(worker);
    unsigned table = r ? mk_stat_find(r, MK_READINESS_TABLE) : 0;
    for (uint32_t series = 0; table && (series = mk_stat_next(r, table, series));) {
        const uint64_t *cells = mk_worker_cells(worker, series);
        if (!cells || !mk_stat_get(cells))
            continue;
        return write_component_reason(r, series, out);
    }
    return NULL;
}

/* Finds a component of another server, such as an isolated service, that is not ready in one of its workers:
 * any of these may get a request from this worker. Returns NULL if there is none. */
static const char *find_component_of_others(const struct mk_worker *worker, struct mk_buf *out)
{
    struct mk_stat_source source;
    for (size_t i = 0; mk_worker_statistics_at(worker, i, &source); i++) {
        const char *reason = source.not_serving_reason ? source.not_serving_reason(source.data) : NULL;
        if (reason) {
            mk_buf_addf(out, "%s: %s%c", source.name, reason, '\0');
            return out->failed ? "an isolated service does not serve" : out->p;
        }
        const struct mk_stat_registry *r = source.registry;
        unsigned table = mk_stat_find(r, MK_READINESS_TABLE);
        for (uint32_t series = 0; table && (series = mk_stat_next(r, table, series));)
            if (mk_stat_sum(r, series, 0))
                return write_component_reason(r, series, out);
    }
    return NULL;
}

/* Returns why the worker is not ready; NULL if it is ready. The text may be in `buf`. */
static const char *not_ready_reason(const struct live *l, const struct settings *s, struct mk_buf *buf)
{
    struct mk_worker_stats stats;
    struct stat st;
    if (mk_worker_is_draining(l->worker))
        return "draining";
    if (s->not_ready_file.p && stat(s->not_ready_file.p, &st) == 0)
        return "taken out of service";
    for (size_t i = 0; s->ready_connections && mk_worker_stats_at(l->worker, i, &stats); i++)
        if (stats.pid == l->reporter.pid && stats.open > s->ready_connections)
            return "too many connections";
    const char *reason = find_component_reason(l->worker, buf);
    return reason ? reason : find_component_of_others(l->worker, buf);
}

static enum mk_verdict respond_readiness(const struct live *l, struct mk_response *response,
                                         const struct settings *s)
{
    char buf[REASON_MAX + 32], reason_buf[REASON_MAX];
    struct mk_buf found = mk_buf_fixed(reason_buf, sizeof reason_buf);
    const char *reason = not_ready_reason(l, s, &found);
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    if (!reason)
        return respond_text(response, MK_STR("text/plain"), MK_STR("ready\n"));
    mk_buf_addf(&text, "not ready: %s\n", reason);
    (void)mk_response_set_status(response, 503);
    return respond_text(response, MK_STR("text/plain"), mk_buf_str(&text));
}

/* ---- The handler ---- */

static const char *const view_words[VIEWS] = {"prometheus", "json", "page", "health", "ready"};

static bool bind_view_handler(const struct mk_conf_ctx *ctx, mk_str words, void **data)
{
    mk_str word = mk_str_trim(words);
    (void)ctx;
    for (unsigned i = 0; i < VIEWS; i++) {
        if (!mk_str_eq_nocase(word, mk_str_from_c(view_words[i])) && (word.len || i != VIEW_PROMETHEUS))
            continue;
        *data = (void *)(uintptr_t)&metrics_views[i];
        return true;
    }
    return false;
}

static bool is_loopback(const struct mk_addr *peer)
{
    static const uint8_t v4[13] = {[10] = 0xff, [11] = 0xff, [12] = 127}, v6[16] = {[15] = 1};
    return peer->is_unix || memcmp(peer->ip, v4, sizeof v4) == 0 || memcmp(peer->ip, v6, sizeof v6) == 0;
}

/* Returns whether the requested host is a local name or a ServerName of the host. */
static bool is_known_host_name(const struct mk_request *request)
{
    static const mk_str local[] = {MK_STR_INIT("localhost"), MK_STR_INIT("127.0.0.1"), MK_STR_INIT("[::1]")};
    mk_str host = mk_request_host(request), name;
    if (host.len && host.p[host.len - 1] == '.')
        host.len--;
    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        if (mk_str_eq_nocase(host, local[i]))
            return true;
    for (size_t i = 0; (name = mk_vhost_name_at(mk_request_vhost(request), i)).p; i++) {
        mk_str end = mk_str_skip(name, 1);
        bool is_wild = mk_str_starts(name, MK_STR("*."));
        if (is_wild ? host.len > end.len && mk_str_eq_nocase(mk_str_skip(host, host.len - end.len), end)
                    : mk_str_eq_nocase(host, name))
            return true;
    }
    return host.len == 0; /* HTTP/1.0: browsers and proxies with virtual hosts always send a host */
}

/* A client on loopback may be a browser that was misled by a foreign name (DNS rebinding), or a proxy that
 * forwards other clients' requests. So clients on loopback must also request a known name, unless `all`
 * admits every client. */
static bool may_view(struct mk_request *request, const struct settings *s, enum view view)
{
    const struct mk_addr *peer = mk_request_client_addr(request);
    if (view >= VIEW_HEALTH)
        return metrics_networks_contain(&s->allow, peer) || metrics_networks_contain(&s->allow_health, peer);
    if (!metrics_networks_contain(&s->allow, peer))
        return false;
    if (!is_loopback(peer) || metrics_networks_contain_all(&s->allow) || is_known_host_name(request))
        return true;
    mk_request_log(request, MK_LOG_WARN,
                   "metrics: access from loopback requires a local Host header or a ServerName");
    return false;
}

static enum mk_verdict serve_view(struct mk_request *request, struct mk_response *response, void *data)
{
    enum view view = *(const enum view *)data;
    const struct site *site = mk_vhost_data(mk_request_vhost(request), self);
    struct live *l = mk_worker_data(mk_request_worker(request), self);
    if (!site || !l)
        return respond_error(response, 503);
    if (!may_view(request, site->settings, view))
        return respond_error(response, 403);
    switch (view) {
    case VIEW_PROMETHEUS:
    case VIEW_JSON:
        return respond_metrics(l, response, view);
    case VIEW_PAGE:
        return respond_page(l, request, response, site->settings);
    case VIEW_HEALTH:
        return respond_text(response, MK_STR("text/plain"), MK_STR("ok\n"));
    case VIEW_READY:
        return respond_readiness(l, response, site->settings);
    case VIEWS:
        break;
    }
    return respond_error(response, 500);
}

static const struct mk_handler handler = {
    .name = "metrics",
    .syntax = "[prometheus|json|page|health|ready]",
    .methods = MK_METHOD_BIT(MK_METHOD_GET),
    .handle = serve_view,
    .bind = bind_view_handler,
};

/* ---- The plugin ---- */

static int bind_vhost(struct mk_config *config, struct mk_vhost *host, void *data, void **host_data)
{
    int e = metrics_settings_host(config, host, data, host_data);
    const struct site *site = *host_data;
    for (unsigned i = 0; e == 0 && i < VIEWS; i++)
        if (site->settings->paths[i].p)
            mk_config_add_route(config, site->settings->paths[i], &handler,
                                (void *)(uintptr_t)&metrics_views[i]);
    return e;
}

static int worker_start(struct mk_worker *worker, void *data)
{
    const struct metrics *m = data;
    struct live *l = metrics_live_new(worker, m);
    if (!l)
        return -ENOMEM;
    mk_worker_set_data(worker, self, l);
    return 0;
}

static void worker_stop(struct mk_worker *worker, void *data)
{
    (void)data;
    metrics_live_free(mk_worker_data(worker, self));
    mk_worker_set_data(worker, self, NULL);
}

static void count_request(const struct mk_access_record *record, void *host_data)
{
    const struct site *site = host_data;
    const struct mk_request *request = mk_access_record_request(record);
    struct mk_worker *worker = mk_request_worker(request);
    struct live *l = worker ? mk_worker_data(worker, self) : NULL;
    if (!l)
        return;
    if (site->label)
        metrics_counters_add(l->counters, site->label, record, !mk_request_attached(request, self));
    metrics_live_schedule_measure(l);
}

static const struct mk_conf_table *const sections[] = {&metrics_table, NULL};
static const struct mk_handler *const handlers[] = {&handler, NULL};

MK_PLUGIN(metrics) = {
    MK_PLUGIN_HEAD,
    .name = "metrics",
    .version = MONKEY_VERSION,
    .help = "Exports metrics for Prometheus, as JSON and on a live page; health and readiness checks.",
    .sections = sections,
    .handlers = handlers,
    .load = metrics_settings_load,
    .host = bind_vhost,
    .worker_start = worker_start,
    .worker_stop = worker_stop,
    .on_done = count_request,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/health_check.h"

#include <errno.h>

#include "upstream/connect_error.h"
#include "upstream/health.h"

/* "HTTP/1.1 200" */
enum {
    SOON_MS = 250,
    AGAIN_MS = 1000,
    STATUS_AT = 9,
    STATUS_LEN = 12,
    HEAD_MAX = 1024,
    RESPONSE_MAX = 64 * 1024
};

struct mk_health_checker {
    struct mk_backend *backend;
    struct mk_upstream_conn conn; /* has a socket while a check is in progress */
    struct mk_timer timer;
    void (*on_down)(struct mk_backend *o);
    uint64_t next_at_ms; /* when the next check starts */
    bool has_failed;     /* the last check failed */
    bool was_refused;    /* nothing listened at the address in the last check */
    bool is_sent;
    bool is_judged;        /* the result is known; the rest of the response is discarded */
    char line[STATUS_LEN]; /* beginning of the response */
    size_t len;            /* response bytes so far */
    unsigned n_failed;     /* number of addresses in a row to which connecting failed */
};

/* A failing server is checked more often, because it may be starting up. */
static uint32_t next_check_delay_ms(const struct mk_health_checker *c)
{
    uint32_t ms = c->backend->server->upstream->settings->check_ms,
             soon = c->was_refused ? SOON_MS : AGAIN_MS;
    return c->has_failed && soon < ms ? soon : ms;
}

static void schedule_next_check(struct mk_health_checker *c)
{
    uint64_t now = mk_worker_now_ms(c->backend->pool->worker);
    if (c->next_at_ms <= now + next_check_delay_ms(c))
        return;
    c->next_at_ms = now + next_check_delay_ms(c);
    mk_timer_set(&c->timer, c->backend->pool->worker, next_check_delay_ms(c));
}

static void record_result(struct mk_health_checker *c, bool ok, const char *message)
{
    struct mk_backend *o = c->backend;
    c->is_judged = true;
    c->n_failed = 0;
    c->has_failed = !ok;
    if (mk_health_report_check(o->pool->worker, o->server, ok, message))
        c->on_down(o);
    mk_health_publish(o->server, o->names.n > 0);
    if (!ok)
        schedule_next_check(c);
}

static bool is_check_running(const struct mk_health_checker *c)
{
    return mk_upstream_conn_has_socket(&c->conn);
}

static void close_check_conn(struct mk_health_checker *c)
{
    if (is_check_running(c))
        mk_upstream_conn_close(&c->conn);
}

/* Ends a check, and records its result unless the result is already known. */
static void finish_check(struct mk_health_checker *c, bool ok, const char *message)
{
    close_check_conn(c);
    if (!c->is_judged)
        record_result(c, ok, message);
}

static bool is_server_failure(struct mk_health_checker *c, const struct mk_sockaddr *at, int error)
{
    struct mk_resolver *names = &c->backend->names;
    if (mk_health_is_local_shortage(error))
        return false;
    return !at || !mk_resolver_mark_failed(names, at) || ++c->n_failed >= names->n;
}

/* Handles a failure to connect. A local shortage of memory or descriptors, or a single failed address, does
 * not show that the server is down: the next check decides. */
static void handle_connect_failure(struct mk_health_checker *c, const struct mk_sockaddr *at, int error)
{
    c->was_refused = error == -ECONNREFUSED || error == -ENOENT;
    if (is_server_failure(c, at, error))
        finish_check(c, false, at ? mk_connect_error_text(error) : "it has no address");
    else
        close_check_conn(c);
}

/* Writes HealthHost, or else Host as clients of the server send it: without the scheme's default port. */
static void write_host_header(const struct mk_upstream_server *s, struct mk_buf *out)
{
    mk_str host = s->host.p ? s->host : MK_STR("localhost");
    bool is_address6 = mk_str_find(host, ':') != MK_STR_NONE;
    if (s->upstream->settings->check_host.len) {
        mk_buf_add(out, s->upstream->settings->check_host);
        return;
    }
    mk_buf_addf(out, "%s%.*s%s", is_address6 ? "[" : "", MK_STR_ARG(host), is_address6 ? "]" : "");
    if (s->host.p && s->port != (s->upstream->tls ? 443 : 80))
        mk_buf_addf(out, ":%u", s->port);
}

static bool send_check_request(struct mk_health_checker *c)
{
    const struct mk_upstream_server *s = c->backend->server;
    char buf[HEAD_MAX];
    struct mk_buf head = mk_buf_fixed(buf, sizeof buf);
    mk_buf_addf(&head, "GET %.*s HTTP/1.1\r\nHost: ", MK_STR_ARG(s->upstream->settings->check));
    write_host_header(s, &head);
    mk_buf_add(&head, MK_STR("\r\nUser-Agent: monkey-health\r\nConnection: close\r\n\r\n"));
    c->is_sent = true;
    return !head.failed && mk_upstream_conn_write(&c->conn, mk_buf_str(&head), false) == (ssize_t)head.len;
}

/* Called when the status line is complete: determines the result. */
static void check_status_line(struct mk_health_checker *c)
{
    const struct mk_upstream_settings *settings = c->backend->server->upstream->settings;
    const struct mk_health_check_status *good = &settings->check_status;
    mk_str line = mk_str_of(c->line, sizeof c->line);
    uint64_t status = 0;
    char message[64];
    struct mk_buf text = mk_buf_fixed(message, sizeof message - 1);
    if (!mk_str_starts(line, MK_STR("HTTP/1.")) || !mk_num_parse(mk_str_skip(line, STATUS_AT), &status)) {
        record_result(c, false, "it sends no HTTP response");
        return;
    }
    mk_buf_addf(&text, "it answers with status %u", (unsigned)status);
    message[text.len] = '\0';
    record_result(c, good->to ? status >= good->from && status <= good->to : status >= 200 && status < 400,
                  message);
}

/* The status determines the result. The rest of the response is read as well, because closing a socket with
 * unread data resets the connection, and the server might log an error for each check. */
static void read_check_response(struct mk_health_checker *c)
{
    char rest[1024];
    while (c->len < RESPONSE_MAX) {
        bool has_status = c->len >= STATUS_LEN;
        ssize_t n = mk_upstream_conn_read(&c->conn, has_status ? rest : c->line + c->len,
                                          has_status ? sizeof rest : STATUS_LEN - c->len);
        if (n == -EAGAIN)
            return;
        if (n <= 0)
            break;
        c->len += (size_t)n;
        if (c->len == STATUS_LEN)
            check_status_line(c);
    }
    finish_check(c, false, "it closes the connection without a response");
}

static void advance_check(struct mk_health_checker *c)
{
    const struct mk_upstream_server *s = c->backend->server;
    if (c->conn.state.current == MK_UPSTREAM_CONN_BROKEN)
        handle_connect_failure(c, &c->conn.to, c->conn.error);
    else if (c->conn.state.current != MK_UPSTREAM_CONN_OPEN)
        return;
    else if (s->upstream->settings->check.p[0] != '/')
        finish_check(c, true, NULL); /* a check that only connects: the server accepts connections */
    else if (!c->is_sent && !send_check_request(c))
        finish_check(c, false, "it does not accept the request");
    else
        read_check_response(c);
}

static void on_conn_event(void *ctx, unsigned which)
{
    (void)which;
    advance_check(ctx);
}

/* Called when the server did not respond in time. */
static void handle_check_timeout(struct mk_health_checker *c)
{
    if (c->conn.state.current != MK_UPSTREAM_CONN_OPEN)
        handle_connect_failure(c, &c->conn.to, -ETIMEDOUT);
    else
        finish_check(c, false, "it does not answer in time");
}

static void start_check(struct mk_health_checker *c)
{
    struct mk_backend *o = c->backend;
    int error = -EHOSTUNREACH;
    mk_resolver_refresh(&o->names);
    const struct mk_sockaddr *to = mk_resolver_next_addr(&o->names);
    if (!to && mk_resolver_is_pending(&o->names))
        return;
    c->is_sent = c->is_judged = c->was_refused = false;
    c->len = 0;
    if (to)
        error = mk_upstream_conn_connect(&c->conn, o->server, to, o->pool->worker, &o->session);
    if (error)
        handle_connect_failure(c, to, error);
    else
        advance_check(c);
}

/* Ends a check that is still in progress (timeout), and starts the next one if it is due. */
static void on_check_timer(struct mk_timer *t)
{
    struct mk_health_checker *c = MK_CONTAINER(t, struct mk_health_checker, timer);
    const struct mk_upstream_settings *settings = c->backend->server->upstream->settings;
    uint64_t now = mk_worker_now_ms(c->backend->pool->worker);
    if (is_check_running(c))
        handle_check_timeout(c);
    if (now < c->next_at_ms) {
        mk_timer_set(&c->timer, c->backend->pool->worker, (uint32_t)(c->next_at_ms - now));
        return;
    }
    start_check(c);
    uint32_t next = next_check_delay_ms(c), timeout = settings->check_timeout_ms;
    c->next_at_ms = now + next;
    mk_timer_set(&c->timer, c->backend->pool->worker,
                 is_check_running(c) && timeout && timeout < next ? timeout : next);
}

struct mk_health_checker *mk_health_check_start(struct mk_backend *o, void (*on_down)(struct mk_backend *o))
{
    struct mk_health_checker *c = mk_mem_zalloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->backend = o;
    c->on_down = on_down;
    c->conn.on_event = on_conn_event;
    c->conn.event_ctx = c;
    mk_list_init(&c->conn.backend_link);
    mk_timer_init(&c->timer, on_check_timer);
    on_check_timer(&c->timer);
    return c;
}

void mk_health_check_stop(struct mk_health_checker *c)
{
    if (!c)
        return;
    close_check_conn(c);
    mk_timer_stop(&c->timer);
    mk_mem_free(c);
}

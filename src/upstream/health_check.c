/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/health_check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "event/tls.h"
#include "http/chunked.h"
#include "upstream/connect_error.h"
#include "upstream/health.h"
#include "upstream/http2.h"

/* "HTTP/1.1 200" */
enum { SOON_MS = 250, AGAIN_MS = 1000, STATUS_AT = 9, STATUS_LEN = 12, RESPONSE_MAX = 64 * 1024 };

struct mk_health_checker {
    struct mk_backend *backend;
    struct mk_upstream_conn conn; /* has a socket while a check is in progress */
    struct mk_timer timer;
    void (*on_down)(struct mk_backend *o);
    struct mk_upstream upstream; /* that of the server, with the TLS settings of checks */
    struct mk_upstream_server server;
    struct mk_tls_session *session;
    struct mk_sockaddr at;  /* address of the server that is being checked, with its own port */
    struct mk_buf response; /* with HealthText: the response so far */
    uint64_t next_at_ms;    /* when the next check starts */
    bool has_failed;        /* the last check failed */
    bool was_refused;       /* nothing listened at the address in the last check */
    bool is_sent;
    bool is_judged;        /* the result is known; the rest of the response is discarded */
    char line[STATUS_LEN]; /* beginning of the response */
    size_t len;            /* response bytes so far */
    unsigned n_failed;     /* number of addresses in a row to which connecting failed */
    struct mk_upstream_http2_check http2;
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

static void record_result(struct mk_health_checker *c, enum mk_health_reason reason, const char *message)
{
    struct mk_backend *o = c->backend;
    bool ok = reason == MK_HEALTH_PASSED;
    if (o->server->shared)
        mk_stat_set(&o->server->shared[MK_UPSTREAM_STATS_REASON], reason);
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

/* Checks on a port of their own use HTTP/1.1. */
static const struct mk_upstream_http2_module *http2_of(const struct mk_health_checker *c)
{
    const struct mk_upstream *u = c->backend->server->upstream;
    return u->settings->check_port ? NULL : u->http2;
}

static void close_check_conn(struct mk_health_checker *c)
{
    if (is_check_running(c))
        mk_upstream_conn_close(&c->conn);
    if (http2_of(c))
        http2_of(c)->free_check(&c->http2);
}

/* Ends a check, and records its result unless the result is already known. */
static void finish_check(struct mk_health_checker *c, enum mk_health_reason reason, const char *message)
{
    close_check_conn(c);
    mk_buf_free(&c->response);
    if (!c->is_judged)
        record_result(c, reason, message);
}

static enum mk_health_reason reason_of_error(int error)
{
    return error == -ECONNREFUSED || error == -ENOENT ? MK_HEALTH_REFUSED
           : error == -ETIMEDOUT                      ? MK_HEALTH_TIMEOUT
           : error == -EPROTO                         ? MK_HEALTH_TLS
                                                      : MK_HEALTH_UNREACHABLE;
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
        finish_check(c, reason_of_error(error), at ? mk_connect_error_text(error) : "it has no address");
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
    uint32_t set = s->upstream->settings->check_port, port = set ? set : s->port;
    if (s->host.p && port != (s->upstream->check_tls ? 443 : 80))
        mk_buf_addf(out, ":%u", port);
}

static void write_http2_request(const struct mk_upstream_server *s, struct mk_buf *out)
{
    char buf[MK_HEALTH_HEAD_MAX];
    struct mk_buf host = mk_buf_fixed(buf, sizeof buf);
    write_host_header(s, &host);
    s->upstream->http2->write_check(out, s, mk_buf_str(&host));
}

static void write_http1_request(const struct mk_upstream_server *s, struct mk_buf *head)
{
    const struct mk_upstream_settings *settings = s->upstream->settings;
    mk_str method = settings->check_method.len ? settings->check_method : MK_STR("GET");
    mk_buf_addf(head, "%.*s %.*s HTTP/1.1\r\nHost: ", MK_STR_ARG(method), MK_STR_ARG(settings->check));
    write_host_header(s, head);
    mk_buf_add(head, MK_STR("\r\nUser-Agent: monkey-health\r\nConnection: close\r\n"));
    for (const struct mk_health_header *h = settings->check_headers; h; h = h->next)
        mk_buf_addf(head, "%.*s\r\n", MK_STR_ARG(h->text));
    if (mk_str_eq(method, MK_STR("POST")))
        mk_buf_add(head, MK_STR("Content-Length: 0\r\n"));
    mk_buf_add(head, MK_STR("\r\n"));
}

static bool send_check_request(struct mk_health_checker *c)
{
    const struct mk_upstream_server *s = c->backend->server;
    char buf[MK_HEALTH_HEAD_MAX];
    struct mk_buf head = mk_buf_fixed(buf, sizeof buf);
    if (http2_of(c))
        write_http2_request(s, &head);
    else
        write_http1_request(s, &head);
    c->is_sent = true;
    return !head.failed && mk_upstream_conn_write(&c->conn, mk_buf_str(&head), false) == (ssize_t)head.len;
}

/* Determines the result, unless it depends on the content. */
static void judge_status(struct mk_health_checker *c, unsigned status)
{
    const struct mk_upstream_settings *settings = c->backend->server->upstream->settings;
    const struct mk_health_check_status *good = &settings->check_status;
    char message[64];
    struct mk_buf text = mk_buf_fixed(message, sizeof message - 1);
    mk_buf_addf(&text, "it answers with status %u", status);
    message[text.len] = '\0';
    bool is_good = good->to ? status >= good->from && status <= good->to : status >= 200 && status < 400;
    if (!is_good || !settings->check_text.len)
        record_result(c, is_good ? MK_HEALTH_PASSED : MK_HEALTH_STATUS, message);
}

/* Called when the status line is complete. */
static void check_status_line(struct mk_health_checker *c)
{
    mk_str line = mk_str_of(c->line, sizeof c->line);
    uint64_t status = 0;
    if (mk_str_starts(line, MK_STR("HTTP/1.")) && mk_num_parse(mk_str_skip(line, STATUS_AT), &status))
        judge_status(c, (unsigned)status);
    else
        record_result(c, MK_HEALTH_INVALID, "it sends no HTTP response");
}

/* The first head determines the result, and the check ends with it. */
static void read_http2_response(struct mk_health_checker *c)
{
    char buf[1024];
    ssize_t n = 0;
    while (c->len < RESPONSE_MAX && (n = mk_upstream_conn_read(&c->conn, buf, sizeof buf)) > 0) {
        int e = http2_of(c)->read_check(&c->http2, mk_str_of(buf, (size_t)n));
        c->len += (size_t)n;
        if (e > 0)
            judge_status(c, c->http2.status);
        if (e)
            break;
    }
    if (n != -EAGAIN)
        finish_check(c, MK_HEALTH_INVALID, "it sends no HTTP/2 response");
}

/* Returns the position of the first occurrence of `part`, which is not empty; MK_STR_NONE if there is none. */
static size_t find_text(mk_str text, mk_str part)
{
    for (size_t i = 0; i + part.len <= text.len; i++)
        if (memcmp(text.p + i, part.p, part.len) == 0)
            return i;
    return MK_STR_NONE;
}

static bool contains(mk_str text, mk_str part)
{
    return find_text(text, part) != MK_STR_NONE;
}

/* Does the part of a chunked body that has arrived contain the text? */
static bool chunked_contains(mk_str body, mk_str part)
{
    struct mk_chunked decoder;
    struct mk_buf text = mk_buf_growing(RESPONSE_MAX + sizeof(char[1024]));
    mk_str piece;
    int e;
    mk_chunked_init_allow_padding(&decoder, RESPONSE_MAX);
    while ((e = mk_chunked_decode(&decoder, &body, &piece)) == MK_CHUNKED_DATA)
        mk_buf_add(&text, piece);
    bool found = !text.failed && contains(mk_buf_str(&text), part);
    mk_buf_free(&text);
    return found;
}

static bool head_is_chunked(mk_str head)
{
    while (head.len) {
        mk_str value = mk_str_cut(&head, '\r'), name = mk_str_cut(&value, ':');
        if (mk_str_starts(head, MK_STR("\n")))
            head = mk_str_skip(head, 1);
        if (mk_str_eq_nocase(name, MK_STR("Transfer-Encoding")))
            return mk_str_eq_nocase(mk_str_trim(value), MK_STR("chunked"));
    }
    return false;
}

/* Does the content that has arrived contain HealthText? */
static bool response_has_text(const struct mk_health_checker *c)
{
    mk_str text = c->backend->server->upstream->settings->check_text, all = mk_buf_str(&c->response);
    size_t end = find_text(all, MK_STR("\r\n\r\n"));
    if (end == MK_STR_NONE)
        return false;
    size_t head_len = end + 4;
    mk_str body = mk_str_skip(all, head_len);
    return head_is_chunked(mk_str_first(all, head_len)) ? chunked_contains(body, text) : contains(body, text);
}

/* Called when the response has ended, is too long, or takes too long. */
static void finish_with_text(struct mk_health_checker *c)
{
    if (c->response.failed)
        finish_check(c, MK_HEALTH_TEXT, "no memory is left for its response");
    else if (response_has_text(c))
        finish_check(c, MK_HEALTH_PASSED, NULL);
    else
        finish_check(c, MK_HEALTH_TEXT, "its response does not contain HealthText");
}

/* The status determines the result. The rest of the response is read as well, because closing a socket with
 * unread data resets the connection, and the server might log an error for each check. */
static void read_check_response(struct mk_health_checker *c)
{
    char data[1024];
    bool wants_text = c->backend->server->upstream->settings->check_text.len;
    while (c->len < RESPONSE_MAX) {
        bool has_status = c->len >= STATUS_LEN;
        ssize_t n = mk_upstream_conn_read(&c->conn, data, has_status ? sizeof data : STATUS_LEN - c->len);
        if (n == -EAGAIN)
            return;
        if (n <= 0)
            break;
        if (!has_status)
            memcpy(c->line + c->len, data, (size_t)n);
        if (wants_text)
            mk_buf_add(&c->response, mk_str_of(data, (size_t)n));
        c->len += (size_t)n;
        if (c->len == STATUS_LEN)
            check_status_line(c);
        if (wants_text && !c->is_judged && response_has_text(c))
            record_result(c, MK_HEALTH_PASSED, NULL);
    }
    if (wants_text && c->len >= STATUS_LEN && !c->is_judged)
        finish_with_text(c);
    else
        finish_check(c, MK_HEALTH_CLOSED, "it closes the connection without a response");
}

static void advance_check(struct mk_health_checker *c)
{
    const struct mk_upstream_server *s = c->backend->server;
    if (c->conn.state.current == MK_UPSTREAM_CONN_BROKEN)
        handle_connect_failure(c, &c->at, c->conn.error);
    else if (c->conn.state.current != MK_UPSTREAM_CONN_OPEN)
        return;
    else if (s->upstream->settings->check.p[0] != '/')
        finish_check(c, MK_HEALTH_PASSED,
                     NULL); /* a check that only connects: the server accepts connections */
    else if (!c->is_sent && !send_check_request(c))
        finish_check(c, MK_HEALTH_CLOSED, "it does not accept the request");
    else if (http2_of(c))
        read_http2_response(c);
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
        handle_connect_failure(c, &c->at, -ETIMEDOUT);
    else if (c->len >= STATUS_LEN && c->response.len)
        finish_with_text(c);
    else
        finish_check(c, MK_HEALTH_TIMEOUT, "it does not answer in time");
}

/* Connects to the port for checks, with their TLS settings. */
static int connect_for_check(struct mk_health_checker *c, const struct mk_sockaddr *to)
{
    struct mk_backend *o = c->backend;
    const struct mk_upstream *u = o->server->upstream;
    struct mk_sockaddr address = *to;
    c->at = *to;
    if (u->settings->check_port && to->any.sa_family == AF_INET)
        address.v4.sin_port = htons((uint16_t)u->settings->check_port);
    else if (u->settings->check_port && to->any.sa_family == AF_INET6)
        address.v6.sin6_port = htons((uint16_t)u->settings->check_port);
    c->upstream = *u;
    c->upstream.tls = u->check_tls;
    c->server = *o->server;
    c->server.upstream = &c->upstream;
    return mk_upstream_conn_connect(&c->conn, &c->server, &address, o->pool->worker, &c->session);
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
    mk_buf_free(&c->response);
    c->response = mk_buf_growing(RESPONSE_MAX + sizeof(char[1024]));
    if (to)
        error = connect_for_check(c, to);
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
    c->conn.ctx = c;
    c->conn.offers_http2 = http2_of(c) != NULL;
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
    mk_buf_free(&c->response);
    mk_timer_stop(&c->timer);
    if (c->session)
        c->backend->pool->upstreams->tls->session_free(c->session);
    mk_mem_free(c);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Public API of upstream requests: combines connection attempts, sending and receiving. */
#include <monkey/sized.h>
#include <monkey/upstream.h>

#include "http/header.h"
#include "upstream/conn.h"
#include "upstream/connect_error.h"
#include "upstream/freelist.h"
#include "upstream/http2.h"
#include "upstream/pool.h"
#include "upstream/read_ahead.h"
#include "upstream/request_receive.h"
#include "upstream/request_send.h"
#include "upstream/request_state.h"
#include "upstream/wait_queue.h"

/* ---- Attempts: connections to servers, and retries ---- */

static void on_conn_event(void *ctx, unsigned which);
static void on_backend_down(void *ctx);

/* Acquires a connection. False: out of memory. */
static bool attempt_start(struct mk_upstream_request *c)
{
    c->conn = mk_pool_acquire_for_request(c->pool, c->to, &c->options, on_conn_event, on_backend_down, c);
    return c->conn;
}

/* Fails the request because no connection could be acquired. */
static void attempt_fail(struct mk_upstream_request *c, int error)
{
    mk_upstream_request_state_fail(c, error, mk_connect_error_text(error), MK_UPSTREAM_CONN_CLOSE);
}

/* May the complete request be sent again, whatever happened to the first attempt? */
static bool is_repeatable(const struct mk_upstream_request *c)
{
    const struct mk_upstream_request_body *source = c->content.source;
    return c->is_safe_to_repeat && (!c->content.length || !source || source->rewind);
}

/* Checks whether a reused connection is still open before a request that cannot be repeated uses it. */
static bool attempt_may_use_conn(struct mk_upstream_request *c)
{
    char byte;
    if (is_repeatable(c) || !mk_upstream_conn_was_reused(c->conn))
        return true;
    return mk_upstream_conn_read(c->conn, &byte, 1) == -EAGAIN;
}

static bool is_conn_closed_error(int error)
{
    return error == -ECONNRESET || error == -EPIPE;
}

/* Has the server closed an idle pooled connection? Neither the server nor the request is to blame for
 * this. */
static bool is_stale_conn(const struct mk_upstream_request *c, int error)
{
    bool is_silent = is_conn_closed_error(error) && !mk_upstream_conn_has_first_byte(c->conn);
    return error == -ESTALE || (is_silent && mk_upstream_conn_was_reused(c->conn));
}

/* Attempts after a server has refused the request without processing it (HTTP/2). */
enum { REFUSALS_MAX = 3 };

static bool has_untried_servers(const struct mk_upstream_request *c)
{
    return mk_pool_has_untried(c->to, c->options.tried);
}

/* Prepares a retry at another server by excluding the current one. False: the request may not be repeated, no
 * server is left, or max_tries or RetryBudget is exhausted. */
static bool choose_other_server(struct mk_upstream_request *c)
{
    int server = mk_upstream_conn_server(c->conn);
    if (!c->is_safe_to_repeat || c->limits.max_tries <= 1 || server < 0)
        return false;
    c->options.tried |= UINT64_C(1) << server;
    c->options.server = -1;
    c->options.fresh = c->wants_fresh;
    c->limits.max_tries--;
    return has_untried_servers(c) && mk_pool_may_retry(c->pool, c->to);
}

/* Has the server responded, so that a retry is not allowed? An incomplete head does not count, because it was
 * not passed on; an overload reply of a FastCGI server is not a response. */
static bool is_final_answer(const struct mk_upstream_request *c, int error)
{
    return mk_upstream_conn_has_first_byte(c->conn) && error != -EBUSY && !is_conn_closed_error(error);
}

static bool can_retry(struct mk_upstream_request *c, int error)
{
    if (mk_upstream_conn_is_unprocessed(c->conn))
        return c->n_refused++ < REFUSALS_MAX && mk_upstream_request_send_rewind(c);
    if (is_stale_conn(c, error)) {
        c->options.fresh = true;
        return (c->is_safe_to_repeat || c->sent == 0) && mk_upstream_request_send_rewind(c);
    }
    return !is_final_answer(c, error) && choose_other_server(c) && mk_upstream_request_send_rewind(c);
}

/* The server has no tunnels over HTTP/2: requests the upgrade over HTTP/1.1. */
static bool attempt_http1(struct mk_upstream_request *c)
{
    mk_upstream_request_state_cancel(c, MK_UPSTREAM_CONN_CLOSE);
    mk_upstream_request_state_move(c, MK_UPSTREAM_REQUEST_WAITING);
    mk_freelist_dealloc(c->blocks, c->out.p, c->out.cap);
    c->out = *c->http1_head;
    mk_mem_free(c->http1_head);
    c->http1_head = NULL;
    c->head_len = c->out.len;
    c->codec = &mk_codec_http;
    c->content.is_over = c->content.is_gone = false;
    c->options.http1 = true;
    c->options.http2_tunnel = false;
    mk_upstream_request_receive_reset(c);
    if (attempt_start(c))
        return true;
    mk_upstream_request_state_fail(c, -ENOMEM, "no memory for a connection", MK_UPSTREAM_CONN_CLOSE);
    return false;
}

/* The connection failed with `error` before a response. True: the request waits for another connection.
 * False: the request has failed. */
MK_COLD static bool attempt_retry(struct mk_upstream_request *c, int error, const char *problem)
{
    if (MK_UNLIKELY(error == -EPROTONOSUPPORT && c->http1_head))
        return attempt_http1(c);
    bool stale = is_stale_conn(c, error), repeats = can_retry(c, error);
    enum mk_upstream_conn_disposition how =
        stale || error == -ENOMEM ? MK_UPSTREAM_CONN_CLOSE : MK_UPSTREAM_CONN_FAILED;
    mk_upstream_conn_set_error(c->conn, error, problem);
    if (!repeats) {
        mk_upstream_request_state_fail(c, error, problem, how);
        return false;
    }
    mk_upstream_request_state_cancel(c, how);
    mk_upstream_request_state_move(c, MK_UPSTREAM_REQUEST_WAITING);
    mk_upstream_request_receive_reset(c);
    if (attempt_start(c))
        return true;
    mk_upstream_request_state_fail(c, -ENOMEM, "no memory for a connection", MK_UPSTREAM_CONN_CLOSE);
    return false;
}

/* The server is down: fails over to another server if the request may be resent. False: no change.
 * RetryBudget does not apply: the failed server responds to none of its requests, so a second attempt does
 * not multiply the load. */
static bool attempt_failover(struct mk_upstream_request *c)
{
    int server = mk_upstream_conn_server(c->conn);
    if (!is_repeatable(c) || mk_upstream_conn_has_first_byte(c->conn) || c->limits.max_tries <= 1 ||
        server < 0)
        return false;
    c->options.tried |= UINT64_C(1) << server;
    c->options.server = -1;
    c->options.fresh = c->wants_fresh;
    c->limits.max_tries--;
    mk_upstream_conn_set_error(c->conn, -EHOSTDOWN, "the server is down");
    mk_upstream_request_state_cancel(c, MK_UPSTREAM_CONN_CLOSE);
    mk_upstream_request_state_move(c, MK_UPSTREAM_REQUEST_WAITING);
    mk_upstream_request_receive_reset(c);
    if (mk_upstream_request_send_rewind(c) && attempt_start(c))
        return true;
    mk_upstream_request_state_fail(c, -ENOMEM, "no memory for a connection", MK_UPSTREAM_CONN_CLOSE);
    return true;
}

/* ---- Resuming ---- */

/* Continues to connect. True: connected. */
static bool advance_connect(struct mk_upstream_request *c)
{
    while (c->state.current == MK_UPSTREAM_REQUEST_WAITING) {
        int e = mk_upstream_conn_state(c->conn);
        if (e == -EAGAIN)
            return false;
        if (e) {
            attempt_fail(c, e);
            return false;
        }
        mk_upstream_request_state_move(c, MK_UPSTREAM_REQUEST_OPEN);
        if (attempt_may_use_conn(c))
            mk_upstream_request_send_start(c);
        else if (!attempt_retry(c, -ECONNRESET, "the server closed the connection"))
            return false;
    }
    return mk_upstream_request_state_is_connected(c);
}

/* Called when the source of the request body has failed. A response that has begun stays valid. */
static void fail_body_source(struct mk_upstream_request *c)
{
    if (c->state.current == MK_UPSTREAM_REQUEST_OPEN)
        mk_upstream_request_state_fail(c, c->error, c->problem, MK_UPSTREAM_CONN_CLOSE);
    else
        mk_upstream_request_state_end_output(c, c->error, c->problem);
}

/* Connects, and sends as much as possible. True: mk_upstream_request_head() has a new result. */
static bool advance_request(struct mk_upstream_request *c)
{
    if (c->output.current == MK_UPSTREAM_REQUEST_OUTPUT_SENT) /* as in most events */
        return false;
    if (!advance_connect(c))
        return c->state.current == MK_UPSTREAM_REQUEST_FAILED;
    switch (mk_upstream_request_send_run(c)) {
    case MK_UPSTREAM_REQUEST_SEND_WAITS:
        return false;
    case MK_UPSTREAM_REQUEST_SEND_YIELDS:
        mk_upstream_request_timer_run_later(c);
        return false;
    case MK_UPSTREAM_REQUEST_SEND_CONN_BROKEN:
        return true; /* a response may have arrived */
    case MK_UPSTREAM_REQUEST_SEND_SOURCE_FAILED:
        fail_body_source(c);
        return true;
    }
    return false;
}

/* ---- Events: the owner may free the request in on_ready ---- */

static void on_conn_event(void *ctx, unsigned which)
{
    struct mk_upstream_request *c = ctx;
    bool is_readable = which & (MK_READABLE | MK_ENDED | MK_HUNG_UP);
    /* Once body data has arrived, the response waits for its reader and no longer for the server. */
    if (is_readable && c->state.current == MK_UPSTREAM_REQUEST_CONTENT)
        mk_upstream_request_timer_set(c, MK_UPSTREAM_REQUEST_AWAITS_NOTHING);
    bool has_news = advance_request(c);
    has_news |= is_readable && mk_upstream_request_state_is_connected(c);
    if (has_news && mk_read_ahead_fill(c))
        mk_upstream_request_notify(c);
}

/* Called when the server is down: tries another server. */
static void on_backend_down(void *ctx)
{
    struct mk_upstream_request *c = ctx;
    if (c->state.current == MK_UPSTREAM_REQUEST_OPEN && attempt_failover(c) &&
        (c->state.current == MK_UPSTREAM_REQUEST_FAILED || advance_request(c)))
        mk_upstream_request_notify(c);
}

static void on_request_deferred(void *ctx)
{
    struct mk_upstream_request *c = ctx;
    if (c->state.current == MK_UPSTREAM_REQUEST_WAITING || mk_upstream_request_state_is_connected(c))
        (void)advance_request(c);
    if (mk_read_ahead_fill(c))
        mk_upstream_request_notify(c);
}

/* total_timeout is over. A server that has received the whole request and has not answered for most of that time
 * has failed; otherwise, the time passed in the queue, during the upload or at other servers. */
static void fail_total_timeout(struct mk_upstream_request *c)
{
    static const char problem[] = "no server has answered within total_timeout";
    bool is_server_hung = mk_upstream_request_timer_is_server_hung(c);
    mk_upstream_conn_set_error(c->conn, -ETIMEDOUT,
                               is_server_hung ? mk_upstream_request_timer_text(c) : problem);
    mk_upstream_request_state_fail(c, -ETIMEDOUT, problem,
                                   is_server_hung ? MK_UPSTREAM_CONN_FAILED : MK_UPSTREAM_CONN_CLOSE);
}

MK_COLD static void on_request_timer(struct mk_timer *t)
{
    struct mk_upstream_request *c = MK_CONTAINER(t, struct mk_upstream_request, timer);
    if (mk_upstream_request_timer_is_check(c))
        mk_read_ahead_check_reader(c);
    if (!mk_upstream_request_timer_expired(c))
        return;
    const char *problem = mk_upstream_request_timer_text(c);
    if (mk_upstream_request_timer_is_total(c)) {
        fail_total_timeout(c);
    } else if (c->state.current != MK_UPSTREAM_REQUEST_OPEN) {
        mk_upstream_conn_set_error(c->conn, -ETIMEDOUT, problem);
        mk_upstream_request_state_fail(c, -ETIMEDOUT, problem, MK_UPSTREAM_CONN_FAILED);
    } else if (attempt_retry(c, -ETIMEDOUT, problem) && !advance_request(c)) {
        return;
    }
    mk_upstream_request_notify(c);
}

/* ---- Starting a request ---- */

enum { AROUND_HEAD = 128 }; /* usual overhead of a codec for the whole head */

/* No codec adds more than 8 bytes per header. */
static size_t estimate_head_len(const struct mk_upstream_request_options *opts)
{
    size_t len = opts->method.len + opts->target.len + opts->raw_headers.len + opts->upgrade.len;
    for (size_t i = 0; i < opts->n_headers && len < MK_UPSTREAM_REQUEST_SEND_HEAD_MAX; i++)
        len += opts->headers[i].name.len + opts->headers[i].value.len + 8;
    return len;
}

/* Writes the head of an upgrade also for a server that has no tunnels over HTTP/2. */
MK_COLD static mk_err write_http1_head(struct mk_upstream_request *c,
                                       const struct mk_upstream_request_options *opts)
{
    c->http1_head = mk_mem_alloc(sizeof *c->http1_head);
    if (!c->http1_head)
        return -ENOMEM;
    *c->http1_head = mk_buf_growing(MK_UPSTREAM_REQUEST_SEND_BUFFER_MAX);
    mk_err e = mk_codec_http.write_head(c->http1_head, opts, &c->problem);
    return c->http1_head->failed ? -ENOMEM : e;
}

static mk_err write_request(struct mk_upstream_request *c, const struct mk_upstream_request_options *opts)
{
    c->out = mk_buf_growing(MK_UPSTREAM_REQUEST_SEND_BUFFER_MAX);
    size_t len = estimate_head_len(opts);
    c->problem = "its head is too long";
    if (len >= MK_UPSTREAM_REQUEST_SEND_HEAD_MAX)
        return -E2BIG;
    c->out.cap = len + AROUND_HEAD;
    c->out.p = mk_freelist_alloc(c->blocks, &c->out.cap);
    if (!c->out.p)
        return -ENOMEM;
    c->problem = "its content has a negative length";
    if (opts->length < 0 && opts->length != MK_LENGTH_UNKNOWN)
        return -EINVAL;
    mk_err e = c->codec->write_head(&c->out, opts, &c->problem);
    c->head_len = c->out.len;
    if (MK_UNLIKELY(opts->conn.http2_tunnel) && !e)
        e = write_http1_head(c, opts);
    return c->out.failed ? -ENOMEM : e;
}

static bool has_other_length(const struct mk_upstream_request_options *opts)
{
    return opts->body.p && opts->length != (int64_t)opts->body.len;
}

static bool must_choose_protocol(const struct mk_upstream_request_options *opts)
{
    return opts->upgrade.len && opts->upstream->http2 && !opts->conn.http1;
}

/* Completes the options in `copy`, which may be `opts`. A WebSocket uses a stream if the server supports that; other
 * upgrades need HTTP/1.1. */
static const struct mk_upstream_request_options *
complete_options(const struct mk_upstream_request_options *opts, struct mk_upstream_request_options *copy)
{
    if (!has_other_length(opts) && !must_choose_protocol(opts))
        return opts;
    if (opts != copy)
        *copy = *opts;
    if (copy->body.p)
        copy->length = (int64_t)copy->body.len;
    if (must_choose_protocol(copy)) {
        copy->conn.http2_tunnel = mk_str_eq_nocase(copy->upgrade, MK_UPGRADE_WEBSOCKET) && !copy->length;
        copy->conn.http1 = !copy->conn.http2_tunnel;
    }
    return copy;
}

static const struct mk_codec_ops *find_codec(const struct mk_upstream_request_options *opts)
{
    static const struct mk_codec_ops *const codecs[] = {[MK_UPSTREAM_PROTOCOL_HTTP] = &mk_codec_http,
                                                        [MK_UPSTREAM_PROTOCOL_FASTCGI] = &mk_codec_fastcgi,
                                                        [MK_UPSTREAM_PROTOCOL_SCGI] = &mk_codec_scgi,
                                                        [MK_UPSTREAM_PROTOCOL_UWSGI] = &mk_codec_uwsgi};
    const struct mk_upstream_http2_module *http2 = opts->upstream->http2;
    return MK_UNLIKELY(http2) && !opts->conn.http1 ? http2->codec : codecs[opts->protocol];
}

_Static_assert(sizeof(struct mk_upstream_request) + MK_UPGRADE_ACCEPT_LEN <= MK_POOL_BLOCK,
               "the free list has blocks for requests without Upgrade");

static struct mk_upstream_request *new_request(struct mk_worker *w,
                                               const struct mk_upstream_request_options *opts)
{
    struct mk_pool *pool = mk_pool_of_worker(w, opts->upstream);
    struct mk_freelist *blocks = mk_pool_request_freelist(pool);
    size_t size = sizeof(struct mk_upstream_request) + opts->upgrade.len + MK_UPGRADE_ACCEPT_LEN;
    struct mk_upstream_request *c = mk_freelist_alloc(blocks, &size);
    if (!c)
        return NULL;
    *c = (struct mk_upstream_request){
        .worker = w,
        .pool = pool,
        .blocks = blocks,
        .size = size,
        .to = opts->upstream,
        .codec = find_codec(opts),
        .resumes = opts->resumes,
        .is_safe_to_repeat = opts->is_idempotent,
        .options = opts->conn,
        .limits = opts->limits,
        .wants_fresh = opts->conn.fresh,
        .server = -1,
        .content = {.text = opts->body,
                    .source = opts->body.p && !opts->upgrade.len ? NULL : opts->body_source,
                    .ctx = opts->body_source_ctx,
                    .length = opts->length,
                    .is_held = mk_codec_awaits_continue(opts)},
        .input.on_error_text = opts->on_stderr,
        .upgrade_len = opts->upgrade.len,
    };
    mk_state_init(&c->state, &mk_upstream_request_machine, MK_UPSTREAM_REQUEST_WAITING);
    mk_state_init(&c->output, &mk_upstream_request_output_machine, MK_UPSTREAM_REQUEST_OUTPUT_NONE);
    if (opts->upgrade.len) {
        memcpy(c->upgrade, opts->upgrade.p, opts->upgrade.len);
        c->accept_len = mk_codec_http_accept_key(opts, c->upgrade + opts->upgrade.len);
    }
    c->frame = c->codec->frame(opts);
    mk_upstream_request_receive_init(c, opts);
    return c;
}

struct mk_upstream_request *mk_upstream_request_start_sized(struct mk_worker *w,
                                                            const struct mk_upstream_request_options *request,
                                                            size_t request_size, void (*on_ready)(void *ctx),
                                                            void *ctx)
{
    struct mk_upstream_request_options full;
    const struct mk_upstream_request_options *opts =
        complete_options(mk_sized_in(&full, sizeof full, request, request_size), &full);
    struct mk_upstream_request *c = new_request(w, opts);
    if (!c)
        return NULL;
    c->on_ready = on_ready;
    c->ctx = c->input.ctx = ctx;
    mk_err e = write_request(c, opts);
    bool has_memory = e != -ENOMEM;
    mk_upstream_request_timer_init(c, on_request_timer, on_request_deferred);
    if (MK_UNLIKELY(c->limits.total_timeout_ms))
        mk_upstream_request_timer_start_total(c);
    if (has_memory && !e)
        has_memory = attempt_start(c);
    if (!has_memory) {
        mk_upstream_request_free(c);
        return NULL;
    }
    if (e) {
        mk_upstream_request_state_fail(c, e, c->problem, MK_UPSTREAM_CONN_CLOSE);
        mk_upstream_request_timer_run_later(c);
        return c;
    }
    mk_pool_count_request(c->conn);
    if (!mk_pool_notify_if_reused(c->conn) && advance_request(c))
        mk_upstream_request_timer_run_later(c);
    return c;
}

void mk_upstream_request_resume(struct mk_upstream_request *c)
{
    if (mk_upstream_request_state_is_connected(c) && advance_request(c))
        mk_upstream_request_timer_run_later(c);
}

/* If all body data was read, reads the terminator of the body as well: the connection can be reused only
 * after that. FastCGI has an end record, which has usually arrived. */
static void read_body_end(struct mk_upstream_request *c)
{
    char buf[64];
    if (c->state.current == MK_UPSTREAM_REQUEST_CONTENT && mk_response_parser_has_all_body(&c->input.reply))
        mk_upstream_request_receive_body(c, buf, sizeof buf);
}

void mk_upstream_request_free(struct mk_upstream_request *c)
{
    if (!c)
        return;
    read_body_end(c);
    if (c->conn)
        mk_upstream_request_state_cancel(c, MK_UPSTREAM_CONN_CLOSE);
    mk_read_ahead_fini(c);
    mk_upstream_request_timer_fini(c);
    mk_upstream_request_receive_fini(c);
    mk_freelist_dealloc(c->blocks, c->out.p, c->out.cap);
    if (MK_UNLIKELY(c->http1_head != NULL)) {
        mk_buf_free(c->http1_head);
        mk_mem_free(c->http1_head);
    }
    mk_freelist_dealloc(c->blocks, c, c->size);
}

/* ---- The response ---- */

/* A send error is reported only if there is no response to read. */
static int read_response_head(struct mk_upstream_request *c)
{
    int sending = c->error;
    const char *problem = c->problem;
    int e = mk_upstream_request_receive_head(c);
    if (e != -EAGAIN || c->output.current != MK_UPSTREAM_REQUEST_OUTPUT_BROKEN)
        return e;
    c->problem = problem;
    return sending;
}

int mk_upstream_request_head(struct mk_upstream_request *c)
{
    switch ((int)c->state.current) {
    case MK_UPSTREAM_REQUEST_FAILED:
        return c->error;
    case MK_UPSTREAM_REQUEST_WAITING:
        return -EAGAIN;
    case MK_UPSTREAM_REQUEST_OPEN:
        break;
    default:
        return 0;
    }
    bool was_held = c->output.current == MK_UPSTREAM_REQUEST_OUTPUT_HELD;
    int e = read_response_head(c);
    if (e == 0 && c->state.current == MK_UPSTREAM_REQUEST_UPGRADED) {
        mk_upstream_request_send_init_tunnel(c);
        mk_upstream_request_resume(c);
    } else if (was_held && c->output.current == MK_UPSTREAM_REQUEST_OUTPUT_SENDING) {
        mk_upstream_request_resume(c);
    }
    if (e >= 0 || e == -EAGAIN)
        return e;
    if (attempt_retry(c, e, c->problem) && advance_request(c) &&
        c->state.current != MK_UPSTREAM_REQUEST_FAILED)
        mk_upstream_request_timer_run_later(c);
    return c->state.current == MK_UPSTREAM_REQUEST_FAILED ? c->error : -EAGAIN;
}

void mk_upstream_request_spool(struct mk_upstream_request *c, struct mk_request *request)
{
    bool has_more =
        c->state.current == MK_UPSTREAM_REQUEST_CONTENT && !mk_response_parser_has_all_body(&c->input.reply);
    if (has_more && !c->ahead.request && !mk_upstream_request_state_is_event_stream(c))
        mk_read_ahead_start(c, request);
}

ssize_t mk_upstream_request_read(struct mk_upstream_request *c, char *buf, size_t cap)
{
    if (c->ahead.request)
        return mk_read_ahead_read(c, buf, cap);
    switch ((int)c->state.current) {
    case MK_UPSTREAM_REQUEST_CONTENT:
    case MK_UPSTREAM_REQUEST_UPGRADED:
        return mk_upstream_request_receive_body(c, buf, cap);
    case MK_UPSTREAM_REQUEST_DONE:
        return 0;
    case MK_UPSTREAM_REQUEST_FAILED:
        return c->error;
    default:
        return -EAGAIN;
    }
}

bool mk_upstream_request_buffered_body(struct mk_upstream_request *c, mk_str *content)
{
    return c->state.current == MK_UPSTREAM_REQUEST_CONTENT &&
           mk_upstream_request_receive_buffered(c, content);
}

/* ---- Queries ---- */

unsigned mk_upstream_status_for_error(int error)
{
    switch (error) {
    case -EHOSTUNREACH:
    case -EBUSY:
    case -EXFULL:
    case -EMFILE:
    case -ENFILE:
    case -ENOBUFS:
    case -ENOMEM:
        return 503;
    case -ETIMEDOUT:
        return 504;
    case -EBADMSG:
        return 400;
    case -EMSGSIZE:
        return 413;
    case -E2BIG:
        return 431;
    case -EINVAL:
    case -EIO:
    case -ENOSPC:
    case -EDQUOT:
        return 500;
    default:
        return 502;
    }
}

const char *mk_upstream_request_error_text(const struct mk_upstream_request *c)
{
    return c->state.current == MK_UPSTREAM_REQUEST_FAILED && c->problem ? c->problem : "";
}

uint32_t mk_upstream_request_reset_code(const struct mk_upstream_request *c)
{
    return c->reset_code;
}

bool mk_upstream_request_is_sending(const struct mk_upstream_request *c)
{
    return c->state.current == MK_UPSTREAM_REQUEST_WAITING ||
           c->output.current == MK_UPSTREAM_REQUEST_OUTPUT_HELD ||
           c->output.current == MK_UPSTREAM_REQUEST_OUTPUT_SENDING ||
           c->output.current == MK_UPSTREAM_REQUEST_OUTPUT_ENDING;
}

unsigned mk_upstream_request_status(const struct mk_upstream_request *c)
{
    return c->input.reply.head.status;
}

bool mk_upstream_request_header_at(const struct mk_upstream_request *c, size_t i, mk_str *name, mk_str *value)
{
    if (i >= c->n_fields)
        return false;
    *name = c->fields[i].name;
    *value = c->fields[i].value;
    return true;
}

const struct mk_header *mk_upstream_request_headers(const struct mk_upstream_request *c, mk_str *text,
                                                    size_t *n)
{
    *text = c->text;
    *n = c->n_fields;
    return c->fields;
}

mk_str mk_upstream_request_header(const struct mk_upstream_request *c, mk_str name)
{
    for (unsigned i = 0; i < c->n_fields; i++)
        if (mk_str_eq_nocase(c->fields[i].name, name))
            return c->fields[i].value;
    return MK_STR_NULL;
}

int64_t mk_upstream_request_length(const struct mk_upstream_request *c)
{
    return c->length;
}

bool mk_upstream_request_is_upgraded(const struct mk_upstream_request *c)
{
    return c->state.current == MK_UPSTREAM_REQUEST_UPGRADED;
}

bool mk_upstream_request_is_local_redirect(const struct mk_upstream_request *c)
{
    return c->is_local_redirect;
}

static bool is_connection_option(const struct mk_upstream_request *c, mk_str name)
{
    mk_str rest = mk_buf_str(&c->named), option;
    while (mk_header_list_next(&rest, &option))
        if (mk_str_eq_nocase(option, name))
            return true;
    return false;
}

MK_COLD static bool find_trailer(const struct mk_upstream_request *c, size_t i, mk_str *name, mk_str *value)
{
    mk_str rest = mk_buf_str(&c->trailers);
    while (mk_trailer_next(&rest, name, value))
        if (mk_trailer_is_allowed(*name) && !is_connection_option(c, *name) && i-- == 0)
            return true;
    return false;
}

bool mk_upstream_request_trailer_at(const struct mk_upstream_request *c, size_t i, mk_str *name,
                                    mk_str *value)
{
    return MK_UNLIKELY(c->trailers.len) && c->state.current == MK_UPSTREAM_REQUEST_DONE &&
           find_trailer(c, i, name, value);
}

/* ---- The server ---- */

mk_str mk_upstream_request_server_name(const struct mk_upstream_request *c)
{
    return c->conn ? mk_upstream_conn_server_name(c->conn) : c->server_name;
}

int mk_upstream_request_server(const struct mk_upstream_request *c)
{
    return c->conn ? mk_upstream_conn_server(c->conn) : c->server;
}

/* ---- For handlers ---- */

void mk_upstream_request_log_error(const struct mk_upstream_request *c, struct mk_request *request)
{
    mk_str server = mk_upstream_request_server_name(c), name = mk_upstream_name(c->to);
    if (server.p && !mk_str_eq(server, name))
        mk_request_log(request, MK_LOG_ERROR, "upstream %.*s, server %.*s: %s", MK_STR_ARG(name),
                       MK_STR_ARG(server), mk_upstream_request_error_text(c));
    else
        mk_request_log(request, MK_LOG_ERROR, "upstream %.*s: %s", MK_STR_ARG(name),
                       mk_upstream_request_error_text(c));
}

int mk_upstream_request_poll(struct mk_upstream_request *c, struct mk_request *request)
{
    int e = mk_upstream_request_head(c);
    if (e == -EAGAIN)
        mk_upstream_request_resume(c);
    else if (e < 0)
        mk_upstream_request_log_error(c, request);
    return e;
}

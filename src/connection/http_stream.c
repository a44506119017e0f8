/* SPDX-License-Identifier: Apache-2.0 */
#include "connection/http_stream.h"

#include "base/buf.h"
#include "connection/counters.h"
#include "web/effective_limits.h"
#include "web/filter.h"

/* ---- States ---- */

#define TO MK_STATE_TO

static const struct mk_state_table states = {
    MK_STATE_ROW(MK_HTTP_STREAM_OPEN, "open",
                 TO(MK_HTTP_STREAM_HALF_CLOSED_REMOTE) | TO(MK_HTTP_STREAM_HALF_CLOSED_LOCAL) |
                     TO(MK_HTTP_STREAM_CLOSED)),
    /* Back to OPEN: an Upgrade request has no body, but the tunnel that follows it has input again. */
    MK_STATE_ROW(MK_HTTP_STREAM_HALF_CLOSED_REMOTE, "remote closed",
                 TO(MK_HTTP_STREAM_HALF_CLOSED_REMOTE) | TO(MK_HTTP_STREAM_CLOSED) | TO(MK_HTTP_STREAM_OPEN)),
    MK_STATE_ROW(MK_HTTP_STREAM_HALF_CLOSED_LOCAL, "local closed",
                 TO(MK_HTTP_STREAM_HALF_CLOSED_LOCAL) | TO(MK_HTTP_STREAM_CLOSED)),
    MK_STATE_ROW(MK_HTTP_STREAM_CLOSED, "closed", TO(MK_HTTP_STREAM_CLOSED)),
};

static const struct mk_state_table input_states = {
    MK_STATE_ROW(MK_INPUT_WANTED, "wanted", TO(MK_INPUT_AWAITS_CONTINUE) | TO(MK_INPUT_UNWANTED)),
    MK_STATE_ROW(MK_INPUT_AWAITS_CONTINUE, "held", TO(MK_INPUT_WANTED) | TO(MK_INPUT_UNWANTED)),
    MK_STATE_ROW(MK_INPUT_UNWANTED, "unwanted", 0),
};

static const struct mk_state_table response_states = {
    /* Back to PENDING: an error replaces an unsent response. */
    MK_STATE_ROW(MK_RESPONSE_PENDING, "pending",
                 TO(MK_RESPONSE_PENDING) | TO(MK_RESPONSE_BUFFERED) | TO(MK_RESPONSE_HEAD_SENT) |
                     TO(MK_RESPONSE_RECORDED)),
    MK_STATE_ROW(MK_RESPONSE_BUFFERED, "buffered",
                 TO(MK_RESPONSE_PENDING) | TO(MK_RESPONSE_HEAD_SENT) | TO(MK_RESPONSE_RECORDED)),
    MK_STATE_ROW(MK_RESPONSE_HEAD_SENT, "content",
                 TO(MK_RESPONSE_PENDING) | TO(MK_RESPONSE_BODY_ENDED) | TO(MK_RESPONSE_RECORDED)),
    MK_STATE_ROW(MK_RESPONSE_BODY_ENDED, "spent", TO(MK_RESPONSE_RECORDED)),
    MK_STATE_ROW(MK_RESPONSE_RECORDED, "recorded", 0),
};

static const char *stream_invariant_error(const void *owner)
{
    const struct mk_http_stream *d = owner;
    return mk_http_stream_response_written(d) && d->reply.current == MK_RESPONSE_PENDING
               ? "its response has begun"
               : NULL;
}

static const char *response_invariant_error(const void *owner)
{
    const struct mk_http_stream *d = owner;
    return d->reply.current == MK_RESPONSE_PENDING && d->sent ? "no body bytes are sent" : NULL;
}

const struct mk_state_machine mk_http_stream_machine = {"exchange", &states, MK_HTTP_STREAM_STATES,
                                                        stream_invariant_error};
const struct mk_state_machine mk_http_stream_input_machine = {"request body", &input_states, MK_INPUT_STATES,
                                                              NULL};
const struct mk_state_machine mk_http_stream_response_machine = {
    "response", &response_states, MK_RESPONSE_STATES, response_invariant_error};

/* ---- Lifetime ---- */

/* Tunnels can be numerous, and stay open for long: their requests get only the memory they need. */
MK_COLD static struct mk_exchange *new_tunnel_exchange(struct mk_conn_manager *s, size_t room)
{
    struct mk_arena arena;
    mk_arena_init(&arena, &s->arenas);
    if (!mk_arena_set_first_block(&arena, sizeof(struct mk_exchange) + room))
        return NULL;
    return mk_exchange_new_in_arena(&arena, s->web, s->loop->now_ms, s->loop->now_unix);
}

void *mk_http_stream_new(struct mk_conn *c, size_t size, unsigned version, const struct mk_request_ops *ops,
                         size_t room)
{
    struct mk_conn_manager *s = c->manager;
    struct mk_exchange *x = MK_UNLIKELY(room)
                                ? new_tunnel_exchange(s, room)
                                : mk_exchange_new(s->web, &s->arenas, s->loop->now_ms, s->loop->now_unix);
    struct mk_http_stream *d = x ? mk_arena_alloc_inline(&x->arena, size) : NULL;
    if (!d) {
        if (x)
            mk_exchange_free(x);
        return NULL;
    }
    *d = (struct mk_http_stream){.conn = c, .x = x};
    mk_state_init(&d->state, &mk_http_stream_machine, MK_HTTP_STREAM_OPEN);
    mk_state_init(&d->input, &mk_http_stream_input_machine, MK_INPUT_WANTED);
    mk_state_init(&d->reply, &mk_http_stream_response_machine, MK_RESPONSE_PENDING);
    x->request.version = version;
    x->request.hosts = c->hosts;
    x->request.encrypted = c->stream.tls != NULL;
    x->request.is_told = x->request.forwarded_is_secure = c->forwarded_is_secure;
    x->request.peer = &c->peer;
    x->request.ops = ops;
    x->request.ops_ctx = d;
    c->n_requests++;
    return d;
}

static void count_request(struct mk_counters *n, const struct mk_response *r, enum mk_outcome outcome)
{
    unsigned class = r->sealed ? r->status / 100 : 0;
    mk_counter_add(&n->requests, 1);
    mk_counter_add(&n->by_class[class < MK_LEN(n->by_class) ? class : 0], 1);
    mk_counter_add(&n->by_outcome[outcome], 1);
}

void mk_http_stream_record_request(struct mk_http_stream *d, enum mk_outcome outcome)
{
    if (!mk_state_can_move(&d->reply, &mk_http_stream_response_machine,
                           MK_RESPONSE_RECORDED)) /* already written */
        return;
    mk_http_stream_set_response_state(d, MK_RESPONSE_RECORDED);
    if (!d->outcome)
        d->outcome = outcome;
    count_request(d->conn->manager->counters, &d->x->response, d->outcome);
    mk_dispatch_end(d->x, d->outcome, d->received, d->sent, d->conn->manager->loop->now_ms);
}

void mk_http_stream_free(struct mk_http_stream *d)
{
    if (d->pending_prefetch)
        mk_prefetch_detach(d->pending_prefetch);
    mk_exchange_free(d->x);
}

/* ---- The request ---- */

void mk_http_stream_note_request_line(struct mk_http_stream *d, mk_str line)
{
    struct mk_counters *counters = d->conn->manager->counters;
    size_t n = mk_min(line.len, MK_COUNTERS_LINE_MAX - 1);
    if (n)
        memcpy(counters->line, line.p, n);
    counters->line[n] = '\0';
}

void mk_http_stream_note_request(struct mk_http_stream *d, mk_str method, mk_str target)
{
    char buf[MK_COUNTERS_LINE_MAX];
    struct mk_buf line = mk_buf_fixed(buf, sizeof buf);
    mk_buf_add(&line, mk_str_first(method, 16));
    mk_buf_add_char(&line, ' ');
    mk_buf_add(&line, mk_str_first(target, MK_COUNTERS_LINE_MAX - 18));
    mk_http_stream_note_request_line(d, mk_buf_str(&line));
}

unsigned mk_http_stream_check_body_size(struct mk_http_stream *d, size_t head_len, uint64_t length)
{
    const struct mk_conn_manager_limits *l = d->conn->manager->limits;
    uint64_t max = mk_http_stream_limits(d)->content_max;
    if (mk_http_stream_check_head_size(d, head_len))
        return 413;
    d->content_cap = l->request_max ? l->request_max - head_len : UINT64_MAX;
    d->content_max = d->x->request.site->has_body_max ? d->content_cap : mk_min(max, d->content_cap);
    bool is_huge = length > INT64_MAX; /* more than mk_request_length() can return */
    if (length <= d->content_max && !is_huge)
        return 0;
    mk_effective_limits_log_too_long(d->x, max, length > d->content_cap);
    return 413;
}

mk_err mk_http_stream_set_body_max(void *ctx, uint64_t max)
{
    struct mk_http_stream *d = ctx;
    uint64_t length = d->x->request.length;
    bool is_known = length != MK_REQUEST_LENGTH_UNKNOWN;
    d->content_max = mk_min(max, d->content_cap);
    return d->received > d->content_max || (is_known && length > d->content_max) ? -EMSGSIZE : 0;
}

MK_COLD void mk_http_stream_abort_body(struct mk_http_stream *d)
{
    d->x->read_error = -ECONNRESET;
    if (!d->outcome)
        d->outcome = MK_OUTCOME_CLIENT_ABORTED;
}

bool mk_http_stream_is_client_gone(const struct mk_http_stream *d)
{
    if (!mk_conn_is_half_closed(d->conn) || d->awaits == MK_AWAITS_BODY)
        return false;
    return d->x->follows_client || (!d->pending_prefetch && !mk_http_stream_limits(d)->handler_ms);
}

bool mk_http_stream_needs_100_continue(const struct mk_http_stream *d)
{
    const struct mk_response *r = &d->x->response;
    return d->input.current == MK_INPUT_AWAITS_CONTINUE && r->status < 300 &&
           mk_filter_unfiltered_body(&d->x->response.content)->source;
}

mk_err mk_http_stream_local_addr(void *ctx, struct mk_addr *out)
{
    const struct mk_http_stream *d = ctx;
    return mk_conn_local_addr(d->conn, out);
}

void mk_http_stream_tls_info(void *ctx, struct mk_tls_conn_info *out)
{
    const struct mk_http_stream *d = ctx;
    mk_conn_tls_info(d->conn, out);
}

/* ---- The response ---- */

static void on_file_cached(void *data)
{
    struct mk_http_stream *d = data;
    d->pending_prefetch = NULL;
    d->x->request.ops->resume(d->x->request.ops_ctx);
}

bool mk_http_stream_is_file_cached(struct mk_http_stream *d, struct mk_response_body_part *part)
{
    struct mk_conn_manager *s = d->conn->manager;
    uint64_t offset = part->offset, len = part->len;
    if (d->pending_prefetch || offset < part->cached_up_to)
        return !d->pending_prefetch;
    bool warm = mk_prefetch_is_cached(s, part->file, offset, len);
    part->cached_up_to = offset + (len < MK_PREFETCH_WINDOW ? len : MK_PREFETCH_WINDOW);
    if (!warm) /* without a helper thread, the worker itself waits for the disk */
        d->pending_prefetch = mk_prefetch_start(s, part->file, offset, len, on_file_cached, d);
    return !d->pending_prefetch;
}

/* Determines what a body without data waits for: a disk or its source. */
static enum mk_http_stream_pull_body wait_for_response_body(struct mk_http_stream *d)
{
    struct mk_response_body *content = &d->x->response.content;
    bool in_the_way;
    bool has_yielded = d->awaits == MK_AWAITS_NOTHING; /* a filter, which has resumed itself */
    if (has_yielded || mk_response_body_is_tunnel(content))
        return MK_PULL_WAITS;
    d->pending_prefetch =
        mk_prefetch_start_for_body(d->conn->manager, content, &in_the_way, on_file_cached, d);
    if (!in_the_way || d->pending_prefetch)
        return MK_PULL_WAITS;
    mk_http_stream_allow_call(d);
    return MK_PULL_AGAIN;
}

enum mk_http_stream_pull_body mk_http_stream_pull_body(struct mk_http_stream *d, char *room, size_t cap,
                                                       size_t *n)
{
    if (d->pending_prefetch || d->awaits != MK_AWAITS_NOTHING)
        return MK_PULL_WAITS;
    if (d->to_send < cap)
        cap = (size_t)d->to_send;
    mk_http_stream_begin_call(d);
    ssize_t got = cap ? mk_response_body_read(&d->x->response.content, room, cap) : 0;
    if (got == -EAGAIN)
        return wait_for_response_body(d);
    mk_http_stream_allow_call(d);
    if (got == 0)
        return mk_http_stream_is_body_complete(d) ? MK_PULL_END : MK_PULL_FAILED;
    if (got < 0 || (size_t)got > cap)
        return MK_PULL_FAILED;
    *n = (size_t)got;
    return MK_PULL_DATA;
}

MK_COLD enum mk_outcome mk_http_stream_fail_response(struct mk_http_stream *d)
{
    d->outcome = mk_exchange_client_disconnected(d->x) ? MK_OUTCOME_CLIENT_ABORTED : MK_OUTCOME_FAILED;
    return d->outcome;
}

MK_COLD void mk_http_stream_replace_with_error(struct mk_http_stream *d)
{
    unsigned status = d->x->response.failure_status;
    if (!status || mk_exchange_client_disconnected(d->x)) {
        mk_http_stream_fail_response(d);
        status = mk_exchange_client_disconnected(d->x) ? 400 : 500;
    }
    d->sent = 0;
    mk_http_stream_set_response_state(d, MK_RESPONSE_PENDING);
    mk_dispatch_replace_with_error(d->x, status);
}

/* ---- Tunnels ---- */

static void discard_tunnel_input(struct mk_http_stream *d)
{
    const struct mk_request *r = &d->x->request;
    char waste[4096];
    while (r->ops->read(r->ops_ctx, waste, sizeof waste) > 0)
        continue;
}

/* A handler called with has_input = false is called again for the next input even if it does not try to
 * read. */
static void call_on_input(struct mk_http_stream *d, bool has_input)
{
    struct mk_response_body *content = &d->x->response.content;
    if (!content->tunnel->on_input(content->source_ctx, has_input))
        mk_http_stream_set_input_state(d, MK_INPUT_UNWANTED);
    else if (!has_input)
        mk_http_stream_await_body(d);
}

void mk_http_stream_deliver_tunnel(struct mk_http_stream *d, bool has_unread)
{
    if (d->input.current == MK_INPUT_WANTED && d->x->response.content.tunnel->on_input)
        call_on_input(d, has_unread || mk_http_stream_request_received(d));
    if (d->input.current == MK_INPUT_UNWANTED)
        discard_tunnel_input(d);
}

bool mk_http_stream_is_tunnel_input_over(const struct mk_http_stream *d, bool unread)
{
    bool by_source = !d->x->response.content.tunnel->on_input;
    return (mk_http_stream_request_received(d) && !unread) || d->input.current == MK_INPUT_UNWANTED ||
           (by_source && mk_http_stream_response_written(d));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/h1.h"

#include "base/assert.h"
#include "base/num.h"
#include "proto/h1_input.h"
#include "proto/h1_output.h"

enum {
    DRAIN_MAX = 64 * 1024,           /* content that nobody wanted: so much is read to keep the connection */
    TRAILERS_MAX = 8 * 1024,         /* bytes after chunked content */
    BATCH_MAX = MK_OUTQ_SCRATCH / 2, /* pipelined answers are gathered up to here */
};

/* ---- The beginning of a request ---- */

static ssize_t on_read(void *ctx, char *room, size_t cap)
{
    return mk_h1_input_read(ctx, room, cap);
}

static void on_resume(void *ctx)
{
    struct mk_h1 *h = ctx;
    h->go = true;
    mk_conn_resume(h->conn);
}

static const struct mk_request_ops request_ops = {.read = on_read, .resume = on_resume};

/* For whoever reads the trail of a worker that died. */
static void leave_trail(struct mk_conn *c, mk_str method, mk_str target)
{
    char *line = c->service->counters->line;
    size_t n = mk_min(method.len, 16), m = mk_min(target.len, MK_TRAIL_LINE - 18);
    if (n)
        memcpy(line, method.p, n);
    line[n] = ' ';
    if (m)
        memcpy(line + n + 1, target.p, m);
    line[n + 1 + m] = '\0';
}

static struct mk_h1 *begin(struct mk_conn *c)
{
    struct mk_service *s = c->service;
    struct mk_exchange *x = mk_exchange_new(s->web, &s->arenas, s->loop->now_ms, s->loop->now_unix);
    struct mk_h1 *h = x ? mk_arena_alloc(&x->arena, sizeof *h) : NULL;
    if (!h) {
        if (x)
            mk_exchange_free(x);
        return NULL;
    }
    *h = (struct mk_h1){.conn = c, .x = x, .go = true};
    x->request.version = 11;
    x->request.peer = &c->peer;
    c->h1 = h;
    c->n_requests++;
    return h;
}

/* No memory for a request: the peer is told with what needs none. */
MK_COLD static bool give_up(struct mk_conn *c)
{
    mk_h1_output_busy(c);
    mk_log_warn(c->service->log, "a request was refused: out of memory");
    mk_conn_close(c, MK_ENDING_ABORTED);
    return false;
}

/* The peer broke the rules: one answer, and no more requests, since where the next one begins is not known.
 */
MK_COLD static bool refuse(struct mk_conn *c, unsigned status)
{
    struct mk_h1 *h = c->h1 ? c->h1 : begin(c);
    if (!h)
        return give_up(c);
    h->keep = false;
    h->body = MK_BODY_NONE;
    h->ending = status == 408 ? MK_ENDING_TIMEOUT : MK_ENDING_REFUSED;
    mk_flow_refuse(h->x, status);
    if (c->state != MK_CONN_FLOW)
        mk_conn_move(c, MK_CONN_FLOW);
    return true;
}

/* Head and fields move from the window, which the next turn overwrites, into the arena. */
static bool keep_head(struct mk_exchange *x, struct mk_head *head, mk_str bytes)
{
    mk_str copy = mk_arena_copy(&x->arena, bytes);
    struct mk_field *fields = mk_arena_alloc(&x->arena, sizeof *fields * head->fields.n);
    if (!copy.p || !fields)
        return false;
    ptrdiff_t by = copy.p - bytes.p;
    for (unsigned i = 0; i < head->fields.n; i++) {
        fields[i] = head->fields.at[i];
        fields[i].name.p += by;
        fields[i].value.p += by;
    }
    head->fields.at = fields;
    head->method_text.p += by;
    head->target.p += by;
    return true;
}

/* How the content comes in, and whether there is too much of it. 0 or a status. */
static unsigned take_framing(struct mk_h1 *h, const struct mk_framing *f, size_t head_len)
{
    const struct mk_limits *l = h->conn->service->limits;
    struct mk_request *r = &h->x->request;
    uint64_t rest = l->request_max > head_len ? l->request_max - head_len : 0;
    h->content_max = l->request_max && rest < l->content_max ? rest : l->content_max;
    h->body = f->body;
    h->left = f->length;
    h->expects_continue = f->expect_continue && f->body != MK_BODY_NONE;
    r->length = f->body == MK_BODY_CHUNKED ? MK_REQUEST_LENGTH_UNKNOWN : f->length;
    r->ops = &request_ops;
    r->ops_ctx = h;
    if (f->length > h->content_max)
        return 413;
    if (f->body != MK_BODY_CHUNKED)
        return 0;
    h->chunked = mk_arena_alloc(&h->x->arena, sizeof *h->chunked);
    if (!h->chunked)
        return 503;
    mk_chunked_init(h->chunked, TRAILERS_MAX);
    return 0;
}

static bool may_keep(const struct mk_conn *c, const struct mk_framing *f)
{
    const struct mk_limits *l = c->service->limits;
    return f->keep_alive && l->keep_alive && !c->service->draining &&
           (!l->requests_max || c->n_requests < l->requests_max);
}

static unsigned take_request(struct mk_h1 *h, struct mk_head *head)
{
    struct mk_request *r = &h->x->request;
    struct mk_framing framing;
    r->version = head->minor ? 11 : 10;
    r->method = head->method;
    r->method_text = head->method_text;
    r->fields = head->fields;
    leave_trail(h->conn, head->method_text, head->target);
    int bad = mk_exchange_set_target(h->x, head->target, (mk_str){NULL, 0});
    int worse = mk_framing_of(head, &framing);
    if (bad || worse)
        return (unsigned)(bad ? bad : worse);
    if (!r->host.p)
        r->host = framing.host;
    h->may_follow = framing.keep_alive;
    h->keep = may_keep(h->conn, &framing);
    return take_framing(h, &framing, head->len);
}

static bool start_request(struct mk_conn *c, struct mk_head *head)
{
    struct mk_h1 *h = begin(c);
    mk_str bytes = mk_str_take(mk_conn_input(c), head->len);
    if (!h)
        return give_up(c);
    mk_conn_use_input(c, head->len);
    c->seen = 0;
    if (!keep_head(h->x, head, bytes))
        return refuse(c, 503);
    unsigned status = take_request(h, head);
    if (status)
        return refuse(c, status);
    mk_conn_move(c, MK_CONN_FLOW);
    return true;
}

/* ---- Waiting for a request ---- */

static bool wait_for_head(struct mk_conn *c)
{
    bool begun = mk_conn_input(c).len > 0;
    if (begun && c->state == MK_CONN_IDLE)
        mk_conn_move(c, MK_CONN_HEAD);
    /* A new connection must speak within the time of a head; later ones may be idle. */
    mk_conn_set_clock(c, begun || c->n_requests == 0 ? MK_CLOCK_HEAD : MK_CLOCK_IDLE);
    return false;
}

MK_COLD static bool on_input_end(struct mk_conn *c)
{
    struct mk_service *s = c->service;
    /* Answers that wait for their batch go first. */
    if (s->out.len && mk_outq_flush(&c->out, &c->stream, &s->out, false, &s->counters->sent) == -EAGAIN) {
        mk_conn_set_clock(c, MK_CLOCK_RATE);
        return false; /* the input will end once more, when they are gone */
    }
    if (mk_conn_input(c).len > 0 && begin(c))
        c->h1->ending = MK_ENDING_GONE; /* its record: a request that never was whole */
    mk_conn_close(c, MK_ENDING_GONE);
    return false;
}

/* What the input has of a head: a request (1), not enough (0), or nothing that could become one: refused (1),
 * or given up (-1). */
static int parse_head(struct mk_conn *c, mk_str in)
{
    struct mk_service *s = c->service;
    struct mk_head head;
    head.fields.at = s->fields;
    int n = mk_head_parse(&head, in, c->seen, &s->limits->head);
    if (n > 0)
        return start_request(c, &head) ? 1 : -1;
    if (n < 0)
        return refuse(c, (unsigned)-n) ? 1 : -1;
    c->seen = (uint32_t)in.len;
    return 0;
}

/* True when a request has begun. */
static bool read_head(struct mk_conn *c)
{
    for (;;) {
        mk_str in = mk_conn_input(c);
        int begun = in.len > c->seen ? parse_head(c, in) : 0;
        if (begun)
            return begun > 0;
        ssize_t n = mk_conn_fill(c);
        if (n <= 0)
            return n == -EAGAIN ? wait_for_head(c) : on_input_end(c);
    }
}

/* ---- The request in the corridor ---- */

static bool begin_response(struct mk_conn *c)
{
    struct mk_h1 *h = c->h1;
    bool unread = h->body != MK_BODY_NONE;
    /* Content that was not read must be read away before the next request; not if it is much, or may never
     * come. */
    if (unread && (h->expects_continue || h->broken || h->left > DRAIN_MAX || c->service->draining))
        h->keep = false;
    h->go = true;
    mk_conn_move(c, MK_CONN_SEND);
    mk_h1_output_head(h);
    return true;
}

MK_COLD static bool wait_for_somebody(struct mk_conn *c)
{
    mk_conn_set_clock(c, c->h1->wants_input ? MK_CLOCK_RATE : MK_CLOCK_HANDLER);
    return false;
}

/* May whoever waits be called again? After a resume, or when there is the input that it asked for. */
static bool take_turn(struct mk_h1 *h)
{
    bool go = h->go || (h->wants_input && (h->conn->readable || mk_conn_input(h->conn).len > 0));
    h->go = false;
    if (go)
        h->wants_input = false;
    return go;
}

static bool run_flow(struct mk_conn *c)
{
    struct mk_h1 *h = c->h1;
    if (h->x->step == MK_FLOW_READY || (take_turn(h) && mk_flow_run(h->x)))
        return begin_response(c);
    return wait_for_somebody(c);
}

/* ---- The response ---- */

static void count(struct mk_h1 *h, enum mk_ending ending)
{
    struct mk_counters *n = h->conn->service->counters;
    unsigned class = h->x->response.sealed ? h->x->response.status / 100 : 0;
    n->requests++;
    n->by_class[class < MK_LEN(n->by_class) ? class : 0]++;
    n->by_ending[ending]++;
}

static void record(struct mk_h1 *h, enum mk_ending ending)
{
    if (h->recorded)
        return;
    h->recorded = true;
    if (h->ending)
        ending = h->ending;
    count(h, ending);
    mk_flow_end(h->x, ending, h->sent, h->conn->service->loop->now_ms);
}

static void end_request(struct mk_conn *c)
{
    struct mk_h1 *h = c->h1;
    if (h->coldread)
        mk_coldread_forget(h->coldread);
    c->h1 = NULL;
    c->clock = MK_CLOCK_NONE;
    mk_exchange_free(h->x);
}

MK_COLD static bool linger(struct mk_conn *c)
{
    c->stream.ops->shutdown(&c->stream);
    c->readable = true;
    mk_conn_move(c, MK_CONN_LINGER);
    mk_conn_set_clock(c, MK_CLOCK_LINGER);
    return true;
}

static bool end_connection(struct mk_conn *c)
{
    const struct mk_h1 *h = c->h1;
    bool may_speak = mk_conn_input(c).len > 0 || c->readable || h->body != MK_BODY_NONE || h->ending ||
                     (h->may_follow && !c->ended);
    end_request(c);
    if (may_speak) /* closing now would send a reset, which can destroy what the peer has not read yet */
        return linger(c);
    mk_conn_close(c, MK_ENDING_DONE);
    return false;
}

static bool after_response(struct mk_conn *c)
{
    struct mk_h1 *h = c->h1;
    record(h, MK_ENDING_DONE);
    if (!h->keep || h->broken)
        return end_connection(c);
    if (h->body != MK_BODY_NONE) {
        h->received = 0;
        h->content_max = DRAIN_MAX;
        mk_conn_move(c, MK_CONN_DRAIN);
        return true;
    }
    end_request(c);
    mk_conn_move(c, MK_CONN_IDLE);
    return true;
}

/* More answers may follow in the same write: the peer has sent its requests without waiting. */
static bool can_batch(const struct mk_conn *c)
{
    return c->h1->keep && mk_outq_empty(&c->out) && mk_conn_input(c).len > 0 &&
           c->service->out.len < BATCH_MAX && c->h1->body == MK_BODY_NONE;
}

static bool send_response(struct mk_conn *c)
{
    struct mk_h1 *h = c->h1;
    enum mk_h1_progress p = mk_outq_empty(&c->out) ? MK_H1_COMPLETE : mk_h1_output_flush(h);
    bool waits_for_source = !h->complete && h->x->response.content.source && !take_turn(h);
    if (p == MK_H1_COMPLETE && !waits_for_source)
        p = mk_h1_output_content(h);
    else if (p == MK_H1_COMPLETE)
        p = MK_H1_WAITS_INPUT;
    if (p == MK_H1_COMPLETE && !can_batch(c))
        p = mk_h1_output_flush(h);
    switch (p) {
    case MK_H1_COMPLETE:
        return after_response(c);
    case MK_H1_WAITS_ROOM:
        h->go = true;
        mk_conn_set_clock(c, MK_CLOCK_RATE);
        return false;
    case MK_H1_WAITS_INPUT:
        return wait_for_somebody(c);
    case MK_H1_BROKEN:
        break;
    }
    mk_conn_close(c, h->ending);
    return false;
}

/* ---- After the response ---- */

MK_COLD static bool drain(struct mk_conn *c)
{
    char waste[4096];
    ssize_t n = mk_h1_input_read(c->h1, waste, sizeof waste);
    if (n > 0)
        return true;
    if (n == -EAGAIN) {
        mk_conn_set_clock(c, MK_CLOCK_RATE);
        return false;
    }
    if (n < 0)
        return end_connection(c);
    end_request(c);
    mk_conn_move(c, MK_CONN_IDLE);
    return true;
}

MK_COLD static bool listen_out(struct mk_conn *c)
{
    mk_conn_use_input(c, mk_conn_input(c).len);
    ssize_t n = mk_conn_fill(c);
    if (n > 0)
        return true;
    if (n != -EAGAIN)
        mk_conn_close(c, MK_ENDING_DONE);
    return false;
}

/* A request goes down the states in one call if nobody has to wait. True: call again. */
static bool step(struct mk_conn *c)
{
    switch ((enum mk_conn_state)c->state) {
    case MK_CONN_IDLE:
    case MK_CONN_HEAD:
        if (!read_head(c))
            return false;
        /* fallthrough */
    case MK_CONN_FLOW:
        if (!run_flow(c))
            return false;
        /* fallthrough */
    case MK_CONN_SEND:
        return send_response(c);
    case MK_CONN_DRAIN:
        return drain(c);
    case MK_CONN_LINGER:
        return listen_out(c);
    case MK_CONN_DEAD:
    case MK_CONN_STATES:
        break;
    }
    return false;
}

/* What was batched goes out before the connection is left. */
static void flush_batch(struct mk_conn *c)
{
    struct mk_service *s = c->service;
    if (s->out.len == 0)
        return;
    mk_err e = mk_outq_flush(&c->out, &c->stream, &s->out, false, &s->counters->sent);
    if (e && e != -EAGAIN)
        mk_conn_close(c, MK_ENDING_GONE);
    else if (e && c->state <= MK_CONN_HEAD)
        mk_conn_set_clock(c, MK_CLOCK_RATE);
}

static void advance(struct mk_conn *c)
{
    mk_conn_enter(c);
    if (c->state <= MK_CONN_HEAD && !mk_outq_empty(&c->out)) {
        /* The last batch did not fit: nothing new before it is gone. */
        uint64_t *sent = &c->service->counters->sent, before = *sent;
        mk_err e = mk_outq_push(&c->out, &c->stream, sent);
        c->progress += *sent - before;
        if (e && e != -EAGAIN)
            mk_conn_close(c, MK_ENDING_GONE);
        else if (!e)
            c->clock = MK_CLOCK_NONE;
    }
    while (mk_outq_empty(&c->out) || c->state > MK_CONN_HEAD)
        if (!step(c))
            break;
    if (c->state != MK_CONN_DEAD)
        flush_batch(c);
    else
        mk_buf_clear(&c->service->out);
    mk_conn_leave(c);
}

/* ---- Clocks and the end ---- */

static void on_head_timeout(struct mk_conn *c)
{
    bool begun = c->state == MK_CONN_HEAD;
    if (!begun) {
        /* Browsers open connections before they need them: an answer to nothing would be taken for one to
         * what they ask next. */
        mk_conn_close(c, MK_ENDING_TIMEOUT);
        return;
    }
    mk_conn_enter(c);
    if (refuse(c, 408))
        while (step(c))
            ;
    mk_conn_leave(c);
}

/* The peer is too slow, or somebody of ours is. */
static void on_wait_timeout(struct mk_conn *c, unsigned status)
{
    struct mk_h1 *h = c->h1;
    if (c->state != MK_CONN_FLOW) {
        mk_conn_reset(c, MK_ENDING_TIMEOUT);
        return;
    }
    mk_conn_enter(c);
    h->ending = MK_ENDING_TIMEOUT;
    if (refuse(c, status))
        while (step(c))
            ;
    mk_conn_leave(c);
}

static void on_clock(struct mk_conn *c, enum mk_clock clock)
{
    switch (clock) {
    case MK_CLOCK_HEAD:
        on_head_timeout(c);
        break;
    case MK_CLOCK_RATE:
        on_wait_timeout(c, 408);
        break;
    case MK_CLOCK_HANDLER:
        on_wait_timeout(c, 504);
        break;
    case MK_CLOCK_IDLE:
    case MK_CLOCK_LINGER:
    case MK_CLOCK_NONE:
        mk_conn_close(c, MK_ENDING_DONE);
        break;
    }
}

static void on_close(struct mk_conn *c, enum mk_ending ending)
{
    if (!c->h1)
        return;
    record(c->h1, ending);
    end_request(c);
}

const struct mk_conn_ops mk_h1_ops = {.advance = advance, .on_clock = on_clock, .on_close = on_close};

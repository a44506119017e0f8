/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/h1.h"

#include "proto/h1_input.h"
#include "proto/h1_output.h"
#include "proto/h1_request.h"
#include "proto/h1_tunnel.h"
#include "proto/h2.h"
#include "web/filter.h"

enum {
    DRAIN_MAX = 64 * 1024,           /* content that nobody wanted: so much is read to keep the connection */
    BATCH_MAX = MK_OUTQ_SCRATCH / 2, /* pipelined answers are gathered up to here */
    AT_ONCE = 4096,                  /* content of which nothing has to wait in our socket for the peer */
};

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
    if (mk_conn_input(c).len > 0 && mk_h1_request_new(c))
        c->h1->ending = MK_ENDING_GONE; /* its record: a request that never was whole */
    mk_conn_close(c, MK_ENDING_GONE);
    return false;
}

/* A client that knows beforehand that we speak HTTP/2 begins with what HTTP/1 could not mean (RFC 9113,
 * section 3.3). */
MK_COLD static bool is_h2(const struct mk_conn *c, mk_str in)
{
    return c->service->limits->h2.on && c->n_requests == 0 && !c->stream.tls &&
           mk_str_starts(MK_H2_PREFACE, mk_str_take(in, MK_H2_PREFACE.len));
}

/* What the input has of a head: a request (1), not enough (0), or nothing that could become one: refused (1),
 * or not for us (-1). */
static int parse_head(struct mk_conn *c, mk_str in)
{
    struct mk_service *s = c->service;
    struct mk_head head;
    head.fields.at = s->fields;
    int n = mk_head_parse(&head, in, c->seen, &s->limits->head);
    if (n > 0)
        return mk_h1_request_start(c, &head) ? 1 : -1;
    if (n < 0 && is_h2(c, in)) {
        c->ops = &mk_h2_ops;
        return -1;
    }
    if (n < 0)
        return mk_h1_request_refuse(c, (unsigned)-n) ? 1 : -1;
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

/* Content that nobody reads must be read away before the next request: not if it is much, or may never come.
 * A source may still read it. */
static void decide_on_unread(struct mk_h1 *h)
{
    bool by_source = mk_filter_origin(&h->x->response.content)->source != NULL;
    /* One that answers with success will want to: behind the head it would be too late to say so. */
    if (h->expects_continue && by_source && h->x->response.status < 300)
        (void)!mk_h1_input_continue(h);
    bool too_much = !by_source && h->left > DRAIN_MAX;
    if (h->expects_continue || h->broken || too_much || h->conn->service->draining)
        h->keep = false;
}

/* The head goes out first, by itself: the tunnel begins with the next turn. */
MK_COLD static bool begin_tunnel(struct mk_conn *c)
{
    mk_h1_tunnel_begin(c->h1);
    mk_conn_move(c, MK_CONN_TUNNEL);
    mk_conn_resume(c);
    return false;
}

static bool begin_response(struct mk_conn *c)
{
    struct mk_h1 *h = c->h1;
    if (h->body != MK_BODY_NONE)
        decide_on_unread(h);
    h->go = true;
    mk_conn_move(c, MK_CONN_SEND);
    if (!mk_h1_output_head(h)) {
        mk_conn_close(c, h->ending);
        return false;
    }
    if (MK_UNLIKELY(mk_content_is_tunnel(&h->x->response.content)) && !h->complete)
        return begin_tunnel(c);
    return true;
}

/* Has the peer said its last word, and nothing to say to whoever waits? */
static bool is_left(const struct mk_conn *c)
{
    return c->ended && c->h1->x->request.follows_client && !c->h1->wants_input;
}

MK_COLD static bool wait_for_somebody(struct mk_conn *c)
{
    if (is_left(c)) {
        mk_conn_close(c, MK_ENDING_GONE);
        return false;
    }
    mk_conn_set_clock(c, c->h1->wants_input ? MK_CLOCK_RATE : MK_CLOCK_HANDLER);
    return false;
}

static bool run_flow(struct mk_conn *c)
{
    struct mk_h1 *h = c->h1;
    if (h->x->step == MK_FLOW_READY || (mk_h1_take_turn(h) && mk_flow_run(h->x)))
        return begin_response(c);
    return wait_for_somebody(c);
}

/* ---- The response ---- */

static void record(struct mk_h1 *h, enum mk_ending ending)
{
    if (h->recorded)
        return;
    h->recorded = true;
    mk_service_record(h->conn->service, h->x, h->ending ? h->ending : ending, h->sent);
}

static void end_request(struct mk_conn *c)
{
    struct mk_h1 *h = c->h1;
    if (h->coldread)
        mk_coldread_forget(h->coldread);
    c->h1 = NULL;
    c->clock = MK_CLOCK_NONE;
    c->rate.credit = 0;
    mk_exchange_free(h->x);
}

/* The last bytes were held back for the end to go with them: a close alone would throw them away if the peer
 * has sent more meanwhile. An encrypted stream says the end in its protocol too, and may have to wait for
 * room. */
static bool says_end(struct mk_conn *c)
{
    c->stream.ops->shutdown(&c->stream);
    return !c->stream.ends;
}

static bool end_connection(struct mk_conn *c)
{
    const struct mk_h1 *h = c->h1;
    bool may_speak = mk_conn_input(c).len > 0 || c->readable || h->body != MK_BODY_NONE || h->ending ||
                     ((h->may_follow || h->sent > AT_ONCE) && !c->ended);
    bool shut = h->shut;
    end_request(c);
    if (may_speak) { /* closing now would send a reset, which can destroy what the peer has not read yet */
        mk_conn_linger(c, shut);
        return true;
    }
    if (!shut && !says_end(c)) {
        mk_conn_linger(c, true);
        return true;
    }
    mk_conn_close(c, MK_ENDING_DONE);
    return false;
}

static bool after_response(struct mk_conn *c)
{
    struct mk_h1 *h = c->h1;
    record(h, MK_ENDING_DONE);
    if (!h->keep || h->broken || h->left > DRAIN_MAX)
        return end_connection(c);
    if (h->body != MK_BODY_NONE) {
        h->content_max = h->received + DRAIN_MAX;
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
    bool waits_for_source = !h->complete && h->x->response.content.source && !mk_h1_take_turn(h);
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
    if (h->ending == MK_ENDING_ABORTED && h->to_send == MK_CONTENT_UNKNOWN && !h->in_chunks)
        mk_conn_reset(c, h->ending); /* a proper end would make it look complete */
    else
        mk_conn_close(c, h->ending);
    return false;
}

MK_COLD static bool tunnel(struct mk_conn *c)
{
    struct mk_h1 *h = c->h1;
    switch (mk_h1_tunnel_take_turn(h)) {
    case MK_H1_TUNNEL_OPEN:
        break;
    case MK_H1_TUNNEL_OVER:
        record(h, MK_ENDING_DONE);
        return end_connection(c);
    case MK_H1_TUNNEL_BROKEN:
        mk_conn_reset(c, h->ending); /* a proper end would make it look complete */
        break;
    }
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
        return mk_conn_listen_out(c);
    case MK_CONN_TUNNEL:
        return tunnel(c);
    case MK_CONN_SECURE:
    case MK_CONN_MULTI:
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

/* Nothing of this connection may stay in what the next one will use. */
static void leave(struct mk_conn *c)
{
    if (c->state != MK_CONN_DEAD)
        flush_batch(c);
    if (c->state == MK_CONN_DEAD)
        mk_buf_clear(&c->service->out);
    mk_conn_leave(c);
}

void mk_h1_serve(struct mk_conn *c)
{
    if (c->state <= MK_CONN_FLOW && !mk_outq_empty(&c->out)) {
        /* The last batch did not fit: no new request before it is gone. */
        uint64_t *sent = &c->service->counters->sent, before = *sent;
        mk_err e = mk_outq_push(&c->out, &c->stream, sent);
        c->progress += *sent - before;
        if (e && e != -EAGAIN)
            mk_conn_close(c, MK_ENDING_GONE);
        else if (!e && c->state <= MK_CONN_HEAD)
            c->clock = MK_CLOCK_NONE;
    }
    while (mk_outq_empty(&c->out) || c->state > MK_CONN_HEAD)
        if (!step(c))
            break;
    if (MK_LIKELY(c->ops == &mk_h1_ops))
        leave(c);
    else
        mk_h2_serve(c);
}

static void advance(struct mk_conn *c)
{
    mk_conn_enter(c);
    mk_h1_serve(c);
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
    if (mk_h1_request_refuse(c, 408))
        while (step(c))
            ;
    leave(c);
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
    if (mk_h1_request_refuse(c, status))
        while (step(c))
            ;
    leave(c);
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
    case MK_CLOCK_TUNNEL:
        if (mk_outq_empty(&c->out))
            mk_conn_close(c, MK_ENDING_TIMEOUT);
        else
            mk_conn_reset(c, MK_ENDING_TIMEOUT);
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

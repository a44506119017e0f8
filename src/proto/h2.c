/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/h2.h"

#include "base/mem.h"
#include "proto/h2_flow.h"
#include "proto/h2_guard.h"
#include "proto/h2_input.h"
#include "proto/h2_output.h"
#include "proto/h2_say.h"

enum { CONNECTION_WINDOW = 1024 * 1024, TABLE_MAX = 4096 /* of whom nothing else was heard */ };

/* ---- Beginning ---- */

static void introduce(struct mk_h2 *h2)
{
    const struct mk_limits *l = h2->conn->service->limits;
    struct mk_buf *out = mk_h2_say_room(h2, 46);
    mk_h2_frame_emit_head(out, 4 * 6, MK_H2_SETTINGS, 0, 0);
    mk_h2_frame_emit_setting(out, MK_H2_MAX_CONCURRENT_STREAMS, l->h2.streams_max);
    mk_h2_frame_emit_setting(out, MK_H2_MAX_HEADER_LIST_SIZE, (uint32_t)l->head.head_max);
    mk_h2_frame_emit_setting(out, MK_H2_ENABLE_CONNECT_PROTOCOL, 1);
    mk_h2_frame_emit_setting(out, MK_H2_NO_RFC7540_PRIORITIES, 1);
    mk_h2_say_window(h2, 0, CONNECTION_WINDOW - MK_H2_WINDOW);
    h2->receive_window = CONNECTION_WINDOW;
}

static struct mk_h2 *new_h2(struct mk_conn *c)
{
    struct mk_h2 *h2 = mk_mem_alloc(sizeof *h2);
    if (!h2)
        return NULL;
    *h2 = (struct mk_h2){.conn = c,
                         .table_max = TABLE_MAX,
                         .decoder = mk_hpack_new(),
                         .send_window = MK_H2_WINDOW,
                         .stream_window = MK_H2_WINDOW};
    if (!h2->decoder) {
        mk_mem_free(h2);
        return NULL;
    }
    mk_list_init(&h2->with_debts);
    mk_list_init(&h2->woken);
    for (unsigned u = 0; u < MK_URGENCIES; u++)
        mk_list_init(&h2->ready[u]);
    mk_h2_guard_init(h2);
    return h2;
}

static void free_h2(struct mk_conn *c)
{
    struct mk_h2 *h2 = c->h2;
    c->h2 = NULL;
    mk_buf_free(&h2->block);
    mk_hpack_free(h2->decoder);
    mk_mem_free(h2);
}

/* ---- Ending ---- */

/* All is said. */
static void say_farewell(struct mk_conn *c, enum mk_ending ending)
{
    mk_h2_stream_end_all(c->h2, ending);
    free_h2(c);
    mk_conn_linger(c, false);
    while (mk_conn_listen_out(c))
        ;
}

/* ---- Turns ---- */

static void run_woken(struct mk_h2 *h2)
{
    struct mk_list now;
    if (mk_list_empty(&h2->woken))
        return;
    /* Who is woken meanwhile has his turn next time. */
    now = h2->woken;
    now.next->prev = now.prev->next = &now;
    mk_list_init(&h2->woken);
    while (!mk_list_empty(&now)) {
        struct mk_h2_stream *s = MK_LIST_ENTRY(now.next, struct mk_h2_stream, turn);
        mk_list_remove(&s->turn);
        mk_h2_flow_run(s);
    }
    if (!mk_list_empty(&h2->woken))
        mk_conn_resume(h2->conn);
}

/* What the connection as a whole waits for; streams have clocks of their own. */
static enum mk_clock clock_of(const struct mk_h2 *h2)
{
    struct mk_conn *c = h2->conn;
    mk_str in = mk_conn_input(c);
    if (mk_h2_output_is_blocked(h2))
        return MK_CLOCK_RATE;
    if (in.len > 3 && h2->greeted && in.p[3] == MK_H2_DATA)
        return MK_CLOCK_RATE;
    if (in.len || h2->block_stream || !h2->introduced)
        return MK_CLOCK_HEAD;
    if (h2->n_streams)
        return MK_CLOCK_NONE;
    return c->n_requests ? MK_CLOCK_IDLE : MK_CLOCK_HEAD;
}

static bool is_over(const struct mk_h2 *h2)
{
    if (!mk_outq_empty(&h2->conn->out))
        return false;
    return h2->failed || ((h2->leaving || h2->deserted || h2->halved) && !h2->n_streams);
}

static void set_clock(struct mk_conn *c, enum mk_clock clock)
{
    bool was_busy = c->h2->idle_at != c->n_requests; /* if only for a part of this turn */
    if (clock == MK_CLOCK_NONE)
        c->clock = MK_CLOCK_NONE;
    else if (clock != c->clock || (clock == MK_CLOCK_IDLE && was_busy))
        mk_conn_set_clock(c, clock);
    if (clock == MK_CLOCK_IDLE)
        c->h2->idle_at = c->n_requests;
}

/* Requests enough for one connection, or it is to end with its worker. */
static bool should_wind_down(const struct mk_h2 *h2)
{
    const struct mk_service *s = h2->conn->service;
    return s->draining || !s->limits->keep_alive ||
           (s->limits->requests_max && h2->conn->n_requests >= s->limits->requests_max);
}

static void wind_down(struct mk_h2 *h2)
{
    if (!should_wind_down(h2))
        return;
    mk_h2_say_leaving(h2);
    /* It was told, and asks and asks. */
    if (!h2->leaving && h2->conn->n_requests - h2->told_at >= h2->conn->service->limits->h2.streams_max)
        mk_h2_say_farewell(h2);
}

static void settle(struct mk_conn *c)
{
    struct mk_h2 *h2 = c->h2;
    if (!h2->failed) {
        mk_h2_stream_settle(h2);
        wind_down(h2);
    }
    if (c->service->out.len)
        (void)mk_h2_say_flush(h2);
    if (h2->failed && !h2->lost)
        mk_h2_stream_end_all(h2, MK_ENDING_REFUSED);
    if (h2->lost)
        mk_conn_close(c, MK_ENDING_GONE);
    else if (is_over(h2))
        say_farewell(c, MK_ENDING_DONE);
    else
        set_clock(c, clock_of(h2));
}

static void leave(struct mk_conn *c)
{
    if (c->state == MK_CONN_MULTI)
        settle(c);
    mk_buf_clear(&c->service->out);
    mk_conn_leave(c);
}

static void serve(struct mk_conn *c)
{
    struct mk_h2 *h2 = c->h2;
    uint64_t *sent = &c->service->counters->sent, before = *sent;
    mk_err e = mk_outq_push(&c->out, &c->stream, sent);
    c->progress += *sent - before;
    h2->lost = e && e != -EAGAIN;
    mk_h2_input_read(h2);
    if (!h2->failed && !h2->lost) {
        run_woken(h2);
        mk_h2_output_send(h2);
    }
    leave(c);
}

void mk_h2_serve(struct mk_conn *c)
{
    struct mk_h2 *h2 = new_h2(c);
    c->ops = &mk_h2_ops;
    mk_conn_move(c, MK_CONN_MULTI);
    c->h2 = h2;
    if (!h2) {
        mk_log_warn(c->service->log, "a connection was closed: out of memory");
        mk_conn_close(c, MK_ENDING_ABORTED);
        mk_conn_leave(c);
        return;
    }
    introduce(h2);
    serve(c);
}

static void advance(struct mk_conn *c)
{
    mk_conn_enter(c);
    if (c->state == MK_CONN_MULTI) {
        serve(c);
        return;
    }
    if (c->state == MK_CONN_IDLE) {
        mk_h2_serve(c);
        return;
    }
    while (mk_conn_listen_out(c))
        ;
    mk_conn_leave(c);
}

/* ---- Clocks and the end ---- */

static void on_clock(struct mk_conn *c, enum mk_clock clock)
{
    if (c->state == MK_CONN_LINGER) {
        mk_conn_close(c, MK_ENDING_DONE);
        return;
    }
    if (clock == MK_CLOCK_RATE) {
        c->service->counters->h2_ended[MK_H2_SLOW]++;
        mk_conn_reset(c, MK_ENDING_TIMEOUT);
        return;
    }
    mk_conn_enter(c);
    mk_h2_say_farewell(c->h2);
    mk_h2_stream_end_all(c->h2, MK_ENDING_TIMEOUT);
    leave(c);
}

static void on_close(struct mk_conn *c, enum mk_ending ending)
{
    if (c->state != MK_CONN_MULTI || !c->h2)
        return;
    mk_h2_stream_end_all(c->h2, ending);
    free_h2(c);
}

static void on_drain(struct mk_conn *c)
{
    if (c->state != MK_CONN_MULTI)
        return;
    mk_conn_enter(c);
    mk_h2_say_leaving(c->h2);
    leave(c);
}

const struct mk_conn_ops mk_h2_ops = {
    .advance = advance, .on_clock = on_clock, .on_close = on_close, .on_drain = on_drain};

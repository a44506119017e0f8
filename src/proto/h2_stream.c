/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/h2_stream.h"

#include "base/mem.h"
#include "proto/h2_guard.h"
#include "proto/h2_say.h"

enum {
    PIECE_MIN = 4096,         /* small frames share one */
    WIDE_WINDOW = 256 * 1024, /* of a stream whose content is read */
};

struct mk_h2_piece {
    struct mk_h2_piece *next;
    uint32_t from, to, cap;
    char bytes[];
};

static struct mk_service *service_of(const struct mk_h2_stream *s)
{
    return s->h2->conn->service;
}

/* ---- Finding ---- */

static struct mk_h2_stream **bucket_of(struct mk_h2 *h2, uint32_t id)
{
    return &h2->buckets[id / 2 % MK_H2_BUCKETS];
}

struct mk_h2_stream *mk_h2_stream_find(const struct mk_h2 *h2, uint32_t id)
{
    struct mk_h2_stream *s = h2->buckets[id / 2 % MK_H2_BUCKETS];
    while (s && s->id != id)
        s = s->next;
    return s;
}

bool mk_h2_stream_was_reset(const struct mk_h2 *h2, uint32_t id)
{
    for (unsigned i = 0; i < MK_H2_RESETS_KEPT; i++)
        if (h2->resets[i] == id)
            return true;
    return false;
}

void mk_h2_stream_forget_reset(struct mk_h2 *h2, uint32_t id)
{
    for (unsigned i = 0; i < MK_H2_RESETS_KEPT; i++)
        if (h2->resets[i] == id)
            h2->resets[i] = 0;
}

/* ---- Clocks ---- */

static void on_due(struct mk_timer *t)
{
    struct mk_h2_stream *s = MK_CONTAINER(t, struct mk_h2_stream, timer);
    struct mk_conn *c = s->h2->conn;
    enum mk_clock clock = s->clock;
    s->clock = MK_CLOCK_NONE;
    if (clock == MK_CLOCK_NONE)
        return;
    /* In a queue it is not this stream's client that is slow, but perhaps the whole connection's. */
    bool queued = !mk_list_empty(&s->turn);
    if (clock == MK_CLOCK_RATE &&
        (queued || !mk_rate_is_too_slow(&s->rate, s->progress, c->service->limits))) {
        mk_h2_stream_set_clock(s, MK_CLOCK_RATE);
        return;
    }
    s->due = (uint8_t)clock;
    mk_h2_stream_wake(s);
    mk_conn_resume(c);
}

void mk_h2_stream_set_clock(struct mk_h2_stream *s, enum mk_clock clock)
{
    struct mk_service *service = service_of(s);
    if (s->clock == clock && clock != MK_CLOCK_TUNNEL)
        return;
    uint32_t span = mk_clock_span(service->limits, clock);
    s->clock = (uint8_t)clock;
    if (clock == MK_CLOCK_RATE)
        s->rate.progressed = s->progress;
    if (span)
        mk_timer_set(&service->loop->wheel, &s->timer, service->loop->now_ms, span);
    else
        mk_timer_stop(&s->timer);
}

/* Has the client said its last word, and is nobody to work for one who is gone? */
static void follow_client(struct mk_h2_stream *s)
{
    if (!s->h2->halved || !s->x->request.follows_client || s->wants_input)
        return;
    s->left = true;
    mk_h2_stream_wake(s);
    mk_conn_resume(s->h2->conn);
}

void mk_h2_stream_wait(struct mk_h2_stream *s)
{
    if (s->tunnel)
        return; /* its clock runs already */
    mk_h2_stream_set_clock(s, s->wants_input ? MK_CLOCK_RATE : MK_CLOCK_HANDLER);
    follow_client(s);
}

/* ---- What the request may ask ---- */

static void owe(struct mk_h2_stream *s, uint32_t n)
{
    s->owed += n;
    if (!s->input_ended && mk_list_empty(&s->debt))
        mk_list_add_last(&s->h2->with_debts, &s->debt);
}

static ssize_t take_piece(struct mk_h2_stream *s, char *room, size_t cap)
{
    struct mk_h2_piece *p = s->first;
    size_t n = mk_min(cap, p->to - p->from);
    memcpy(room, p->bytes + p->from, n);
    p->from += (uint32_t)n;
    if (p->from == p->to) {
        s->first = p->next;
        if (!s->first)
            s->last = NULL;
        mk_mem_free(p);
    }
    owe(s, (uint32_t)n);
    return (ssize_t)n;
}

void mk_h2_stream_send_continue(struct mk_h2_stream *s)
{
    struct mk_buf *out = mk_h2_say_room(s->h2, MK_H2_FRAME_HEAD + 16);
    size_t from = out->len;
    s->expects_continue = false;
    if (s->received || s->x->response.sealed)
        return; /* the client did not wait for it, or has its answer */
    mk_h2_say_open_block(s->h2);
    mk_hpack_emit_status(out, 100);
    (void)mk_h2_say_close_block(s->h2, from, s->id, 0);
}

static ssize_t on_read(void *ctx, char *room, size_t cap)
{
    struct mk_h2_stream *s = ctx;
    if (service_of(s)->serving != s->h2->conn)
        return -EAGAIN; /* called from outside of a handler or source: resume first */
    if (s->x->request.tunnel.p && !s->tunnel)
        return 0; /* what follows is the tunnel's, should somebody open it */
    if (s->first)
        return take_piece(s, room, cap);
    if (s->broken || s->input_ended)
        return s->broken;
    if (s->expects_continue)
        mk_h2_stream_send_continue(s);
    if (!s->widened) {
        s->widened = true;
        owe(s, 0);
    }
    s->wants_input = true;
    return -EAGAIN;
}

/* To the corridor, or to those that send, wherever it is. */
static void go_on(struct mk_h2_stream *s)
{
    s->go = true;
    if (s->x->step != MK_FLOW_READY || s->tunnel)
        mk_h2_stream_wake(s);
    else
        mk_h2_stream_make_ready(s);
}

static void on_resume(void *ctx)
{
    struct mk_h2_stream *s = ctx;
    go_on(s);
    mk_conn_resume(s->h2->conn);
}

static mk_err on_local(void *ctx, struct mk_peer *out)
{
    struct mk_h2_stream *s = ctx;
    return mk_conn_local(s->h2->conn, out);
}

static void on_tls(void *ctx, struct mk_tls_facts *out)
{
    const struct mk_h2_stream *s = ctx;
    mk_conn_tls(s->h2->conn, out);
}

static const struct mk_request_ops request_ops = {
    .read = on_read, .resume = on_resume, .local = on_local, .tls = on_tls};

/* ---- Life ---- */

struct mk_h2_stream *mk_h2_stream_new(struct mk_h2 *h2, uint32_t id)
{
    struct mk_conn *c = h2->conn;
    struct mk_service *service = c->service;
    struct mk_exchange *x =
        mk_exchange_new(service->web, &service->arenas, service->loop->now_ms, service->loop->now_unix);
    struct mk_h2_stream *s = x ? mk_arena_alloc(&x->arena, sizeof *s) : NULL;
    if (!s) {
        if (x)
            mk_exchange_free(x);
        return NULL;
    }
    *s = (struct mk_h2_stream){.h2 = h2,
                               .x = x,
                               .id = id,
                               .go = true,
                               .next = *bucket_of(h2, id),
                               .send_window = h2->stream_window,
                               .receive_window = MK_H2_WINDOW,
                               .priority = {.urgency = MK_URGENCY_USUAL}};
    mk_list_init(&s->turn);
    mk_list_init(&s->debt);
    mk_timer_init(&s->timer, on_due);
    x->request.version = 20;
    x->request.peer = &c->peer;
    x->request.ops = &request_ops;
    x->request.ops_ctx = s;
    x->request.encrypted = c->stream.tls != NULL;
    x->response.no_raw = true;
    *bucket_of(h2, id) = s;
    h2->n_streams++;
    c->n_requests++;
    return s;
}

static void drop_pieces(struct mk_h2_stream *s)
{
    while (s->first) {
        struct mk_h2_piece *next = s->first->next;
        mk_mem_free(s->first);
        s->first = next;
    }
    s->last = NULL;
}

static void record(struct mk_h2_stream *s, enum mk_ending ending)
{
    if (s->recorded)
        return;
    s->recorded = true;
    mk_service_record(service_of(s), s->x, s->ending ? s->ending : ending, s->sent);
}

static void forget(struct mk_h2_stream *s)
{
    struct mk_h2_stream **at = bucket_of(s->h2, s->id);
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    s->h2->n_streams--;
    s->x->request.ops = NULL; /* whoever is told of the end may still resume it */
    mk_list_remove(&s->turn);
    mk_list_remove(&s->debt);
    mk_timer_stop(&s->timer);
}

void mk_h2_stream_end(struct mk_h2_stream *s, enum mk_ending ending)
{
    record(s, ending);
    forget(s);
    if (s->coldread)
        mk_coldread_forget(s->coldread);
    drop_pieces(s);
    mk_exchange_free(s->x);
}

void mk_h2_stream_reset(struct mk_h2_stream *s, enum mk_h2_error error, enum mk_ending ending)
{
    mk_h2_say_reset(s->h2, s->id, error);
    mk_h2_stream_end(s, ending);
}

void mk_h2_stream_drain(struct mk_h2_stream *s)
{
    record(s, MK_ENDING_DONE);
    mk_list_remove(&s->turn);
    mk_h2_stream_drop_input(s);
    s->content_max = s->received + MK_H2_DRAIN_MAX;
    mk_h2_stream_set_clock(s, MK_CLOCK_RATE);
}

void mk_h2_stream_end_all(struct mk_h2 *h2, enum mk_ending ending)
{
    for (unsigned i = 0; i < MK_H2_BUCKETS; i++)
        while (h2->buckets[i])
            mk_h2_stream_end(h2->buckets[i], ending);
}

/* ---- Content that comes in ---- */

static struct mk_h2_piece *add_piece(struct mk_h2_stream *s, size_t len)
{
    size_t cap = len > PIECE_MIN ? len : PIECE_MIN;
    struct mk_h2_piece *p = mk_mem_alloc(sizeof *p + cap);
    if (!p)
        return NULL;
    *p = (struct mk_h2_piece){.cap = (uint32_t)cap};
    if (s->last)
        s->last->next = p;
    else
        s->first = p;
    s->last = p;
    return p;
}

static bool keep(struct mk_h2_stream *s, mk_str data)
{
    struct mk_h2_piece *p = s->last;
    if (!data.len)
        return true;
    if (!p || p->cap - p->to < data.len)
        p = add_piece(s, data.len);
    if (!p)
        return false;
    memcpy(p->bytes + p->to, data.p, data.len);
    p->to += (uint32_t)data.len;
    return true;
}

/* Who waits for content has some now, or learns that there will be none. */
static void wake(struct mk_h2_stream *s)
{
    if (!s->wants_input && !s->tunnel)
        return;
    s->wants_input = false;
    go_on(s);
}

void mk_h2_stream_drop_input(struct mk_h2_stream *s)
{
    uint32_t n = 0;
    for (const struct mk_h2_piece *p = s->first; p; p = p->next)
        n += p->to - p->from;
    s->unwanted = true;
    drop_pieces(s);
    if (n)
        owe(s, n);
}

static void break_input(struct mk_h2_stream *s, mk_err e)
{
    if (!s->broken)
        s->broken = e;
    mk_h2_stream_drop_input(s);
    wake(s);
}

bool mk_h2_stream_take(struct mk_h2_stream *s, mk_str data, uint32_t padding, bool ends)
{
    bool known = s->announced != MK_REQUEST_LENGTH_UNKNOWN;
    s->received += data.len;
    s->progress += data.len;
    s->input_ended = ends;
    if (known && (s->received > s->announced || (ends && s->received != s->announced))) {
        /* On purpose it would be a way to have requests begun that do not count (CVE-2025-8671). */
        if (mk_h2_guard_spend(s->h2, MK_H2_RESET_COST, MK_H2_MANY_RESETS))
            mk_h2_stream_reset(s, MK_H2_PROTOCOL_ERROR, MK_ENDING_REFUSED);
        return false;
    }
    if (s->complete && !s->tunnel && (ends || s->received > s->content_max)) { /* it was only waited for */
        if (ends)
            mk_h2_stream_end(s, MK_ENDING_DONE);
        else
            mk_h2_stream_reset(s, MK_H2_NO_ERROR, MK_ENDING_DONE);
        return false;
    }
    if (s->unwanted) {
        owe(s, (uint32_t)data.len + padding);
        return true;
    }
    mk_err e = s->received > s->content_max ? -EMSGSIZE : keep(s, data) ? 0 : -ENOMEM;
    uint32_t back = e ? (uint32_t)data.len + padding : padding;
    if (e)
        break_input(s, e);
    if (back)
        owe(s, back);
    wake(s);
    return true;
}

static void cut_off(struct mk_h2_stream *s)
{
    if (s->complete && !s->tunnel) { /* only the rest of its content was waited for */
        mk_h2_stream_end(s, MK_ENDING_DONE);
        return;
    }
    if (!s->input_ended)
        break_input(s, -ECONNRESET);
    if (s->clock == MK_CLOCK_HANDLER)
        follow_client(s);
}

void mk_h2_stream_cut_off(struct mk_h2 *h2)
{
    for (unsigned i = 0; i < MK_H2_BUCKETS; i++)
        for (struct mk_h2_stream *s = h2->buckets[i], *next; s; s = next) {
            next = s->next;
            cut_off(s);
        }
}

static void give_back(struct mk_h2_stream *s)
{
    uint32_t by = s->owed;
    if (s->input_ended)
        return;
    if (s->widened && s->receive_window + by < WIDE_WINDOW) {
        /* What is kept for it may never be more than the window. */
        int64_t room = WIDE_WINDOW - s->receive_window;
        for (const struct mk_h2_piece *p = s->first; p; p = p->next)
            room -= p->to - p->from;
        by = room > by ? (uint32_t)room : by;
    }
    if (by < (s->widened ? WIDE_WINDOW : MK_H2_WINDOW) / 4)
        return; /* not worth a frame yet */
    s->owed = 0;
    s->receive_window += by;
    mk_list_remove(&s->debt);
    mk_h2_say_window(s->h2, s->id, by);
}

void mk_h2_stream_settle(struct mk_h2 *h2)
{
    MK_LIST_EACH_SAFE (at, &h2->with_debts)
        give_back(MK_LIST_ENTRY(at, struct mk_h2_stream, debt));
}

/* ---- Turns ---- */

void mk_h2_stream_wake(struct mk_h2_stream *s)
{
    mk_list_remove(&s->turn);
    mk_list_add_last(&s->h2->woken, &s->turn);
}

void mk_h2_stream_make_ready(struct mk_h2_stream *s)
{
    struct mk_h2 *h2 = s->h2;
    if (!mk_list_empty(&s->turn))
        return;
    mk_list_add_last(&h2->ready[s->priority.urgency], &s->turn);
    h2->ready_mask |= 1u << s->priority.urgency;
}

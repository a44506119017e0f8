/* SPDX-License-Identifier: Apache-2.0 */
#include "pace/load.h"

#include <stdio.h>

#include "base/mem.h"
#include "pace/now.h"
#include "pace/starved.h"

enum { ROOM = 256 * 1024, READS_A_TURN = 4, OPENING_MAX = 64, TICK = 10000000 };

mk_err pace_load_init(struct pace_load *l)
{
    struct mk_list *lists[] = {&l->closed, &l->idle, &l->busy, &l->again};
    l->room = NULL;
    l->connections = NULL;
    mk_err e = pace_waiter_init(&l->waiter, l->spins, false);
    if (e)
        return e;
    for (size_t i = 0; i < MK_LEN(lists); i++)
        mk_list_init(lists[i]);
    l->room = mk_mem_alloc(ROOM);
    l->connections = mk_mem_zalloc(l->n, sizeof *l->connections);
    if (!l->room || !l->connections)
        return -ENOMEM;
    for (unsigned i = 0; i < l->n; i++) {
        pace_connection_init(&l->connections[i]);
        mk_list_add_last(&l->closed, &l->connections[i].link);
    }
    return 0;
}

void pace_load_fini(struct pace_load *l)
{
    for (unsigned i = 0; l->connections && i < l->n; i++)
        pace_connection_close(&l->connections[i], false);
    mk_mem_free(l->connections);
    mk_mem_free(l->room);
    pace_waiter_fini(&l->waiter);
}

/* ---- The end of a request ---- */

static void move(struct pace_connection *c, struct mk_list *to)
{
    mk_list_remove(&c->link);
    mk_list_add_last(to, &c->link);
}

/* What is read after oversleeping may have come right when pace should have been awake: the rest is its own.
 */
static void leave(struct pace_load *l, struct pace_connection *c, struct mk_list *to)
{
    if (c->phase != PACE_IDLE)
        l->n_busy--;
    c->free_since = l->overslept ? l->planned : pace_now();
    move(c, to);
}

static void shut(struct pace_load *l, struct pace_connection *c, bool hard)
{
    leave(l, c, &l->closed);
    pace_connection_close(c, hard);
}

static void fail(struct pace_load *l, struct pace_connection *c, enum pace_class class, const char *why)
{
    if (c->phase == PACE_CONNECTING || class == PACE_CONNECT)
        l->tally->unsent++;
    pace_tally_fail(l->tally, class, "%s", why);
    shut(l, c, true);
}

static void complete(struct pace_load *l, struct pace_connection *c, bool more)
{
    char why[PACE_REFERENCE_WHY] = "";
    struct pace_reference *r = l->reference;
    enum pace_verdict verdict = r->recorded ? pace_reference_judge(r, &c->comparison, &c->answer, why)
                                            : pace_reference_finish(r, &c->answer, why);
    bool keep = c->answer.head.keep_alive && !l->closes && !more && c->phase == PACE_WAITING;
    leave(l, c, keep ? &l->idle : &l->closed);
    if (more)
        l->tally->stray++;
    if (verdict != PACE_RIGHT) {
        pace_tally_fail(l->tally, verdict == PACE_WRONG_STATUS ? PACE_STATUS : PACE_CONTENT, "%s", why);
    } else {
        l->tally->right++;
        pace_histogram_add(&l->tally->latency, pace_now() - c->due);
    }
    c->used = true;
    c->phase = PACE_IDLE;
    if (keep)
        pace_connection_reset(c);
    else
        pace_connection_close(c, false);
}

/* ---- Sending ---- */

static void connect_for(struct pace_load *l, struct pace_connection *c)
{
    mk_err e = pace_connection_open(c, &l->address, &l->waiter);
    l->tally->opened++;
    if (e)
        fail(l, c, PACE_CONNECT, mk_err_text(e));
}

/* A server may close a connection that is idle just when the next request is under way: that one goes again
 * over a new connection (RFC 9112, section 9.3.1), once. */
static void lose(struct pace_load *l, struct pace_connection *c, enum pace_class class, const char *why)
{
    if (!c->used || c->retried || c->answer.begun) {
        fail(l, c, class, why);
        return;
    }
    l->tally->retried++;
    c->retried = true;
    pace_connection_close(c, false);
    connect_for(l, c);
}

static void send_request(struct pace_load *l, struct pace_connection *c)
{
    mk_err e = pace_connection_send(c, l->request);
    if (e)
        lose(l, c, PACE_WRITE, mk_err_text(e));
}

/* How long it could have left earlier, had it not been for pace. */
static uint64_t find_lateness(const struct pace_load *l, uint64_t possible, uint64_t due, uint64_t now)
{
    uint64_t late = now > possible ? now - possible : 0;
    bool slept = l->gap_from <= due && due < l->gap_end;
    return slept && l->gap_end - due > late ? l->gap_end - due : late;
}

static void begin(struct pace_load *l, struct pace_connection *c, uint64_t due, uint64_t now)
{
    bool queued = c->free_since > due;
    uint64_t possible = queued ? c->free_since : due;
    l->tally->asked++;
    l->tally->queued += queued;
    pace_tally_send(l->tally, find_lateness(l, possible, due, now));
    l->n_busy++;
    move(c, &l->busy);
    c->due = due;
    c->retried = false;
    if (c->phase == PACE_CLOSED) {
        connect_for(l, c);
    } else {
        c->phase = PACE_SENDING;
        send_request(l, c);
    }
}

static struct pace_connection *pick(struct pace_load *l)
{
    struct mk_list *first = l->opens ? &l->closed : &l->idle, *second = l->opens ? &l->idle : &l->closed;
    struct mk_list *from = mk_list_empty(first) ? second : first;
    if (l->n_busy >= l->busy_max || mk_list_empty(from))
        return NULL;
    return MK_LIST_ENTRY(from->next, struct pace_connection, link);
}

static void drop(struct pace_load *l)
{
    l->tally->asked++;
    l->tally->queued++;
    l->tally->unsent++;
    pace_tally_fail(l->tally, PACE_TIMEOUT, "not even sent in time: all %u connections were busy", l->n);
}

/* Puts what is due on free connections; answers what time it is. */
static uint64_t assign(struct pace_load *l)
{
    for (;;) {
        uint64_t due, now = pace_now();
        if (*l->stop)
            pace_schedule_stop(l->schedule);
        if (!pace_schedule_next(l->schedule, now, &due) || due > now)
            return now;
        struct pace_connection *c = NULL;
        bool expired = now - due >= l->timeout;
        if (!expired && !(c = pick(l)))
            return now;
        pace_schedule_take(l->schedule);
        if (expired)
            drop(l);
        else
            begin(l, c, due, now);
    }
}

/* ---- Receiving ---- */

static bool take_data(struct pace_load *l, struct pace_connection *c, mk_str data)
{
    char why[PACE_REFERENCE_WHY];
    if (pace_reference_take(l->reference, &c->comparison, &c->answer, data, why))
        return true;
    fail(l, c, PACE_CONTENT, why);
    return false;
}

static void feed(struct pace_load *l, struct pace_connection *c, mk_str in)
{
    char why[PACE_REFERENCE_WHY];
    mk_str data;
    for (;;) {
        switch (load_answer_next(&c->answer, &in, &data)) {
        case LOAD_ANSWER_DATA:
            if (!take_data(l, c, data))
                return;
            break;
        case LOAD_ANSWER_END:
            complete(l, c, in.len > 0);
            return;
        case LOAD_ANSWER_BAD:
            snprintf(why, sizeof why, "not an answer of HTTP/1: %s", c->answer.problem);
            fail(l, c, PACE_READ, why);
            return;
        case LOAD_ANSWER_MORE:
            return;
        }
    }
}

static void on_end(struct pace_load *l, struct pace_connection *c)
{
    if (c->phase == PACE_IDLE)
        shut(l, c, false);
    else if (load_answer_close(&c->answer) == LOAD_ANSWER_END)
        complete(l, c, false);
    else
        lose(l, c, PACE_READ, c->answer.problem);
}

static void take_bytes(struct pace_load *l, struct pace_connection *c, mk_str in)
{
    l->tally->bytes += in.len;
    if (c->phase != PACE_IDLE) {
        feed(l, c, in);
        return;
    }
    l->tally->stray++;
    shut(l, c, true);
}

/* `all`: up to the end of what is there, whose edge may have been told already. */
static void receive(struct pace_load *l, struct pace_connection *c, bool all)
{
    for (unsigned turn = 0; c->phase > PACE_CONNECTING; turn++) {
        if (turn == READS_A_TURN) {
            mk_list_remove(&c->again);
            mk_list_add_last(&l->again, &c->again);
            return;
        }
        ssize_t n = recv(c->fd, l->room, ROOM, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0 && c->phase == PACE_IDLE)
            shut(l, c, false);
        else if (n < 0)
            lose(l, c, PACE_READ, mk_err_text(mk_err_last()));
        else if (n == 0)
            on_end(l, c);
        else
            take_bytes(l, c, mk_str_of(l->room, (size_t)n));
        if (n < ROOM && !all)
            return;
    }
}

static void on_events(struct pace_load *l, struct pace_connection *c, uint32_t events)
{
    if (c->phase == PACE_CONNECTING) {
        if (!(events & (EPOLLOUT | EPOLLERR | EPOLLHUP)))
            return;
        mk_err e = pace_connection_finish_open(c);
        if (e) {
            fail(l, c, PACE_CONNECT, mk_err_text(e));
            return;
        }
        send_request(l, c);
    } else if (c->phase == PACE_SENDING && (events & EPOLLOUT)) {
        send_request(l, c);
    }
    if (events & ~(uint32_t)EPOLLOUT)
        receive(l, c, events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR));
}

/* ---- The loop ---- */

static struct pace_connection *oldest(const struct pace_load *l)
{
    return mk_list_empty(&l->busy) ? NULL : MK_LIST_ENTRY(l->busy.next, struct pace_connection, link);
}

/* True when a connection is free because of it. */
static bool expire(struct pace_load *l, uint64_t now)
{
    struct pace_connection *c;
    bool any = false;
    while ((c = oldest(l)) && now > c->due && now - c->due >= l->timeout) {
        any = true;
        fail(l, c, PACE_TIMEOUT,
             c->phase == PACE_CONNECTING ? "no connection in time"
             : c->answer.begun           ? "the answer did not end in time"
                                         : "no answer in time");
    }
    return any;
}

/* The next instant at which there is something to do even if nothing happens. */
static uint64_t find_next(const struct pace_load *l, uint64_t now)
{
    const struct pace_connection *c = oldest(l);
    uint64_t due, next = c ? c->due + l->timeout : PACE_NEVER;
    if (!pace_schedule_next(l->schedule, now, &due))
        return next;
    due = due > now ? due : due + l->timeout;
    return due < next ? due : next;
}

/* Those that still have more then wait for the next turn. */
static void go_on_reading(struct pace_load *l)
{
    struct mk_list turn;
    mk_list_init(&turn);
    while (!mk_list_empty(&l->again)) {
        struct mk_list *first = l->again.next;
        mk_list_remove(first);
        mk_list_add_last(&turn, first);
    }
    while (!mk_list_empty(&turn)) {
        struct pace_connection *c = MK_LIST_ENTRY(turn.next, struct pace_connection, again);
        mk_list_remove(&c->again);
        receive(l, c, true);
    }
}

/* Compares when it woke up with when it should have. */
static void notice_oversleeping(struct pace_load *l, uint64_t woke)
{
    l->overslept = woke > l->planned && woke - l->planned > PACE_TALLY_LATE;
    if (!l->overslept)
        return;
    l->gap_from = l->planned;
    l->gap_end = woke;
}

/* Never for long: while nothing is planned, nobody sees how long one did not run. */
static void wait_once(struct pace_load *l, uint64_t now)
{
    uint64_t until = mk_list_empty(&l->again) ? find_next(l, now) : now;
    l->planned = until < now + TICK ? until : now + TICK;
    size_t n = pace_waiter_wait(&l->waiter, now, l->planned);
    uint64_t woke = pace_now();
    if (l->planned > now && (n == 0 || !l->spins))
        l->tally->waited += (woke < l->planned ? woke : l->planned) - now;
    notice_oversleeping(l, woke);
    if (l->overslept && n == 0) /* who was stopped is woken by a signal, not by what came */
        n = pace_waiter_wait(&l->waiter, woke, woke);
    for (size_t i = 0; i < n; i++)
        on_events(l, l->waiter.events[i].data.ptr, l->waiter.events[i].events);
    go_on_reading(l);
    l->overslept = false;
}

static bool is_over(const struct pace_load *l, uint64_t now)
{
    uint64_t due;
    return mk_list_empty(&l->busy) && !pace_schedule_next(l->schedule, now, &due);
}

static void run(struct pace_load *l, struct pace_schedule *s, uint64_t end, struct pace_tally *t)
{
    l->schedule = s;
    l->tally = t;
    uint64_t starved_at_start, starved;
    bool knows = pace_starved_read(&starved_at_start);
    pace_tally_init(t);
    l->gap_from = l->gap_end = 0;
    t->start = pace_now();
    pace_schedule_start(s, t->start, end == PACE_NEVER ? end : t->start + end);
    for (;;) {
        uint64_t now = t->end = assign(l);
        if (expire(l, now))
            continue; /* somebody may be waiting for it */
        if (is_over(l, now))
            break;
        wait_once(l, now);
    }
    if (knows && pace_starved_read(&starved) && starved > starved_at_start)
        t->starved = starved - starved_at_start;
    if (end != PACE_NEVER && !*l->stop && t->end < s->end) {
        t->waited += s->end - t->end;
        t->end = s->end;
    }
}

void pace_load_probe(struct pace_load *l, struct pace_tally *t)
{
    struct pace_schedule one;
    pace_schedule_init(&one, PACE_CLOSED_LOOP, 0, 0);
    one.max = 1;
    l->busy_max = 1;
    run(l, &one, PACE_NEVER, t);
}

void pace_load_open(struct pace_load *l, struct pace_tally *t)
{
    struct pace_schedule some;
    pace_schedule_init(&some, PACE_CLOSED_LOOP, 0, 0);
    some.max = 0;
    MK_LIST_EACH_SAFE (at, &l->closed)
        some.max++;
    l->busy_max = OPENING_MAX;
    l->opens = true;
    run(l, &some, PACE_NEVER, t);
    l->opens = false;
}

void pace_load_run(struct pace_load *l, struct pace_schedule *s, uint64_t duration, struct pace_tally *t)
{
    l->busy_max = l->n;
    run(l, s, duration, t);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A link with an owner that connects by saying so. The worker is the test's: its clock, alarms, log and the end of a turn. */
#ifndef MK_UNIT_PACKS_LINK_OWNER_H
#define MK_UNIT_PACKS_LINK_OWNER_H

#include <link/link.h>
#include <stdio.h>
#include <string.h>

#include "unit/test.h"

/* ---- In place of the worker ---- */

static uint64_t now_ms;
static uint64_t alarm_at; /* 0: it is not set */
static bool turn_is_set;
static char logged[2000];
static enum mk_log_level level_logged;
static unsigned n_logged, n_alarms_set;
static void (*ring)(void *ctx), (*end_of_turn)(void *ctx);
static void *ring_ctx, *turn_ctx;
static unsigned n_open; /* alarms and ends of turns that were made and not freed */
static bool is_out_of_memory;
static char a_thing;

uint64_t mk_worker_now_ms(const struct mk_worker *w)
{
    (void)w;
    return now_ms;
}

void mk_worker_log(struct mk_worker *w, enum mk_log_level level, const char *fmt, ...)
{
    va_list args;
    (void)w;
    va_start(args, fmt);
    vsnprintf(logged, sizeof logged, fmt, args);
    va_end(args);
    level_logged = level;
    n_logged++;
}

struct mk_alarm *mk_alarm_new(struct mk_worker *w, void (*on_due)(void *ctx), void *ctx)
{
    (void)w;
    ring = on_due;
    ring_ctx = ctx;
    n_open++;
    return (struct mk_alarm *)(void *)&a_thing;
}

void mk_alarm_set(struct mk_alarm *a, uint32_t ms)
{
    assert_non_null(a);
    assert_true(ms > 0);
    alarm_at = now_ms + ms;
    n_alarms_set++;
}

void mk_alarm_free(struct mk_alarm *a)
{
    n_open -= a != NULL;
    alarm_at = 0;
}

struct mk_turn_end *mk_turn_end_new(struct mk_worker *w, void (*on_end)(void *ctx), void *ctx)
{
    (void)w;
    if (is_out_of_memory)
        return NULL;
    end_of_turn = on_end;
    turn_ctx = ctx;
    n_open++;
    return (struct mk_turn_end *)(void *)&a_thing;
}

void mk_turn_end_set(struct mk_turn_end *t)
{
    assert_non_null(t);
    turn_is_set = true;
}

void mk_turn_end_free(struct mk_turn_end *t)
{
    n_open -= t != NULL;
}

/* The turn ends. */
static void end_turn(void)
{
    if (!turn_is_set)
        return;
    turn_is_set = false;
    end_of_turn(turn_ctx);
}

/* Lets time pass, with the alarms and the ends of turns in it. */
static void pass(uint64_t ms)
{
    uint64_t until = now_ms + ms;
    end_turn();
    while (alarm_at && alarm_at <= until) {
        now_ms = alarm_at;
        alarm_at = 0;
        ring(ring_ctx);
        end_turn();
    }
    now_ms = until;
}

/* ---- An owner ---- */

enum { TIMEOUT = 2000 };

static struct pack_link link_;
static bool is_refused; /* connect() fails at once */
static unsigned n_connects, n_closes, n_ups, n_downs, n_late, n_sends;
static int down_with;
static uint64_t connected_ms[64];

struct question {
    struct pack_request request;
    bool is_over, was_sent;
    int error;
};

static void on_connect(struct pack_link *l)
{
    connected_ms[n_connects++ % 64] = now_ms;
    pack_link_move(l, PACK_LINK_CONNECTING);
    if (is_refused)
        pack_link_fail_errno(l, -ECONNREFUSED);
}

static void on_close(struct pack_link *l)
{
    (void)l;
    n_closes++;
}

static void on_up(struct pack_link *l)
{
    assert_true(pack_link_is_up(l));
    n_ups++;
}

static void on_down(struct pack_link *l, int error)
{
    assert_int_equal(l->state.is, PACK_LINK_DOWN);
    assert_null(l->sent.first);
    down_with = error;
    n_downs++;
}

static void on_late(struct pack_link *l)
{
    assert_int_not_equal(l->state.is, PACK_LINK_DOWN);
    n_late++;
}

static void send_all(struct pack_link *l)
{
    assert_int_equal(l->state.is, PACK_LINK_UP);
    pack_requests_append(&l->sent, &l->waiting);
    n_sends++;
}

static void finish(struct pack_link *l, struct pack_request *r, int error, bool is_sent)
{
    struct question *q = (struct question *)r;
    (void)l;
    assert_false(q->is_over);
    *q = (struct question){.is_over = true, .was_sent = is_sent, .error = error};
}

static const struct pack_link_ops ops = {.section = "REDIS",
                                         .connect = on_connect,
                                         .close = on_close,
                                         .on_up = on_up,
                                         .on_down = on_down,
                                         .on_late = on_late,
                                         .send = send_all,
                                         .finish = finish};

static int set_up(void **state)
{
    (void)state;
    memset(&link_, 0, sizeof link_);
    now_ms = 1000000;
    alarm_at = 0;
    turn_is_set = is_refused = is_out_of_memory = false;
    n_logged = n_alarms_set = n_connects = n_closes = n_ups = n_downs = n_late = n_sends = 0;
    down_with = 0;
    logged[0] = 0;
    assert_int_equal(pack_link_init(&link_, NULL, &ops, MK_STR("main"), TIMEOUT), 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pack_link_fini(&link_);
    assert_int_equal(n_open, 0);
    return 0;
}

static void go_up(void)
{
    pack_link_open(&link_);
    pack_link_up(&link_);
    assert_int_equal(link_.state.is, PACK_LINK_UP);
}

static void add(struct question *q)
{
    *q = (struct question){.request.due_ms = now_ms + TIMEOUT};
    pack_link_enqueue(&link_, &q->request);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif

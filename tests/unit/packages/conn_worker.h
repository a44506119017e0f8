/* SPDX-License-Identifier: Apache-2.0 */
/* Fakes of the worker for connections: its clock, timer, log, end of iteration, and random numbers. */
#ifndef MK_UNIT_PACKAGES_CONN_WORKER_H
#define MK_UNIT_PACKAGES_CONN_WORKER_H

#include <common/package_conn.h>
#include <monkey/text.h>
#include <stdio.h>
#include <string.h>

#include "unit/test.h"

static uint64_t now_ms;
static uint64_t timer_at;      /* 0: not armed */
static struct mk_timer *timer; /* armed or due */
static bool iteration_end_is_set;
static char logged[2000];
static enum mk_log_level level_logged;
static unsigned n_logged, n_timers_set;
static void (*iteration_end)(void *ctx);
static void *iteration_ctx;
static unsigned n_open; /* iteration callbacks created and not freed */
static bool is_out_of_memory;
static char a_thing;
static uint32_t chance; /* the value of every random number */

void mk_random(void *buffer, size_t size)
{
    assert_int_equal(size, sizeof chance);
    memcpy(buffer, &chance, sizeof chance);
}

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

void mk_timer_set(struct mk_timer *t, struct mk_worker *w, uint32_t ms)
{
    (void)w;
    assert_true(ms > 0);
    timer = t;
    timer_at = now_ms + ms;
    n_timers_set++;
}

void mk_timer_stop(struct mk_timer *t)
{
    if (t == timer)
        timer_at = 0;
}

struct mk_deferred *mk_deferred_new(struct mk_worker *w, void (*on_end)(void *ctx), void *ctx)
{
    (void)w;
    if (is_out_of_memory)
        return NULL;
    iteration_end = on_end;
    iteration_ctx = ctx;
    n_open++;
    return (struct mk_deferred *)(void *)&a_thing;
}

void mk_deferred_post(struct mk_deferred *t)
{
    assert_non_null(t);
    iteration_end_is_set = true;
}

void mk_deferred_free(struct mk_deferred *t)
{
    n_open -= t != NULL;
}

#endif

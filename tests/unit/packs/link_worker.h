/* SPDX-License-Identifier: Apache-2.0 */
/* In place of the worker of links: its clock, alarms, log and the end of a turn; and in place of chance. */
#ifndef MK_UNIT_PACKS_LINK_WORKER_H
#define MK_UNIT_PACKS_LINK_WORKER_H

#include <link/link.h>
#include <monkey/text.h>
#include <stdio.h>
#include <string.h>

#include "unit/test.h"

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
static uint32_t chance; /* each random number */

void mk_random(void *room, size_t size)
{
    assert_int_equal(size, sizeof chance);
    memcpy(room, &chance, sizeof chance);
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

#endif

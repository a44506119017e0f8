/* SPDX-License-Identifier: Apache-2.0 */
#include "net/alarm.h"

#include "base/mem.h"

enum { MS_MAX = 20 * 24 * 3600 * 1000 };

struct mk_alarm {
    struct mk_timer timer;
    struct mk_loop *loop;
    void (*on_due)(void *ctx);
    void *ctx;
};

/* The timer is off the wheel already: the callback may set it again or free it. */
static void ring(struct mk_timer *t)
{
    struct mk_alarm *a = MK_CONTAINER(t, struct mk_alarm, timer);
    a->on_due(a->ctx);
}

struct mk_alarm *mk_alarm_new_in(struct mk_loop *loop, void (*on_due)(void *ctx), void *ctx)
{
    struct mk_alarm *a = mk_mem_alloc(sizeof *a);
    if (!a)
        return NULL;
    *a = (struct mk_alarm){.loop = loop, .on_due = on_due, .ctx = ctx};
    mk_timer_init(&a->timer, ring);
    return a;
}

void mk_alarm_set(struct mk_alarm *a, uint32_t ms)
{
    mk_loop_set_timer(a->loop, &a->timer, ms < MS_MAX ? ms : MS_MAX);
}

void mk_alarm_stop(struct mk_alarm *a)
{
    mk_timer_stop(&a->timer);
}

void mk_alarm_free(struct mk_alarm *a)
{
    if (a)
        mk_timer_stop(&a->timer);
    mk_mem_free(a);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks of all sockets of a worker: a wheel of lists, and one alarm for the next one that is not empty.
 */
#ifndef MK_WEBSOCKET_WS_CLOCK_H
#define MK_WEBSOCKET_WS_CLOCK_H

#include <monkey/worker.h>

#include "base/list.h"

enum { MK_WS_SLOTS = 256 };

struct mk_ws_timer {
    struct mk_list link; /* in a list of the wheel; of its own when it is not set */
    uint64_t due;        /* in ticks */
};

struct mk_ws_clock {
    struct mk_worker *worker;
    struct mk_alarm *alarm;
    void (*on_due)(struct mk_ws_timer *t);
    void (*on_tick)(struct mk_ws_clock *c); /* each time that it looks */
    uint64_t now, next;                     /* ticks: up to where it has looked, when it will (0: not) */
    size_t n;                               /* timers that are set */
    struct mk_list slots[MK_WS_SLOTS];
};

/* False when memory is out. */
bool mk_ws_clock_init(struct mk_ws_clock *c, struct mk_worker *w) MK_MUST_USE;
void mk_ws_clock_fini(struct mk_ws_clock *c);

void mk_ws_clock_prepare(struct mk_ws_timer *t);
/* Calls on_due(t) once, `ms` from now or a little later; setting it again replaces that. */
void mk_ws_clock_set(struct mk_ws_clock *c, struct mk_ws_timer *t, uint32_t ms);
void mk_ws_clock_stop(struct mk_ws_clock *c, struct mk_ws_timer *t);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for socket events or a deadline, with nanosecond resolution where the kernel supports it. */
#ifndef PACE_POLLER_H
#define PACE_POLLER_H

#include <sys/epoll.h>

#include "base/err.h"

enum { PACE_POLLER_EVENTS = 256 };

struct pace_poller {
    int epoll_fd;
    int timer_fd; /* fallback for kernels without epoll_pwait2, else -1 */
    bool spins;
    struct epoll_event events[PACE_POLLER_EVENTS];
};

/* `timer`: always use the timerfd fallback. `spins`: never sleep. */
mk_err pace_poller_init(struct pace_poller *w, bool spins, bool timer) MK_MUST_USE;
void pace_poller_fini(struct pace_poller *w);
/* Registers for input and output, edge-triggered. */
mk_err pace_poller_add(struct pace_poller *w, int fd, void *owner) MK_MUST_USE;
/* Waits for events, the deadline `until`, or a signal. Returns the number of events in w->events; `data.ptr`
 * is the owner. */
size_t pace_poller_wait(struct pace_poller *w, uint64_t now, uint64_t until);

#endif

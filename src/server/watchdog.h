/* SPDX-License-Identifier: Apache-2.0 */
/* Watchdog: reports blocked workers, and kills them after WatchdogTimeout. A plugin that blocks or never
 * returns blocks all connections of its worker. The watchdog also covers startup and shutdown. */
#ifndef MK_SERVER_WATCHDOG_H
#define MK_SERVER_WATCHDOG_H

#include "server/workers.h"

struct mk_watchdog {
    struct mk_timer timer;
    struct mk_workers *workers;
    uint64_t checked_ms;
};

void mk_watchdog_start(struct mk_watchdog *d, struct mk_workers *w);

#endif

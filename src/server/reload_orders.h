/* SPDX-License-Identifier: Apache-2.0 */
/* The orders of administrators that wait for the same reload. */
#ifndef MK_SERVER_RELOAD_ORDERS_H
#define MK_SERVER_RELOAD_ORDERS_H

#include "worker/scoreboard.h"

enum { MK_RELOAD_ORDERS_MAX = 8 };

struct mk_reload_orders {
    uint64_t ids[MK_RELOAD_ORDERS_MAX];
    unsigned n;
};

/* Adds an order; 0 is none. False: too many orders wait. */
bool mk_reload_orders_add(struct mk_reload_orders *o, uint64_t id);
/* Publishes the result of all orders, and removes them. */
void mk_reload_orders_finish(struct mk_reload_orders *o, struct mk_reload_stats *stats, bool ok, mk_str text);

#endif

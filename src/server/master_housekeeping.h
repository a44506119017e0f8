/* SPDX-License-Identifier: Apache-2.0 */
/* Periodic work of the master: notifies the service manager's watchdog and, for the active generation, checks
 * for changed files, rotates ticket keys, and warns of certificates that expire. */
#ifndef MK_SERVER_MASTER_HOUSEKEEPING_H
#define MK_SERVER_MASTER_HOUSEKEEPING_H

#include "event/loop.h"
#include "setup/config_generation.h"

struct mk_master_housekeeping {
    struct mk_loop *loop;
    struct mk_log *log;
    const struct mk_config_generation *generation;
    struct mk_timer file_timer, ticket_timer, expiry_timer, work_timer, watchdog_timer;
    uint32_t watchdog_ms; /* period of `watchdog_timer`; 0: the service manager has no watchdog */
    void (*work)(struct mk_log *log, void *ctx); /* other periodic work; NULL: none */
    void *ctx;
    uint32_t ticket_ms;                                  /* period of `ticket_timer`; 0: the timer is
                                                          * stopped */
    bool changed;                                        /* a watched file has changed, and more may follow */
    void (*on_change)(struct mk_master_housekeeping *u); /* called when watched files have changed and
                                                          * settled; must reload the configuration */
};

void mk_master_housekeeping_init(struct mk_master_housekeeping *u, struct mk_loop *loop, struct mk_log *log,
                                 void (*on_change)(struct mk_master_housekeeping *u));
/* Adds other work, which is done a few times a minute for every generation. */
void mk_master_housekeeping_add_work(struct mk_master_housekeeping *u,
                                     void (*work)(struct mk_log *log, void *ctx), void *ctx);
/* Makes `g` the generation to work for. Keeps the timer for key rotation if its period is unchanged. */
void mk_master_housekeeping_set_config(struct mk_master_housekeeping *u,
                                       const struct mk_config_generation *g);

#endif

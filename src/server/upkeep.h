/* SPDX-License-Identifier: Apache-2.0 */
/* Periodic work of the master for the generation that serves: it checks whether certificates have changed,
 * and makes new ticket keys. */
#ifndef MK_SERVER_UPKEEP_H
#define MK_SERVER_UPKEEP_H

#include "net/loop.h"
#include "setup/generation.h"

struct mk_upkeep {
    struct mk_loop *loop;
    struct mk_log *log;
    const struct mk_generation *generation;
    struct mk_timer look, rotate, remind, also;
    void (*work)(struct mk_log *log, void *ctx); /* other periodic work; NULL: none */
    void *ctx;
    uint32_t ticket_ms;                     /* period of the running timer; 0: it is stopped */
    bool changed;                           /* a watched file has changed, and more may follow */
    void (*on_change)(struct mk_upkeep *u); /* must reload the configuration */
};

void mk_upkeep_init(struct mk_upkeep *u, struct mk_loop *loop, struct mk_log *log,
                    void (*on_change)(struct mk_upkeep *u));
/* Adds other work, done a few times a minute for every generation. */
void mk_upkeep_also(struct mk_upkeep *u, void (*work)(struct mk_log *log, void *ctx), void *ctx);
/* Switches to this generation. */
void mk_upkeep_follow(struct mk_upkeep *u, const struct mk_generation *g);

#endif

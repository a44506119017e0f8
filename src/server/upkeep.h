/* SPDX-License-Identifier: Apache-2.0 */
/* What the master does from time to time for the generation that serves: it looks whether certificates have
 * changed, and makes new keys for tickets. */
#ifndef MK_SERVER_UPKEEP_H
#define MK_SERVER_UPKEEP_H

#include "net/loop.h"
#include "server/generation.h"

struct mk_upkeep {
    struct mk_loop *loop;
    struct mk_log *log;
    const struct mk_generation *generation;
    struct mk_timer look, rotate, remind, also;
    void (*work)(struct mk_log *log, void *ctx); /* of somebody else; NULL: there is none */
    void *ctx;
    uint32_t ticket_ms;                     /* of the timer that runs; 0: none does */
    bool changed;                           /* something has, and may go on doing so */
    void (*on_change)(struct mk_upkeep *u); /* the configuration should be loaded anew */
};

void mk_upkeep_init(struct mk_upkeep *u, struct mk_loop *loop, struct mk_log *log,
                    void (*on_change)(struct mk_upkeep *u));
/* Something else to be done a few times a minute, whatever is served. */
void mk_upkeep_also(struct mk_upkeep *u, void (*work)(struct mk_log *log, void *ctx), void *ctx);
/* From now on it is about this generation. */
void mk_upkeep_follow(struct mk_upkeep *u, const struct mk_generation *g);

#endif

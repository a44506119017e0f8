/* SPDX-License-Identifier: Apache-2.0 */
/* The other programs of one worker, as <monkey/child.h> offers them: asks the spawner, hears how they end. */
#ifndef MK_SERVER_CHILD_H
#define MK_SERVER_CHILD_H

#include <monkey/child.h>

#include "base/list.h"
#include "base/log.h"
#include "net/loop.h"
#include "server/spawner.h"

struct mk_children {
    struct mk_loop *loop;
    struct mk_log *log;
    struct mk_spawner spawner; /* fd -1: there is none (any more) */
    struct mk_watch watch;
    struct mk_list list;
    uint32_t last_id;
    void (*on_lost)(struct mk_children *c); /* the spawner is gone; may be NULL */
};

/* `spawner` becomes theirs; NULL: no program can be started. */
mk_err mk_children_init(struct mk_children *c, struct mk_loop *loop, struct mk_log *log,
                        const struct mk_spawner *spawner) MK_MUST_USE;
/* Kills those that run. Nobody is called any more. */
void mk_children_fini(struct mk_children *c);
/* A child of this process has ended: if it was the spawner, it is taken from the system. */
void mk_children_reap(struct mk_children *c);

#endif

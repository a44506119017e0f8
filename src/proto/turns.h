/* SPDX-License-Identifier: Apache-2.0 */
/* Work that takes long, such as handshakes: only so many pieces of it are done in a turn of the loop. Who
 * comes later stands in line, first come, first served, while everybody else is served in between. */
#ifndef MK_PROTO_TURNS_H
#define MK_PROTO_TURNS_H

#include "net/loop.h"

enum { MK_TURNS_MAX = 8 }; /* pieces in a turn */

struct mk_turns {
    struct mk_loop *loop;
    struct mk_task task;
    struct mk_task *first, *last; /* who stand in line */
    unsigned left;                /* pieces that may still be done in this turn */
    bool task_set, serving;
};

void mk_turns_init(struct mk_turns *t, struct mk_loop *loop);
/* May a piece be done now? False: add your task, and ask again when it is run. */
bool mk_turns_take(struct mk_turns *t) MK_MUST_USE;
void mk_turns_add(struct mk_turns *t, struct mk_task *who);

#endif

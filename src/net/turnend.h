/* SPDX-License-Identifier: Apache-2.0 */
/* A call at the end of a turn, for code outside the server core: see monkey/worker.h. */
#ifndef MK_NET_TURNEND_H
#define MK_NET_TURNEND_H

#include <monkey/worker.h>

#include "net/loop.h"

/* As mk_turn_end_new, on the given loop. */
struct mk_turn_end *mk_turn_end_new_in(struct mk_loop *loop, void (*on_end)(void *ctx),
                                       void *ctx) MK_MUST_USE;

#endif

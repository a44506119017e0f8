/* SPDX-License-Identifier: Apache-2.0 */
/* Deferred calls at the end of a loop iteration, for code outside the server core: see monkey/worker.h. */
#ifndef MK_EVENT_DEFERRED_H
#define MK_EVENT_DEFERRED_H

#include <monkey/worker.h>

#include "event/loop.h"

/* Like mk_deferred_new(), but on the given loop. */
struct mk_deferred *mk_deferred_new_on(struct mk_loop *loop, void (*on_end)(void *ctx),
                                       void *ctx) MK_MUST_USE;

#endif

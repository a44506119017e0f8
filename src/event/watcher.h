/* SPDX-License-Identifier: Apache-2.0 */
/* Watches a descriptor for code outside the server core: see monkey/worker.h. */
#ifndef MK_EVENT_WATCHER_H
#define MK_EVENT_WATCHER_H

#include <monkey/worker.h>

#include "event/loop.h"

/* Like mk_watcher_new(), but on the given loop. */
struct mk_watcher *mk_watcher_new_on(struct mk_loop *loop, int fd, unsigned events,
                                     void (*on_ready)(void *ctx, unsigned which), void *ctx) MK_MUST_USE;

#endif

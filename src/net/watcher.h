/* SPDX-License-Identifier: Apache-2.0 */
/* A descriptor that somebody waits for who is not part of the server: monkey/worker.h says how. */
#ifndef MK_NET_WATCHER_H
#define MK_NET_WATCHER_H

#include <monkey/worker.h>

#include "net/loop.h"

/* As mk_watcher_new, with the loop that waits. */
struct mk_watcher *mk_watcher_new_in(struct mk_loop *loop, int fd, unsigned events,
                                     void (*on_ready)(void *ctx, unsigned which), void *ctx) MK_MUST_USE;

#endif

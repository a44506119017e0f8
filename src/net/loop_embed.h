/* SPDX-License-Identifier: Apache-2.0 */
/* A loop that is turned by another loop: its epoll descriptor is readable whenever there is something to do,
 * timers and tasks included. */
#ifndef MK_NET_LOOP_EMBED_H
#define MK_NET_LOOP_EMBED_H

#include "net/loop.h"

/* mk_loop_fini() ends it. */
mk_err mk_loop_embed_start(struct mk_loop *loop) MK_MUST_USE;
/* One turn that does not wait. */
mk_err mk_loop_embed_step(struct mk_loop *loop) MK_MUST_USE;

#endif

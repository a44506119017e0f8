/* SPDX-License-Identifier: Apache-2.0 */
/* A loop embedded in another loop: its epoll descriptor becomes readable whenever the inner loop has work,
 * including timers and tasks. */
#ifndef MK_EVENT_LOOP_EMBED_H
#define MK_EVENT_LOOP_EMBED_H

#include "event/loop.h"

/* Makes the loop embeddable; mk_loop_fini() undoes this. */
mk_err mk_loop_embed_start(struct mk_loop *loop) MK_MUST_USE;
/* Runs one non-blocking iteration. */
mk_err mk_loop_embed_step(struct mk_loop *loop) MK_MUST_USE;

#endif

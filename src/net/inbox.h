/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that other threads ask a loop to make, in the order in which they were asked for. */
#ifndef MK_NET_INBOX_H
#define MK_NET_INBOX_H

#include "net/loop.h"

struct mk_post;

struct mk_inbox {
    struct mk_loop *loop;
    struct mk_post *_Atomic last; /* each leads to the one before it */
};

void mk_inbox_init(struct mk_inbox *b, struct mk_loop *loop);
/* From any thread: rings the loop's bell, whose owner is to call mk_inbox_run. 0: fn(ctx) will be called.
 * -ENOMEM; -ESHUTDOWN: the inbox is closed. */
mk_err mk_inbox_post(struct mk_inbox *b, void (*fn)(void *ctx), void *ctx) MK_MUST_USE;
/* Calls what was posted; what these post has its turn next time. In the loop's thread. */
void mk_inbox_run(struct mk_inbox *b);
/* The same for the last time. */
void mk_inbox_close(struct mk_inbox *b);

#endif

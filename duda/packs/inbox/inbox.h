/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of a subscription that wait for its handler, of packages that have any. The package knows who
 * sends them, and when a connection was lost. */
#ifndef DUDA_PACKS_INBOX_H
#define DUDA_PACKS_INBOX_H

#include <duda/wait.h>
#include <monkey/str.h>
#include <monkey/worker.h>

struct pack_message;

struct pack_inbox {
    struct duda_wait wait; /* the first */
    struct duda *d;        /* of the handler that receives them; NULL, as in one that is zeroed: none */
    struct mk_timer timer;
    bool is_due;
    bool was_reset; /* the connection was lost: set by the package */
    bool has_lost;
    unsigned n, max;
    struct pack_message *first, **last, *current;
};

/* For at most `max` messages. */
void pack_inbox_init(struct pack_inbox *in, struct duda *d, unsigned max);
/* Also of one that is zeroed. */
void pack_inbox_fini(struct pack_inbox *in);
/* A copy of the message; it is lost when there are too many. Wakes the handler. */
void pack_inbox_put(struct pack_inbox *in, mk_str text);
void pack_inbox_wake(struct pack_inbox *in);
/* Waits for *holds, which the package sets before it calls pack_inbox_wake(): 0, -ETIMEDOUT, or as waits. */
int pack_inbox_await(struct pack_inbox *in, const bool *holds, uint32_t ms);
/* The next message, valid until the next call; ms as of duda_redis_receive(). 0, -EAGAIN: none came; behind
 * the messages that are there, and once: -EOVERFLOW: some were lost; -ECONNRESET: was_reset; or as waits. */
int pack_inbox_receive(struct pack_inbox *in, uint32_t ms, mk_str *text);

#endif

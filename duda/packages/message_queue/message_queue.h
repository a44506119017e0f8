/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of a subscription that wait for its handler, of packages that have any. The package knows who
 * sends them, and when a connection was lost. */
#ifndef DUDA_PACKAGES_MESSAGE_QUEUE_H
#define DUDA_PACKAGES_MESSAGE_QUEUE_H

#include <duda/wait.h>
#include <monkey/str.h>
#include <monkey/worker.h>

struct package_message;

struct package_message_queue {
    struct duda_wait wait; /* the first */
    struct duda_ctx *d;    /* of the handler that receives them; NULL, as in one that is zeroed: none */
    struct mk_timer timer;
    bool is_due;
    bool was_reset; /* the connection was lost: set by the package */
    bool has_lost;
    unsigned n, max;
    struct package_message *first, **last, *current;
};

/* For at most `max` messages. */
void package_message_queue_init(struct package_message_queue *in, struct duda_ctx *d, unsigned max);
/* Also of one that is zeroed. */
void package_message_queue_fini(struct package_message_queue *in);
/* A copy of the message; it is lost when there are too many. Wakes the handler. */
void package_message_queue_push(struct package_message_queue *in, mk_str text);
void package_message_queue_wake(struct package_message_queue *in);
/* Waits for *holds, which the package sets before it calls package_message_queue_wake(): 0, -ETIMEDOUT, or as waits. */
int package_message_queue_wait_for(struct package_message_queue *in, const bool *holds, uint32_t ms);
/* The next message, valid until the next call; ms as of duda_redis_receive(). 0, -EAGAIN: none came; behind
 * the messages that are there, and once: -EOVERFLOW: some were lost; -ECONNRESET: was_reset; or as waits. */
int package_message_queue_receive(struct package_message_queue *in, uint32_t ms, mk_str *text);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of messages for the handler that owns a subscription. The package pushes the messages, and sets
 * was_reset when it loses the connection. */
#ifndef DUDA_PACKAGES_PACKAGE_MESSAGE_QUEUE_H
#define DUDA_PACKAGES_PACKAGE_MESSAGE_QUEUE_H

#include <duda/wait.h>
#include <monkey/str.h>
#include <monkey/worker.h>

struct package_message;

struct package_message_queue {
    struct duda_wait wait; /* must be first */
    struct duda_ctx *d;    /* the receiving handler; NULL: none, as in a zeroed queue */
    struct mk_timer timer;
    bool is_due;
    bool was_reset; /* set by the package: the connection was lost */
    bool has_lost;
    unsigned n, max;
    struct package_message *first, **last, *popped;
};

/* Initializes a queue of at most `max` messages. */
void package_message_queue_init(struct package_message_queue *in, struct duda_ctx *d, unsigned max);
/* Frees the messages. The queue may be zeroed. */
void package_message_queue_fini(struct package_message_queue *in);
/* Copies the message and wakes the handler. A full queue drops the message. */
void package_message_queue_push(struct package_message_queue *in, mk_str text);
void package_message_queue_wake(struct package_message_queue *in);
/* Waits until *holds is true: the package sets it and then calls package_message_queue_wake(). Returns 0,
 * -ETIMEDOUT, or the error of a cancelled wait. */
int package_message_queue_wait_for(struct package_message_queue *in, const bool *holds, uint32_t ms);
/* Waits for the next message, which is valid until the next call; `ms` is as in duda_redis_receive(). Returns
 * 0, -ETIME if no message arrived, or the error of a cancelled wait. Once, after the queued messages, it
 * also reports -EOVERFLOW if messages were dropped, or -ECONNRESET if was_reset is set. */
int package_message_queue_receive(struct package_message_queue *in, uint32_t ms, mk_str *text);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Queued messages of a subscription. The package knows who sends them, and when a connection was lost. */
#ifndef DUDA_PACKAGES_PACKAGE_MESSAGE_QUEUE_H
#define DUDA_PACKAGES_PACKAGE_MESSAGE_QUEUE_H

#include <duda/wait.h>
#include <monkey/str.h>
#include <monkey/worker.h>

struct package_message;

struct package_message_queue {
    struct duda_wait wait; /* must be first */
    struct duda_ctx *d;    /* the receiving handler; NULL: none, also after zeroing */
    struct mk_timer timer;
    bool is_due;
    bool was_reset; /* set by the package: the connection was lost */
    bool has_lost;
    unsigned n, max;
    struct package_message *first, **last, *popped;
};

/* Holds at most `max` messages. */
void package_message_queue_init(struct package_message_queue *in, struct duda_ctx *d, unsigned max);
/* Also allowed for a zeroed queue. */
void package_message_queue_fini(struct package_message_queue *in);
/* Copies the message and wakes the handler. A full queue drops the message. */
void package_message_queue_push(struct package_message_queue *in, mk_str text);
void package_message_queue_wake(struct package_message_queue *in);
/* Waits for *holds, which the package sets before it calls package_message_queue_wake(): 0, -ETIMEDOUT, or
 * the error of a cancelled wait. */
int package_message_queue_wait_for(struct package_message_queue *in, const bool *holds, uint32_t ms);
/* The next message, valid until the next call; `ms` as in duda_redis_receive(). 0; -EAGAIN: none arrived;
 * reported once, after the queued messages: -EOVERFLOW: messages were dropped, -ECONNRESET: was_reset; or the
 * error of a cancelled wait. */
int package_message_queue_receive(struct package_message_queue *in, uint32_t ms, mk_str *text);

#endif

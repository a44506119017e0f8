/* SPDX-License-Identifier: Apache-2.0 */
/* A FIFO queue of handlers that wait for a scarce resource, such as a connection, or for the end of a task. */
#ifndef DUDA_PACKAGES_PACKAGE_WAIT_QUEUE_H
#define DUDA_PACKAGES_PACKAGE_WAIT_QUEUE_H

#include <duda/wait.h>

struct package_waiter;

struct package_wait_queue {
    struct package_waiter *first, **last;
    unsigned n;
};

void package_wait_queue_init(struct package_wait_queue *all);
/* Suspends the handler until it receives a resource. Returns 0, the error of package_wait_queue_fail_all(),
 * or the error of a cancelled wait. A handler owns a resource in *out even if it is cancelled at the same
 * time. */
int package_wait_queue_wait(struct package_wait_queue *all, struct duda_ctx *d, void **out);
/* Hands the resource to the first waiting handler. Returns false if no handler waits. */
bool package_wait_queue_hand_over(struct package_wait_queue *all, void *item);
/* Ends all waits with `error`, which may be 0. */
void package_wait_queue_fail_all(struct package_wait_queue *all, int error);

#endif

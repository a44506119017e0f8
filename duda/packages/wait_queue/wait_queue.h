/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers that wait for something of which there are a few, such as connections: each gets one, in the order of arrival. */
#ifndef DUDA_PACKAGES_WAIT_QUEUE_H
#define DUDA_PACKAGES_WAIT_QUEUE_H

#include <duda/wait.h>

struct package_waiter;

struct package_wait_queue {
    struct package_waiter *first, **last;
    unsigned n;
};

void package_wait_queue_init(struct package_wait_queue *all);
/* Suspends the handler until it gets one: 0, the error of package_wait_queue_fail_all(), or as waits. A handler that has got one keeps
 * it, whatever happens to it at the same time. */
int package_wait_queue_wait(struct package_wait_queue *all, struct duda_ctx *d, void **out);
/* Gives it to the first handler. False: none waits. */
bool package_wait_queue_hand_over(struct package_wait_queue *all, void *one);
/* All of them get the error. */
void package_wait_queue_fail_all(struct package_wait_queue *all, int error);

#endif

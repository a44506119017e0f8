/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers that wait for something of which there are a few, such as connections: each gets one, in the order of arrival. */
#ifndef DUDA_PACKS_WAITERS_H
#define DUDA_PACKS_WAITERS_H

#include <duda/wait.h>

struct pack_waiter;

struct pack_waiters {
    struct pack_waiter *first, **last;
    unsigned n;
};

void pack_waiters_init(struct pack_waiters *all);
/* Suspends the handler until it gets one: 0, the error of pack_waiters_fail(), or as waits. A handler that has got one keeps
 * it, whatever happens to it at the same time. */
int pack_waiters_wait(struct pack_waiters *all, struct duda *d, void **out);
/* Gives it to the first handler. False: none waits. */
bool pack_waiters_give(struct pack_waiters *all, void *one);
/* All of them get the error. */
void pack_waiters_fail(struct pack_waiters *all, int error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Locks: what one handler does at a time, while others wait. */
#ifndef DUDA_LOCK_H
#define DUDA_LOCK_H

#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Between two waits a handler is alone in its worker: it needs no lock. A lock is for what must not change
 * while the handler waits, such as the price that it has read and is about to write. It has a name, which
 * may be made of what the request asks for; locks of different names do not know each other. It is for the
 * handlers of this service (or of those with which it has a Share, see duda/scope.h) in this worker; over all workers and
 * servers there is duda_store_lock().
 *
 * Waits until the lock is this handler's, at most `ms` milliseconds (0: without limit). Handlers get it in
 * the order in which they asked. It is given back by duda_unlock(), or when the handler has ended, however it
 * ends: in its deferred functions that were registered after the first lock, it still has it. 0; -ETIMEDOUT
 * when this time or the deadline is over; -ECANCELED; -EDEADLK: the handler has it already; -EINVAL: the name
 * is empty or longer than DUDA_LOCK_NAME; -ENOMEM. Only in a handler, not in its deferred functions.
 *
 * Two handlers that each wait for the lock of the other one wait for ever: give `ms`, or let all take them in
 * the same order.
 *
 *     int e = duda_lock(d, duda_sprintf(d, "order %s", id), 5000);
 *     if (!e)
 *         e = read_price(d, id, &price);       // waits for the database
 *     if (!e)
 *         e = write_price(d, id, price + 1);
 *     return e;                                // and the next handler goes on
 */
MK_API int duda_lock(struct duda_ctx *d, mk_str name, uint32_t ms) MK_API_MUST_USE;
/** The same without waiting: -EBUSY when another handler has it, or waits for it. */
MK_API int duda_lock_try(struct duda_ctx *d, mk_str name) MK_API_MUST_USE;
/** The next handler that waits gets it, at the end of this turn. 0, or -EPERM: it is not this handler's. */
MK_API int duda_unlock(struct duda_ctx *d, mk_str name);

/** The bytes of a name. */
enum { DUDA_LOCK_NAME = 250 };

#ifdef __cplusplus
}
#endif

#endif

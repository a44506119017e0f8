/* SPDX-License-Identifier: Apache-2.0 */
/* Locks: a mutex between handlers, held across waits. */
#ifndef DUDA_LOCK_H
#define DUDA_LOCK_H

#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Between two waits a handler runs alone in its worker and needs no lock. A lock protects data that must not
 * change while the handler waits, such as a price that it has read and is about to write. A lock is
 * identified by its name, which may be derived from the request; locks of different names are independent. A
 * lock covers the handlers of this service (or of services with a common Share, see duda/scope.h) in this
 * worker; duda_store_lock() covers all workers and machines.
 *
 * Acquires the lock, and waits up to `timeout_ms` milliseconds for it (0: no limit). Handlers acquire it in
 * FIFO order. The lock is released by duda_unlock(), or when the handler ends for any reason; functions that
 * were deferred after the handler's first duda_lock() still run under the lock. Returns 0; -ETIME when the
 * time limit has passed; -ETIMEDOUT; -ECANCELED; -EDEADLK: the handler already holds the lock; -EINVAL: the
 * name is empty or longer than DUDA_LOCK_NAME_MAX; -ENOMEM. Call it only in a handler, not in its deferred
 * functions.
 *
 * Two handlers that wait for each other's locks deadlock: set `timeout_ms`, or acquire locks in a fixed
 * order.
 *
 *     int e = duda_lock(d, duda_sprintf(d, "order %s", id), 5000);
 *     if (!e)
 *         e = read_price(d, id, &price);       // waits for the database
 *     if (!e)
 *         e = write_price(d, id, price + 1);
 *     return e;                                // the next handler acquires the lock
 */
MK_API int duda_lock(struct duda_ctx *d, mk_str name, uint32_t timeout_ms) MK_API_MUST_USE;
/** Acquires the lock without waiting: -EBUSY if another handler holds it or waits for it. */
MK_API int duda_lock_try(struct duda_ctx *d, mk_str name) MK_API_MUST_USE;
/** Releases the lock. The next waiting handler acquires it at the end of this loop iteration. Returns 0, or
 * -EPERM: this handler does not hold the lock. */
MK_API int duda_unlock(struct duda_ctx *d, mk_str name);

/** Maximum length of a name in bytes. */
enum { DUDA_LOCK_NAME_MAX = 250 };

#ifdef __cplusplus
}
#endif

#endif

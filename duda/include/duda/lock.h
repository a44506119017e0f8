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
 * Acquires the lock, and waits up to `timeout_ms` milliseconds for it (MK_FOREVER: no limit; 0: does not
 * wait, and returns -EBUSY if another handler holds the lock or waits for it). Handlers acquire it in FIFO
 * order. The lock is released by duda_unlock(), or when the handler ends for any reason; functions that were
 * deferred after the handler's first duda_lock() still run under the lock. Returns 0; -ETIME: `timeout_ms`
 * has passed; -ETIMEDOUT: the handler's deadline has passed; -ECANCELED: the handler was cancelled; -EDEADLK:
 * the handler already holds the lock, or waiting would cause a deadlock; -EINVAL: the name is empty or longer
 * than DUDA_LOCK_NAME_MAX; -ENOMEM. Call it only in a handler, not in its deferred functions.
 *
 * Handlers that acquire several locks must acquire them in a fixed order. Otherwise two handlers wait for
 * each other's locks, a deadlock: the call that would close such a cycle of waiting handlers returns -EDEADLK
 * at once, regardless of `timeout_ms`. If the handler returns this error, the client gets status 500.
 *
 *     int e = duda_lock(d, duda_sprintf(d, "order %s", id), 5000);
 *     if (!e)
 *         e = read_price(d, id, &price);       // waits for the database
 *     if (!e)
 *         e = write_price(d, id, price + 1);
 *     return e;                                // the next handler acquires the lock
 */
MK_API int duda_lock(struct duda_ctx *d, mk_str name, uint32_t timeout_ms) MK_API_MUST_USE;
/**
 * Releases the lock. The next waiting handler acquires it at the end of this loop iteration. Returns 0, or
 * -EPERM: this handler does not hold the lock.
 *
 *     int e = duda_lock(d, MK_STR("import"), 5000);
 *     if (e)
 *         return e;
 *     e = import_orders(d);
 *     (void)duda_unlock(d, MK_STR("import")); // otherwise at the end of the handler
 */
MK_API int duda_unlock(struct duda_ctx *d, mk_str name);

/** Maximum length of a name in bytes. */
enum { DUDA_LOCK_NAME_MAX = 250 };

#ifdef __cplusplus
}
#endif

#endif

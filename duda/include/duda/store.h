/* SPDX-License-Identifier: Apache-2.0 */
/* What handlers of a service share for a while: caches, limits, locks. In memory, in a folder ([KV]) or on other
 * machines, too ([REDIS]). Keys belong to the service: another one finds nothing under them, unless the two have a
 * Share (duda/scope.h). Values, locks and limits of the same key are three things. */
#ifndef DUDA_STORE_H
#define DUDA_STORE_H

#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The functions are in monkey-duda-store.so: `#define DUDA_USE "duda-store",` ahead of <duda.h>, and
 * link with `pkg-config --libs duda-store`. Without more, a store is in memory that all workers share, until
 * the server ends. A section of the configuration makes it another one: [KV] keeps it on this machine, also
 * when the server is restarted, [REDIS] for all machines. The service is the same:
 *
 *     [PLUGINS]
 *         Load duda-kv
 *     [KV]
 *         Folder /var/lib/shop
 *
 * Functions answer 0 or a negated errno value; besides those below, what duda/kv.h or duda/redis.h say. With
 * `Replicas` in [REDIS], 0 means that so many replicas have what was written; -ENOLINK: it is written, but
 * fewer have it.
 */

/** A [KV] or [REDIS] section, or the memory, in one worker. */
struct duda_store;
/** The longest key: that of [KV]. */
enum { DUDA_STORE_KEY_MAX = 440 };

/* A NUL follows each text that these functions hand out. */

/** The store of that Name; NULL is "main", which is that in memory if no section has this Name. "memory" is
 * that one in any case: its values have at most 64 KB; those of duda_store_set() go when their room is
 * needed, then those of duda_store_add() and duda_store_incr() that would expire first. Locks do not: they have a part of
 * it, an eighth, of which the requests of one client may hold half. Where that is full, duda_store_lock() answers -ENOSPC. All services of the server share its room. Valid as long as the worker.
 * NULL: there is none. That is an error in the log, and functions
 * that are given NULL answer -ENODEV, which is status 503. */
MK_API struct duda_store *duda_store_find(struct duda_ctx *d, const char *name);

/** The value, which lives until the handler returns; -ENOENT. May wait, as all of these. */
MK_API int duda_store_get(struct duda_ctx *d, struct duda_store *s, mk_str key,
                          mk_str *value) MK_API_MUST_USE;
/** Sets a value, which disappears after ttl_ms (0: it stays). */
MK_API int duda_store_set(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str value,
                          uint64_t ttl_ms) MK_API_MUST_USE;
/** The same if there is one already: -ENOENT. */
MK_API int duda_store_replace(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str value,
                              uint64_t ttl_ms) MK_API_MUST_USE;
/** Sets a value if there is none; -EEXIST: there is one. */
MK_API int duda_store_add(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str value,
                          uint64_t ttl_ms) MK_API_MUST_USE;
/** Removes a value, if it is this one (-ESTALE: it is another, or there is none), or, if `value` is absent,
 * whatever it is: 0 also when there was none. */
MK_API int duda_store_delete_if(struct duda_ctx *d, struct duda_store *s, mk_str key,
                                mk_str value) MK_API_MUST_USE;
/** Adds to a number, which begins as 0 and then gets this time to live; *sum is the result. */
MK_API int duda_store_incr(struct duda_ctx *d, struct duda_store *s, mk_str key, int64_t delta,
                           uint64_t ttl_ms, int64_t *sum) MK_API_MUST_USE;

/**
 * Counts a use of `key`: at most `max` of them within `window_ms`, which begins with the first; -EDQUOT: it
 * was one too many.
 *
 *     int e = duda_store_rate_limit(d, store, address, 10, 60000);
 *     if (e == -EDQUOT)
 *         return 429;
 */
MK_API int duda_store_rate_limit(struct duda_ctx *d, struct duda_store *s, mk_str key, int64_t max,
                                 uint64_t window_ms) MK_API_MUST_USE;

/*
 * Sessions (duda/session.h) are in a store, too, if `Store` of [SESSIONS] is its Name:
 *
 *     [PLUGINS]
 *         Load duda-kv
 *     [KV]
 *         Folder /var/lib/shop
 *     [SESSIONS]
 *         Store main
 */

/** A lock that a handler holds. */
struct duda_store_lock {
    mk_str key, token;
    struct duda_store *store;
};
/**
 * Takes a lock, which no other handler of any worker (or machine) gets until it is given back, or ttl_ms are
 * over: so a crash does not keep it. With `Replicas` in [REDIS] it outlives a fail-over; a lock that too few
 * replicas have is given back: -ENOLINK. Waits up to wait_ms for others (0: not at all), then -EBUSY. -EDQUOT, in memory:
 * requests of this client hold half of all locks that there is room for. What it protects must bear that the time ends while it is still at work; duda_store_unlock() says so.
 */
MK_API int duda_store_lock(struct duda_ctx *d, struct duda_store *s, mk_str key, uint64_t ttl_ms,
                           uint32_t wait_ms, struct duda_store_lock *out) MK_API_MUST_USE;
/** Gives it back. -ESTALE: its time was over. */
MK_API int duda_store_unlock(struct duda_ctx *d, struct duda_store_lock *lock) MK_API_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Shared short-lived state of handlers: caches, rate limits, locks. A store is in memory, in a folder ([KV]),
 * or shared with other machines ([REDIS]). Keys belong to the service; other services see them only through a
 * common Share (duda/scope.h). Values, locks and limits have separate key spaces. */
#ifndef DUDA_STORE_H
#define DUDA_STORE_H

/* A function and a struct in this header have the same name, which is valid C++, but some compilers warn
 * about it. */
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC system_header
#endif

#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The functions are in monkey-duda-store.so: `#define DUDA_USE "duda-store"` before including <duda.h>, and
 * link with `pkg-config --libs duda-store`. By default a store is in memory that all workers share, until the
 * server stops. A section of the configuration changes that: [KV] keeps the store on this machine across
 * restarts, and [REDIS] shares it between machines. The code of the service stays the same:
 *
 *     [PLUGINS]
 *         Load duda-kv
 *     [KV]
 *         Folder /var/lib/shop
 *
 * Functions return 0 or a negative errno value: those below, and those of duda/kv.h or duda/redis.h. With
 * `Replicas` in [REDIS], a result of 0 means that this many replicas have received the write; -ENOLINK: the
 * write succeeded, but fewer replicas have it.
 */

/** A [KV] or [REDIS] section, or the memory store, in one worker. */
struct duda_store;
/** Maximum length of a key: that of [KV]. */
enum { DUDA_STORE_KEY_MAX = 440 };

/* The strings that these functions return are NUL-terminated. */

/**
 * Returns the store with this Name; NULL selects "main", which is the memory store unless a section has
 * this Name. "memory" always selects the memory store: its values are limited to 64 KB. When it is full,
 * values of duda_store_set() are evicted first, then those of duda_store_add() and duda_store_incr() that
 * would expire first. Locks are never evicted; an eighth of the memory is reserved for locks, and the
 * requests of one client may hold half of this part. When that part is full, duda_store_lock() returns
 * -ENOSPC. All services of the server share the memory store. The store is valid for the lifetime of the
 * worker. Returns NULL, and logs an error, if there is no such store; functions called with NULL return
 * -ENODEV, which becomes status 503.
 *
 *     int e = duda_store_set(d, duda_store_find(d, NULL), MK_STR("motd"), MK_STR("Closed on Monday"), 3600 * 1000);
 */
MK_API struct duda_store *duda_store_find(struct duda_ctx *d, const char *name);
/** Like the function above, but without a handler: call it in a DUDA_START() function to detect a missing
 * section early. */
MK_API struct duda_store *duda_store_of(struct mk_worker *worker, const char *name);

/** Reads a value, for example from a cache. The value lives until the handler returns. -ENOENT: there is no
 * value. May wait, like all functions below. */
MK_API int duda_store_get(struct duda_ctx *d, struct duda_store *store, mk_str key,
                          mk_str *value) MK_API_MUST_USE;
/**
 * Sets a value that expires after `ttl_ms` milliseconds (0: never), as in a cache.
 *
 *     mk_str page;
 *     int e = duda_store_get(d, store, MK_STR("front page"), &page);
 *     if (e == -ENOENT) {
 *         page = make_page(d);
 *         e = duda_store_set(d, store, MK_STR("front page"), page, 60000);
 *     }
 *     return e ? e : duda_write(d, page);
 */
MK_API int duda_store_set(struct duda_ctx *d, struct duda_store *store, mk_str key, mk_str value,
                          uint64_t ttl_ms) MK_API_MUST_USE;
/** Sets a value only if one exists; otherwise -ENOENT. */
MK_API int duda_store_replace(struct duda_ctx *d, struct duda_store *store, mk_str key, mk_str value,
                              uint64_t ttl_ms) MK_API_MUST_USE;
/**
 * Sets a value only if none exists; otherwise -EEXIST.
 *
 *     int e = duda_store_add(d, store, user, MK_STR("invited"), 86400 * 1000); // only once a day
 *     if (e == -EEXIST)
 *         return 409;
 */
MK_API int duda_store_add(struct duda_ctx *d, struct duda_store *store, mk_str key, mk_str value,
                          uint64_t ttl_ms) MK_API_MUST_USE;
/** Deletes the value of the key if it equals `value`; if it differs or does not exist, returns -ESTALE. If
 * `value` is absent, deletes any value, and returns 0 even if there was none. */
MK_API int duda_store_delete_if(struct duda_ctx *d, struct duda_store *store, mk_str key,
                                mk_str value) MK_API_MUST_USE;
/**
 * Adds to a number; a new number starts at 0 and expires after ttl_ms. *sum is the result.
 *
 *     int64_t n;
 *     int e = duda_store_incr(d, store, MK_STR("visitors"), 1, 0, &n);
 *     return e ? e : duda_printf(d, "visitor %lld\n", (long long)n);
 */
MK_API int duda_store_incr(struct duda_ctx *d, struct duda_store *store, mk_str key, int64_t delta,
                           uint64_t ttl_ms, int64_t *sum) MK_API_MUST_USE;

/**
 * Rate limit: counts a use of `key`, and allows `max` uses per fixed window of `window_ms` milliseconds. A
 * window starts on the first use. Returns -EDQUOT if the limit is exceeded.
 *
 *     mk_str address = duda_client_ip(d);
 *     int e = duda_store_rate_limit(d, store, address, 10, 60000);
 *     if (e == -EDQUOT)
 *         return 429;
 */
MK_API int duda_store_rate_limit(struct duda_ctx *d, struct duda_store *store, mk_str key, int64_t max,
                                 uint64_t window_ms) MK_API_MUST_USE;
/**
 * Limits the rate of `key` with a token bucket: each call takes a token. A full bucket has `capacity` tokens,
 * the maximum size of a burst. An empty bucket fills evenly within `refill_ms` milliseconds. Unlike a fixed
 * window, a token bucket never allows two full bursts in a row. Use the same `capacity` and `refill_ms` in
 * all calls for a key.
 *
 * Sets the response headers RateLimit-Limit (the capacity), RateLimit-Remaining (the remaining tokens) and
 * RateLimit-Reset (seconds until the bucket is full). If the bucket is empty, returns -EDQUOT, which becomes
 * status 429, and sets Retry-After. The other errors are those of duda_store_rate_limit(); also
 * -EINVAL if `capacity` is below 1, `refill_ms` is 0 or more than 366 days, or a token takes less than a
 * microsecond.
 *
 *     int e = duda_store_token_bucket(d, store, user, 20, 60000); // 20 at once, then one every 3 seconds
 *     if (e)
 *         return e;
 */
MK_API int duda_store_token_bucket(struct duda_ctx *d, struct duda_store *store, mk_str key, int64_t capacity,
                                   uint64_t refill_ms) MK_API_MUST_USE;

/*
 * Sessions (duda/session.h) are kept in the store that `Store` of [SESSIONS] names:
 *
 *     [PLUGINS]
 *         Load duda-kv
 *     [KV]
 *         Folder /var/lib/shop
 *     [SESSIONS]
 *         Store main
 */

/** A lock held by a handler. */
struct duda_store_lock {
    mk_str key, token;
    struct duda_store *store;
    uint64_t reserved[2]; /**< must be zero */
};
/**
 * Acquires a lock that no other handler of any worker (or machine) can acquire until it is released or ttl_ms
 * have passed, so a crashed handler does not hold it forever. With `Replicas` in [REDIS] the lock survives a
 * failover; if too few replicas have received it, the function releases it and returns -ENOLINK. Waits up to
 * wait_ms for the lock (MK_FOREVER: no limit; 0: does not wait, and returns -EBUSY), then returns -ETIME.
 * -EINVAL: `ttl_ms` is 0. -EDQUOT, for the memory store: requests of this client hold half of all available
 * locks. The protected code must tolerate that the lock expires while it is still running;
 * duda_store_unlock() reports this.
 *
 *     struct duda_store_lock lock;
 *     int e = duda_store_lock(d, store, MK_STR("import"), 30000, 5000, &lock);
 *     if (e == -ETIME)
 *         return 409; // another import is still running
 *     e = e ? e : import_orders(d);
 *     int released = duda_store_unlock(d, &lock);
 *     return e ? e : released;
 */
MK_API int duda_store_lock(struct duda_ctx *d, struct duda_store *store, mk_str key, uint64_t ttl_ms,
                           uint32_t wait_ms, struct duda_store_lock *out) MK_API_MUST_USE;
/** Releases the lock. -ESTALE: the lock had expired. */
MK_API int duda_store_unlock(struct duda_ctx *d, struct duda_store_lock *lock) MK_API_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Memcached: values that several machines share and that may be forgotten at any time. */
#ifndef DUDA_MEMCACHED_H
#define DUDA_MEMCACHED_H

#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The functions are in monkey-duda-memcached.so: `#define DUDA_USE "duda-memcached",` ahead of <duda.h>,
 * and link with `pkg-config --libs duda-memcached`. The configuration says where the servers are:
 *
 *     [PLUGINS]
 *         Load duda-memcached
 *     [MEMCACHED]
 *         Servers 10.0.0.1:11211 10.0.0.2:11211
 *
 * Each key has its server, which all workers and machines with the same Servers agree on: one that is added
 * or removed moves only its share of the keys. Every worker has one connection to each server; the commands
 * of all handlers of a turn of the loop go over it together, in one piece.
 */

/** The servers of one [MEMCACHED] section, in one worker. */
struct duda_memcached;

/** Limits: sections, bytes of a key (180 if it has other bytes than visible ASCII), keys at a time. */
enum { DUDA_MEMCACHED_SECTIONS_MAX = 16, DUDA_MEMCACHED_KEY_MAX = 250, DUDA_MEMCACHED_MANY_MAX = 1000 };

/* A NUL follows each text that these functions hand out. */

/** The section of that Name; NULL is the first. Valid as long as the worker. NULL: there is none. That is an error in the log, and functions
 * that are given NULL answer -ENODEV, which is status 503. */
MK_API struct duda_memcached *duda_memcached_find(struct duda_ctx *d, const char *name);

/*
 * All functions below wait. They answer 0 or a negated errno value: -EINVAL: an empty or too long key;
 * -EMSGSIZE: a value larger than MaxValueSize, or than what the server takes; -ENOSPC: the server's memory is
 * full, and it may not forget values; -EBUSY: more than MaxQueue commands wait; -ETIMEDOUT and
 * -ECONNREFUSED and others of connections: the server is away; -ENOKEY: we may not use its socket;
 * -ECONNRESET, -ETIMEDOUT: it was lost after the command was sent, which may have been done; -EREMOTEIO: it
 * has refused; -EPROTO: it has answered something odd; -ECANCELED; -ENOMEM. duda_memcached_error() explains. A
 * cache that is away is best treated as one that has nothing:
 *
 *     mk_str page;
 *     if (duda_memcached_get(d, cache, key, &page)) {
 *         page = make_page(d);
 *         int e = duda_memcached_set(d, cache, key, page, 60000);
 *         if (e)
 *             duda_log(d, MK_LOG_WARN, "not cached: %.*s", MK_STR_ARG(duda_memcached_error(d, cache, key)));
 *     }
 */

/** The value, a copy that lives until the handler returns; -ENOENT. */
MK_API int duda_memcached_get(struct duda_ctx *d, struct duda_memcached *m, mk_str key,
                              mk_str *value) MK_API_MUST_USE;

/** One of several keys. */
struct duda_memcached_item {
    mk_str key;   /**< set by the caller */
    mk_str value; /**< absent: there is none, or it could not be had */
    uint64_t cas; /**< the version of the value, for duda_memcached_cas() */
    int error;    /**< 0, -ENOENT, or what went wrong with this key */
};
/** Gets several values at once, from all their servers at the same time. 0, also when some are not there, or
 * the first error; the other items are valid then, too. */
MK_API int duda_memcached_get_many(struct duda_ctx *d, struct duda_memcached *m,
                                   struct duda_memcached_item *items, size_t n) MK_API_MUST_USE;

/** Sets a value, which is forgotten after ttl_ms (0: when the server needs the room), rounded up to seconds.
 */
MK_API int duda_memcached_set(struct duda_ctx *d, struct duda_memcached *m, mk_str key, mk_str value,
                              uint64_t ttl_ms) MK_API_MUST_USE;
/** Sets a value if there is none; -EEXIST: there is one. */
MK_API int duda_memcached_add(struct duda_ctx *d, struct duda_memcached *m, mk_str key, mk_str value,
                              uint64_t ttl_ms) MK_API_MUST_USE;
/** Sets a value if it is still the version that was read; -ESTALE: another one was set; -ENOENT: it is gone.
 */
MK_API int duda_memcached_cas(struct duda_ctx *d, struct duda_memcached *m, mk_str key, uint64_t cas,
                              mk_str value, uint64_t ttl_ms) MK_API_MUST_USE;
/** Removes a value; -ENOENT. */
MK_API int duda_memcached_delete(struct duda_ctx *d, struct duda_memcached *m, mk_str key) MK_API_MUST_USE;
/** Gives a value another time to live; -ENOENT. */
MK_API int duda_memcached_touch(struct duda_ctx *d, struct duda_memcached *m, mk_str key,
                                uint64_t ttl_ms) MK_API_MUST_USE;
/** Adds to a number, kept as decimal text, which begins as 0, then gets this time to live, and never falls
 * below 0. *sum is the result. -EDOM: the value is no number. */
MK_API int duda_memcached_incr(struct duda_ctx *d, struct duda_memcached *m, mk_str key, int64_t delta,
                               uint64_t ttl_ms, uint64_t *sum) MK_API_MUST_USE;

/** The last thing that went wrong with the server of this key: `[MEMCACHED] main, 10.0.0.1:11211: ...`. Lives
 * until the handler returns; empty if nothing did. */
MK_API mk_str duda_memcached_error(struct duda_ctx *d, const struct duda_memcached *m, mk_str key);

#ifdef __cplusplus
}
#endif

#endif

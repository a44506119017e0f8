/* SPDX-License-Identifier: Apache-2.0 */
/* Memcached client: a cache shared by several machines, whose values may be evicted at any time. */
#ifndef DUDA_MEMCACHED_H
#define DUDA_MEMCACHED_H

#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The functions are in monkey-duda-memcached.so: `#define DUDA_USE "duda-memcached"` before including
 * <duda.h>, and link with `pkg-config --libs duda-memcached`. The configuration lists the servers:
 *
 *     [PLUGINS]
 *         Load duda-memcached
 *     [MEMCACHED]
 *         Servers 10.0.0.1:11211 10.0.0.2:11211
 *
 * Consistent hashing maps each key to a server, the same for all workers and machines with the same Servers;
 * adding or removing a server moves only its share of the keys. Every worker has one connection to each
 * server, over which it pipelines the commands of all handlers of a loop iteration.
 */

/** The servers of one [MEMCACHED] section, in one worker. */
struct duda_memcached;

/** Limits: sections, bytes of a key (180 if any byte is not visible ASCII), keys per call. */
enum { DUDA_MEMCACHED_SECTIONS_MAX = 16, DUDA_MEMCACHED_KEY_MAX = 250, DUDA_MEMCACHED_MANY_MAX = 1000 };

/* The strings that these functions return are NUL-terminated. */

/**
 * Returns the section with this Name; NULL selects the only section or, if there are several, the one named
 * "main". The section is valid for the lifetime of the worker. Returns NULL, and logs an error, if there is
 * no such section; functions called with NULL return -ENODEV, which becomes status 503.
 *
 *     mk_str page;
 *     int e = duda_memcached_get(d, duda_memcached_find(d, NULL), key, &page);
 */
MK_API struct duda_memcached *duda_memcached_find(struct duda_ctx *d, const char *name);
/** Like the function above, but without a handler: call it in a DUDA_START() function to detect a missing
 * section early. */
MK_API struct duda_memcached *duda_memcached_of(struct mk_worker *worker, const char *name);

/*
 * All functions below wait. They return 0 or a negative errno value: -EINVAL: a key is empty or too long;
 * -EMSGSIZE: a value exceeds MaxValueSize or the server's limit; -ENOSPC: the server's memory is full, and
 * eviction is disabled; -EBUSY: more than MaxQueue commands are queued; -ECONNREFUSED and other errors of
 * connect(2): the server is unavailable; -ENOKEY: no permission to use the server's socket; -ETIMEDOUT: no
 * connection or no reply within Timeout; -ECONNRESET: the connection was lost (after either of these two, the
 * command may have run); -EREMOTEIO: the server rejected the command; -EPROTO: the server sent an invalid
 * reply; -ECANCELED; -ENOMEM. duda_memcached_error() describes the error. Treat an unavailable cache as an
 * empty one:
 *
 *     mk_str page;
 *     if (duda_memcached_get(d, cache, key, &page)) {
 *         page = make_page(d);
 *         int e = duda_memcached_set(d, cache, key, page, 60000);
 *         if (e)
 *             duda_log(d, MK_LOG_WARN, "not cached: %.*s", MK_STR_ARG(duda_memcached_error(d, cache, key)));
 *     }
 */

/** Reads a value. The copy in *value lives until the handler returns. -ENOENT: there is no value. */
MK_API int duda_memcached_get(struct duda_ctx *d, struct duda_memcached *memcached, mk_str key,
                              mk_str *value) MK_API_MUST_USE;

/** A key for duda_memcached_get_many(), and the result of reading its value. */
struct duda_memcached_item {
    mk_str key;           /**< set by the caller */
    mk_str value;         /**< absent: no value, or it could not be read */
    uint64_t cas;         /**< version of the value, for duda_memcached_cas() */
    int error;            /**< 0, -ENOENT, or the error of this key */
    uint64_t reserved[2]; /**< must be zero */
};
/**
 * Reads several values at once, from all their servers in parallel. Returns 0 (even if some values are
 * missing), or the first error; after an error, the items without an error are still valid.
 *
 *     struct duda_memcached_item items[] = {{.key = MK_STR("a")}, {.key = MK_STR("b")}};
 *     int e = duda_memcached_get_many(d, cache, items, MK_LEN(items));
 *     for (size_t i = 0; !e && i < MK_LEN(items); i++)
 *         if (items[i].value.p)
 *             e = duda_write(d, items[i].value);
 */
MK_API int duda_memcached_get_many(struct duda_ctx *d, struct duda_memcached *memcached,
                                   struct duda_memcached_item *items, size_t n) MK_API_MUST_USE;

/** Sets a value that expires after ttl_ms, rounded up to seconds (0: it stays until evicted). */
MK_API int duda_memcached_set(struct duda_ctx *d, struct duda_memcached *memcached, mk_str key, mk_str value,
                              uint64_t ttl_ms) MK_API_MUST_USE;
/** Sets a value only if none exists; otherwise -EEXIST. */
MK_API int duda_memcached_add(struct duda_ctx *d, struct duda_memcached *memcached, mk_str key, mk_str value,
                              uint64_t ttl_ms) MK_API_MUST_USE;
/** Sets a value only if its version is still `cas` (compare and swap). -ESTALE: the value has changed;
 * -ENOENT: it is gone. */
MK_API int duda_memcached_cas(struct duda_ctx *d, struct duda_memcached *memcached, mk_str key, uint64_t cas,
                              mk_str value, uint64_t ttl_ms) MK_API_MUST_USE;
/**
 * Deletes a value. -ENOENT: there is no value.
 *
 *     int e = duda_memcached_delete(d, cache, key);
 *     if (e && e != -ENOENT)
 *         return e;
 */
MK_API int duda_memcached_delete(struct duda_ctx *d, struct duda_memcached *memcached,
                                 mk_str key) MK_API_MUST_USE;
/** Sets the time to live of a value. -ENOENT: there is no value. */
MK_API int duda_memcached_touch(struct duda_ctx *d, struct duda_memcached *memcached, mk_str key,
                                uint64_t ttl_ms) MK_API_MUST_USE;
/**
 * Adds to a number that is stored as decimal text and never falls below 0. A new number starts at 0 and
 * expires after ttl_ms. *sum is the result. -EDOM: the value is not a number.
 *
 *     uint64_t n;
 *     int e = duda_memcached_incr(d, cache, MK_STR("visitors"), 1, 0, &n);
 */
MK_API int duda_memcached_incr(struct duda_ctx *d, struct duda_memcached *memcached, mk_str key,
                               int64_t delta, uint64_t ttl_ms, uint64_t *sum) MK_API_MUST_USE;

/** The last error of the server that holds this key: `[MEMCACHED] main, 10.0.0.1:11211: ...`. Lives until the
 * handler returns; empty if there was no error. */
MK_API mk_str duda_memcached_error(struct duda_ctx *d, const struct duda_memcached *memcached, mk_str key);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* An embedded, durable key-value store in a folder, based on LMDB and shared by all workers: no server to
 * install or start. Entries belong to the service that created them; other services see them only through a
 * common Share (duda/scope.h). */
#ifndef DUDA_KV_H
#define DUDA_KV_H

#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The functions are in monkey-duda-kv.so; link with it (`pkg-config --libs duda-kv`), and write `Load
 * duda-kv` before the service. The configuration names the folder:
 *
 *     [KV]
 *         Folder /var/lib/shop
 *
 * Reads return at once, from memory-mapped pages. A write suspends the handler, not the worker, until the
 * data is on disk; concurrent writes share the next commit. An acknowledged write survives a crash of the
 * server and of the operating system.
 */

/** Limits: [KV] sections; bytes of a key and of a value; operations and bytes of values in a batch; time to
 * live in milliseconds. */
enum {
    DUDA_KV_STORES_MAX = 16,
    DUDA_KV_KEY_MAX = 440,
    DUDA_KV_VALUE_MAX = 1 << 20,
    DUDA_KV_BATCH_MAX = 1000
};
#define DUDA_KV_BATCH_SIZE_MAX (MK_API_CAST(size_t, 8) << 20)
#define DUDA_KV_TTL_MAX        (MK_API_CAST(uint64_t, 1) << 42)

/** A store: one [KV] section. */
struct duda_kv;

/* The strings that these functions return are NUL-terminated. */

/** Returns the store with this Name; NULL selects the only section or, if there are several, the one named
 * "main". The store is valid for the lifetime of the worker. Returns NULL, and logs an error, if there is no
 * such section; functions called with NULL return -ENODEV, which becomes status 503. */
MK_API struct duda_kv *duda_kv_find(struct duda_ctx *d, const char *name);
/**
 * Like the function above, but without a handler: call it in a DUDA_START() function to detect a missing
 * section early.
 *
 *     static int start(struct mk_worker *worker)
 *     {
 *         return duda_kv_of(worker, NULL) ? 0 : -ENODEV;
 *     }
 */
MK_API struct duda_kv *duda_kv_of(struct mk_worker *worker, const char *name);

/*
 * Functions return 0 or a negative errno value: -EINVAL: a key is empty or too long; -EMSGSIZE: a value or
 * batch is too large; -ENOSPC: the store has reached its MaxSize, or the disk is full; -EIO; -ENOMEM; -EBUSY:
 * more than MaxQueue batches are queued. Functions that wait also return -ETIMEDOUT and -ECANCELED; the write
 * may still complete afterwards.
 */

/** Reads a value. The copy in *value lives until the handler returns. -ENOENT: there is no value. */
MK_API int duda_kv_get(struct duda_ctx *d, struct duda_kv *kv, mk_str key, mk_str *value) MK_API_MUST_USE;

/**
 * Calls each(ctx, key, value) for all entries whose key begins with `prefix`, in byte order, starting after
 * the key `after` (absent: from the first), until the callback returns false. The scan reads one consistent
 * snapshot. The strings are valid during the callback, which must not wait.
 *
 *     static bool show_entry(void *d, mk_str name, mk_str text)
 *     {
 *         return duda_printf(d, "%.*s=%.*s\n", MK_STR_ARG(name), MK_STR_ARG(text)) == 0;
 *     }
 *
 *     int e = duda_kv_scan(d, kv, MK_STR("user/"), MK_STR_NULL, show_entry, d);
 */
MK_API int duda_kv_scan(struct duda_ctx *d, struct duda_kv *kv, mk_str prefix, mk_str after,
                        bool (*each)(void *ctx, mk_str key, mk_str value), void *ctx) MK_API_MUST_USE;

/**
 * Sets a value that expires after ttl_ms (0: never). Waits.
 *
 *     struct duda_kv *kv = duda_kv_find(d, NULL);
 *     int e = duda_kv_set(d, kv, MK_STR("name"), value, 0);
 */
MK_API int duda_kv_set(struct duda_ctx *d, struct duda_kv *kv, mk_str key, mk_str value,
                       uint64_t ttl_ms) MK_API_MUST_USE;
/**
 * Deletes an entry. -ENOENT: there is no entry. Waits.
 *
 *     int e = duda_kv_delete(d, kv, order_key);
 *     return e ? e : 204; // -ENOENT becomes 404
 */
MK_API int duda_kv_delete(struct duda_ctx *d, struct duda_kv *kv, mk_str key) MK_API_MUST_USE;
/**
 * Sets the time to live of an entry (0: it never expires). -ENOENT: there is no entry. Waits.
 *
 *     int e = duda_kv_expire(d, kv, order_key, 3600 * 1000); // in an hour
 */
MK_API int duda_kv_expire(struct duda_ctx *d, struct duda_kv *kv, mk_str key,
                          uint64_t ttl_ms) MK_API_MUST_USE;
/**
 * Compare and swap: sets `value` (absent: deletes the entry) if the current value is `expected` (absent: if
 * there is no entry); otherwise returns -ESTALE. Waits.
 *
 *     int e = duda_kv_get(d, kv, MK_STR("stock"), &old);
 *     e = e ? e : duda_kv_compare_and_set(d, kv, MK_STR("stock"), old, less, 0);
 *     if (e == -ESTALE)
 *         ... another handler has changed the stock: read it again
 */
MK_API int duda_kv_compare_and_set(struct duda_ctx *d, struct duda_kv *kv, mk_str key, mk_str expected,
                                   mk_str value, uint64_t ttl_ms) MK_API_MUST_USE;
/**
 * Adds to a number that is stored as decimal text. A new number starts at 0 and expires after ttl_ms.
 * *result is the sum. -EDOM: the value is not a number, or the sum overflows. Waits.
 *
 *     int64_t n;
 *     int e = duda_kv_incr(d, kv, MK_STR("visitors"), 1, 0, &n);
 */
MK_API int duda_kv_incr(struct duda_ctx *d, struct duda_kv *kv, mk_str key, int64_t delta, uint64_t ttl_ms,
                        int64_t *result) MK_API_MUST_USE;

/**
 * A batch of operations that is applied atomically.
 *
 *     struct duda_kv_batch *b = duda_kv_batch_begin(kv);
 *     duda_kv_batch_expect(b, MK_STR("stock"), old);      // the stock has not changed
 *     duda_kv_batch_set(b, MK_STR("stock"), less, 0);
 *     duda_kv_batch_set(b, order_key, order, 0);
 *     int e = duda_kv_batch_commit(d, b);                        // -ESTALE: read the stock again
 */
struct duda_kv_batch;

/** Creates an empty batch: commit it, or discard it with duda_kv_batch_abort(). Returns NULL if memory is
 * exhausted; the functions below accept NULL, so you only need to check the result of
 * duda_kv_batch_commit(). */
MK_API struct duda_kv_batch *duda_kv_batch_begin(struct duda_kv *kv) MK_API_MUST_USE;
/** Adds a precondition for the commit: the entry has this value or, if `value` is absent, does not exist. All
 * preconditions are checked before the first operation; if one fails, nothing is changed. */
MK_API void duda_kv_batch_expect(struct duda_kv_batch *batch, mk_str key, mk_str value);
/** Sets a value, or deletes an entry if it exists. */
MK_API void duda_kv_batch_set(struct duda_kv_batch *batch, mk_str key, mk_str value, uint64_t ttl_ms);
MK_API void duda_kv_batch_delete(struct duda_kv_batch *batch, mk_str key);
/** Commits the batch, and frees it even on failure. Returns 0, -ESTALE, or an error as above; -ENOMEM for
 * NULL. Waits. */
MK_API int duda_kv_batch_commit(struct duda_ctx *d, struct duda_kv_batch *batch) MK_API_MUST_USE;
/** Discards the batch; NULL is allowed. */
MK_API void duda_kv_batch_abort(struct duda_kv_batch *batch);

#ifdef __cplusplus
}
#endif

#endif

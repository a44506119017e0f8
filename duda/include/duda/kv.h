/* SPDX-License-Identifier: Apache-2.0 */
/* A store of keys and values in a folder, by LMDB: nothing to install or to start, shared by all workers,
 * durable. Entries belong to the service that has made them: another one does not see them, unless the two have a Share
 * (duda/scope.h). */
#ifndef DUDA_KV_H
#define DUDA_KV_H

#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The functions are in monkey-duda-kv.so; link with it (`pkg-config --libs duda-kv`), and `Load duda-kv`
 * ahead of the service. The configuration says where the data is:
 *
 *     [KV]
 *         Folder /var/lib/shop
 *
 * Reads answer at once, out of memory that the system pages. Writes wait (the handler, not the worker) until
 * they are on disk: all writes that are made meanwhile share the next commit. What was acknowledged survives
 * a crash of the server and of the system.
 */

/** Limits: [KV] sections; bytes of a key, of a value; operations and bytes of values in a batch; milliseconds
 * to live. */
enum {
    DUDA_KV_STORES_MAX = 16,
    DUDA_KV_KEY_MAX = 440,
    DUDA_KV_VALUE_MAX = 1 << 20,
    DUDA_KV_BATCH_MAX = 1000
};
#define DUDA_KV_BATCH_BYTES ((size_t)8 << 20)
#define DUDA_KV_TTL_MAX     ((uint64_t)1 << 42)

/** A store: one [KV] section. */
struct duda_kv;

/* A NUL follows each text that these functions hand out. */

/** The store of that Name; NULL names the first section. Valid as long as the worker. NULL: there is none, which is an error in the log.
 * Functions that are given NULL answer -ENODEV, which is status 503. */
MK_API struct duda_kv *duda_kv_find(struct duda_ctx *d, const char *name);

/*
 * Functions answer 0 or a negated errno value: -EINVAL: an empty or too long key; -EMSGSIZE: a value or a
 * batch is too large; -ENOSPC: the store has reached its MaxSize, or the disk is full; -EIO; -ENOMEM; -EBUSY:
 * more than MaxQueue batches wait; those that wait also -ETIMEDOUT and -ECANCELED, after which the write
 * may still be done.
 */

/** The value, a copy that lives until the handler returns; -ENOENT. */
MK_API int duda_kv_get(struct duda_ctx *d, struct duda_kv *kv, mk_str key, mk_str *value) MK_API_MUST_USE;

/**
 * Calls each(ctx, key, value) for all entries whose key begins with `prefix`, in the order of bytes, behind
 * the key `after` (absent: from the first), until it answers false. It sees one state of the store. Texts are
 * valid during the call, which must not wait.
 */
MK_API int duda_kv_scan(struct duda_ctx *d, struct duda_kv *kv, mk_str prefix, mk_str after,
                        bool (*each)(void *ctx, mk_str key, mk_str value), void *ctx) MK_API_MUST_USE;

/** Sets a value, which disappears after ttl_ms (0: it stays). Waits.
 *
 *     struct duda_kv *kv = duda_kv_find(d, NULL);
 *     int e = duda_kv_set(d, kv, MK_STR("name"), value, 0);
 */
MK_API int duda_kv_set(struct duda_ctx *d, struct duda_kv *kv, mk_str key, mk_str value,
                       uint64_t ttl_ms) MK_API_MUST_USE;
/** Removes an entry; -ENOENT. Waits. */
MK_API int duda_kv_delete(struct duda_ctx *d, struct duda_kv *kv, mk_str key) MK_API_MUST_USE;
/** Gives an entry another time to live (0: it stays); -ENOENT. Waits. */
MK_API int duda_kv_expire(struct duda_ctx *d, struct duda_kv *kv, mk_str key,
                          uint64_t ttl_ms) MK_API_MUST_USE;
/** Sets `value` (absent: removes the entry) if the value is `expected` (absent: if there is none); else
 * -ESTALE. Waits. */
MK_API int duda_kv_compare_and_set(struct duda_ctx *d, struct duda_kv *kv, mk_str key, mk_str expected,
                                   mk_str value, uint64_t ttl_ms) MK_API_MUST_USE;
/** Adds to a number, kept as decimal text, which begins as 0 and then gets this time to live. *result is the
 * sum. -EDOM: the value is no number, or the sum would not fit. Waits. */
MK_API int duda_kv_incr(struct duda_ctx *d, struct duda_kv *kv, mk_str key, int64_t delta, uint64_t ttl_ms,
                        int64_t *result) MK_API_MUST_USE;

/**
 * Several operations that are done all or not at all.
 *
 *     struct duda_kv_batch *b = duda_kv_batch_begin(kv);
 *     duda_kv_batch_expect(b, MK_STR("stock"), old);      // it is still the same
 *     duda_kv_batch_set(b, MK_STR("stock"), less, 0);
 *     duda_kv_batch_set(b, order, what, 0);
 *     int e = duda_kv_batch_commit(d, b);                        // -ESTALE: read again
 */
struct duda_kv_batch;

/** An empty batch: commit it, or free it with duda_kv_batch_abort(). NULL: out of memory, which the functions below
 * take, so that only the result of duda_kv_batch_commit() needs a look. */
MK_API struct duda_kv_batch *duda_kv_batch_begin(struct duda_kv *kv) MK_API_MUST_USE;
/** What must hold when it is committed, or nothing is done: that this is the value, or (absent) that there is
 * none. All expectations are looked at before the first operation. */
MK_API void duda_kv_batch_expect(struct duda_kv_batch *b, mk_str key, mk_str value);
/** Sets a value, removes an entry if it is there. */
MK_API void duda_kv_batch_set(struct duda_kv_batch *b, mk_str key, mk_str value, uint64_t ttl_ms);
MK_API void duda_kv_batch_delete(struct duda_kv_batch *b, mk_str key);
/** Does it, and frees the batch in any case. 0, -ESTALE, or as above; -ENOMEM for NULL. Waits. */
MK_API int duda_kv_batch_commit(struct duda_ctx *d, struct duda_kv_batch *b) MK_API_MUST_USE;
/** Frees it. NULL is fine. */
MK_API void duda_kv_batch_abort(struct duda_kv_batch *b);

#ifdef __cplusplus
}
#endif

#endif

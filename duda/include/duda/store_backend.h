/* SPDX-License-Identifier: Apache-2.0 */
/* What a kind of store brings, so that duda/store.h works over it. Not for services. */
#ifndef DUDA_STORE_BACKEND_H
#define DUDA_STORE_BACKEND_H

#include <duda/scope.h>
#include <duda/store.h>
#include <monkey/config.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The longest key that a backend gets. */
enum { DUDA_STORE_FULL_KEY_MAX = DUDA_STORE_KEY_MAX + DUDA_SCOPE_MAX + 3 };

/** The functions of a kind; as those of store.h, but that `remove` of an absent value answers -ENOENT when
 * there was none. Keys are those of duda-store, made of the scope of the service and its key: at most
 * DUDA_STORE_FULL_KEY_MAX bytes. They must be out of reach of what a service calls by itself. */
struct duda_store_ops {
    int (*get)(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str *value);
    int (*put)(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str value, uint64_t ttl_ms);
    int (*add)(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str value, uint64_t ttl_ms);
    int (*remove)(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str value);
    int (*count)(struct duda_ctx *d, struct duda_store *s, mk_str key, int64_t delta, uint64_t ttl_ms,
                 int64_t *sum);
    int (*replace)(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str value, uint64_t ttl_ms);
    /** As duda_store_rate_limit(). NULL: it is made of `count`. */
    int (*limit)(struct duda_ctx *d, struct duda_store *s, mk_str key, int64_t max, uint64_t window_ms);
    bool is_far; /**< other machines change it, too */
};

struct duda_jobs_ops;

/** A member of a backend's own struct. */
struct duda_store {
    const struct duda_store_ops *ops;
    const struct duda_jobs_ops *jobs; /**< of duda/jobs_backend.h; NULL: it keeps no jobs */
    mk_str name;
    void *of;                /**< the backend's */
    struct duda_store *next; /**< of the worker */
};

/** In load() of a backend: `section` will be a store of that name, which lives as long as the configuration.
 * If another one has the name, that is an error at the section's `Name`. */
MK_API void duda_store_declare(struct mk_config *config, const void *section, mk_str name);
/** In host() of a plugin whose section has a key `Store`: is there a store of that name? Else that is an
 * error at the key, with the name that was probably meant. */
MK_API void duda_store_expect(struct mk_config *config, const void *section, mk_str name);

/** In worker_start of a backend, which needs "duda-store": makes it known. 0, or -EEXIST: the name is taken.
 */
MK_API int duda_store_join(struct mk_worker *w, struct duda_store *s);

#ifdef __cplusplus
}
#endif

#endif

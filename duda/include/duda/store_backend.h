/* SPDX-License-Identifier: Apache-2.0 */
/* Interface of the backends of duda/store.h. Not for services. */
#ifndef DUDA_STORE_BACKEND_H
#define DUDA_STORE_BACKEND_H

#include <duda/scope.h>
#include <duda/store.h>
#include <monkey/config.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Maximum length of a key passed to a backend. */
enum { DUDA_STORE_FULL_KEY_MAX = MK_API_CAST(int, DUDA_STORE_KEY_MAX) + DUDA_SCOPE_MAX + 3 };

/** The functions of a backend. They work like those of store.h, except that `delete_if` with an absent value
 * returns -ENOENT if there was no entry. duda-store builds each key from the service's scope and the key that
 * the service passes; a key has at most DUDA_STORE_FULL_KEY_MAX bytes. A backend must keep these keys out of
 * reach of the service's own calls to the same database. */
struct duda_store_ops {
    int (*get)(struct duda_ctx *d, struct duda_store *store, mk_str key, mk_str *value);
    int (*set)(struct duda_ctx *d, struct duda_store *store, mk_str key, mk_str value, uint64_t ttl_ms);
    int (*add)(struct duda_ctx *d, struct duda_store *store, mk_str key, mk_str value, uint64_t ttl_ms);
    int (*delete_if)(struct duda_ctx *d, struct duda_store *store, mk_str key, mk_str value);
    int (*incr)(struct duda_ctx *d, struct duda_store *store, mk_str key, int64_t delta, uint64_t ttl_ms,
                int64_t *sum);
    int (*replace)(struct duda_ctx *d, struct duda_store *store, mk_str key, mk_str value, uint64_t ttl_ms);
    /** Like duda_store_rate_limit(). NULL: implemented with `incr`. */
    int (*rate_limit)(struct duda_ctx *d, struct duda_store *store, mk_str key, int64_t max,
                      uint64_t window_ms);
    bool is_remote; /**< other machines also modify the store */
    /** Takes a token from the bucket of `key`. The bucket gets a token every `interval_us` microseconds, and
     * an empty bucket is full after `refill_us`. Sets *us to the time until the bucket is full again or, with
     * -EDQUOT, until it has a token. NULL: duda_store_token_bucket() returns -EOPNOTSUPP. */
    int (*token_bucket)(struct duda_ctx *d, struct duda_store *store, mk_str key, uint64_t interval_us,
                        uint64_t refill_us, uint64_t *us);
    uint64_t reserved[3]; /**< must be zero */
};

struct duda_jobs_ops;

/** A store; embedded in the backend's own struct. */
struct duda_store {
    const struct duda_store_ops *ops;
    const struct duda_jobs_ops *jobs; /**< see duda/jobs_backend.h; NULL: no support for jobs */
    mk_str name;
    void *ctx;               /**< the backend's data */
    struct duda_store *next; /**< next store of the worker */
    uint64_t reserved[4];    /**< must be zero */
};

/** Declares `section` as a store called `name`. Call this function in a backend's load(). The text of `name`
 * must live as long as the configuration. A duplicate name is reported as an error at the section's
 * `Name`. */
MK_API void duda_store_declare(struct mk_config *config, const void *section, mk_str name);
/** Checks that a store called `name` exists. Call this function in host() of a plugin whose `section` has
 * `key`, such as `Store`. If there is no such store, reports an error at the key and suggests a similar
 * name. */
MK_API void duda_store_require(struct mk_config *config, const void *section, const char *key, mk_str name);

/** Registers the store. Call it in the worker_start of a backend whose `needs` lists "duda-store". Returns 0,
 * or -EEXIST: the name is taken. */
MK_API int duda_store_register(struct mk_worker *worker, struct duda_store *store);

/** The environment variable that `monkey run` sets for duda_shared_memory(): the process ID of `monkey run`,
 * the path of a private folder for memory files named `state-...`, and the path of the key file of the
 * project, separated by `:`. */
#define DUDA_RUN_STATE_VARIABLE "DUDA_RUN_STATE"
/** Like mk_config_shared(), for state that clients would miss, such as sessions and the values of stores.
 * Under `monkey run`, which starts a new server for each saved version, the memory also outlives the server.
 * It may then be mapped at another address, so it must not contain pointers. */
MK_API void *duda_shared_memory(struct mk_config *config, const char *name, size_t size);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What a kind of store brings, so that duda/jobs.h works over it. Not for services. */
#ifndef DUDA_JOBS_BACKEND_H
#define DUDA_JOBS_BACKEND_H

#include <duda/jobs.h>
#include <duda/store_backend.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A job that was taken. Texts live until the handler returns. */
struct duda_jobs_taken {
    mk_str id, record;
    unsigned tries;   /**< how often it was taken, this time included */
    uint64_t now_ms;  /**< when it was taken, by the clock of the store */
    uint64_t next_ms; /**< of -ENOENT: when to look again at the latest, in so many milliseconds */
};

/** When a job is due. */
struct duda_jobs_due {
    uint64_t at_ms;    /**< by the clock of the store; 0: */
    uint64_t delay_ms; /**< from now on */
};

/** What becomes of a job that was run. */
enum duda_jobs_end {
    DUDA_JOBS_DONE,  /**< it is removed */
    DUDA_JOBS_LATER, /**< it waits again */
    DUDA_JOBS_AGAIN, /**< the same, as if it were new: its tries count from 0 */
    DUDA_JOBS_DEAD   /**< it is kept among the dead */
};

/**
 * The functions of a kind of store. Each does one step as a whole, and it is kept when it answers 0. `queue`
 * names a queue of a service (at most DUDA_SCOPE_MAX + 1 + DUDA_JOBS_NAME bytes), `id` a job in it, `record` is the job: text for the store.
 * `unique` may be absent: else no other job with the same text can be pushed until this one is done or dead.
 */
struct duda_jobs_ops {
    /** -EEXIST: there is one of this id, or of this `unique`. */
    int (*enqueue)(struct duda_ctx *d, struct duda_store *s, mk_str queue, mk_str id, mk_str record,
                   mk_str unique, struct duda_jobs_due due);
    /** Takes the first job that is due, for lease_ms, after which others take it. -ENOENT: there is none. */
    int (*dequeue)(struct duda_ctx *d, struct duda_store *s, mk_str queue, mk_str token, uint64_t lease_ms,
                   struct duda_jobs_taken *out);
    /** Keeps it for lease_ms from now on. -ESTALE: it has been taken by another. */
    int (*renew)(struct duda_ctx *d, struct duda_store *s, mk_str queue, mk_str id, mk_str token,
                 uint64_t lease_ms);
    /** -ESTALE: it has been taken by another. */
    int (*complete)(struct duda_ctx *d, struct duda_store *s, mk_str queue, mk_str id, mk_str token,
                    mk_str record, mk_str unique, enum duda_jobs_end how, struct duda_jobs_due due);
    /** The clock of the queue, in milliseconds since 1970: the same one for all machines that use it. */
    int (*now)(struct duda_ctx *d, struct duda_store *s, mk_str queue, uint64_t *ms);
    int (*count)(struct duda_ctx *d, struct duda_store *s, mk_str queue, struct duda_job_counts *out);
    /** Calls each() for dead jobs in the order of their ids, until it answers false. */
    int (*list)(struct duda_ctx *d, struct duda_store *s, mk_str queue,
                bool (*each)(void *ctx, mk_str id, mk_str record), void *ctx);
    /** Lets a dead one wait again, as if it were new, or removes it. -ENOENT. */
    int (*retry)(struct duda_ctx *d, struct duda_store *s, mk_str queue, mk_str id, bool drops);
};

#ifdef __cplusplus
}
#endif

#endif

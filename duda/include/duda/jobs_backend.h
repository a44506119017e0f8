/* SPDX-License-Identifier: Apache-2.0 */
/* Interface of the stores that support duda/jobs.h. Not for services. */
#ifndef DUDA_JOBS_BACKEND_H
#define DUDA_JOBS_BACKEND_H

#include <duda/jobs.h>
#include <duda/store_backend.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A job that was dequeued. Strings live until the handler returns. */
struct duda_jobs_dequeued {
    mk_str id, record;
    unsigned attempts; /**< number of times it was dequeued, including this one */
    uint64_t now_ms;   /**< time at which it was dequeued, by the store's clock */
    uint64_t next_ms;  /**< for -ENOENT: maximum delay before the next poll, in milliseconds */
};

/** The time at which a job is due. */
struct duda_jobs_due {
    uint64_t at_ms;    /**< due time by the store's clock; 0: see delay_ms */
    uint64_t delay_ms; /**< delay from now */
};

/** What the store does with a job that has run. */
enum duda_jobs_outcome {
    DUDA_JOBS_DONE,    /**< remove it */
    DUDA_JOBS_RETRY,   /**< enqueue it again, as the same job */
    DUDA_JOBS_REQUEUE, /**< enqueue it again, as a new job: its attempts count from 0 */
    DUDA_JOBS_FAILED   /**< keep it as a failed job */
};

/**
 * The functions of a store. Each is atomic, and its effect is stored when it returns 0. `queue` names a queue
 * of a service (at most DUDA_SCOPE_MAX + 1 + DUDA_JOBS_NAME_MAX bytes), `id` a job in it, and `record` is the
 * job, which is opaque to the store. `unique_key` may be absent; otherwise no other job with the same key can
 * be enqueued until this one is done or has failed.
 */
struct duda_jobs_ops {
    /** -EEXIST: a job with this id, or with this `unique_key`, exists. */
    int (*enqueue)(struct duda_ctx *d, struct duda_store *store, mk_str queue, mk_str id, mk_str record,
                   mk_str unique_key, struct duda_jobs_due due);
    /** Leases the first due job for lease_ms; when the lease expires, other workers may take the job.
     * -ENOENT: no job is due. */
    int (*dequeue)(struct duda_ctx *d, struct duda_store *store, mk_str queue, mk_str token,
                   uint64_t lease_ms, struct duda_jobs_dequeued *out);
    /** Extends the lease to lease_ms from now. -ESTALE: another worker has taken the job. */
    int (*renew)(struct duda_ctx *d, struct duda_store *store, mk_str queue, mk_str id, mk_str token,
                 uint64_t lease_ms);
    /** Ends the run of a job. -ESTALE: another worker has taken the job. */
    int (*complete)(struct duda_ctx *d, struct duda_store *store, mk_str queue, mk_str id, mk_str token,
                    mk_str record, mk_str unique_key, enum duda_jobs_outcome outcome,
                    struct duda_jobs_due due);
    /** The queue's clock, in milliseconds since 1970, common to all machines that use the queue. */
    int (*now)(struct duda_ctx *d, struct duda_store *store, mk_str queue, uint64_t *ms);
    int (*count)(struct duda_ctx *d, struct duda_store *store, mk_str queue, struct duda_job_counts *out);
    /** Calls each() for failed jobs in the order of their ids, until the callback returns false. */
    int (*list)(struct duda_ctx *d, struct duda_store *store, mk_str queue,
                bool (*each)(void *ctx, mk_str id, mk_str record), void *ctx);
    /** Gets the record of a failed job, which lives until the handler returns. -ENOENT: there is no such failed
     * job. */
    int (*get_failed)(struct duda_ctx *d, struct duda_store *store, mk_str queue, mk_str id, mk_str *record);
    /** Re-enqueues a failed job as a new one. -ENOENT: there is no such failed job; -EEXIST: another job has
     * this `unique_key`. */
    int (*retry)(struct duda_ctx *d, struct duda_store *store, mk_str queue, mk_str id, mk_str unique_key);
    /** Removes a failed job. -ENOENT: there is no such failed job. */
    int (*remove)(struct duda_ctx *d, struct duda_store *store, mk_str queue, mk_str id);
    uint64_t reserved[4]; /**< must be zero */
};

#ifdef __cplusplus
}
#endif

#endif

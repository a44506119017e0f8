/* SPDX-License-Identifier: Apache-2.0 */
/* Job queues: background work with at-least-once delivery. */
#ifndef DUDA_JOBS_H
#define DUDA_JOBS_H

#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The functions are in monkey-duda-jobs.so: `#define DUDA_USE "duda-jobs"` before including <duda.h>, and
 * link with `pkg-config --libs duda-jobs`. A store (duda/store.h) keeps the jobs: a folder on this machine,
 * or a Redis server shared by all machines. A job type belongs to the scope of its service (duda/scope.h);
 * other services may use the same name.
 *
 *     [PLUGINS]
 *         Load duda-kv
 *     [KV]
 *         Folder /var/lib/shop
 *
 * Delivery is at least once: a job survives the crash of the worker that runs it. If the worker does not
 * renew its lease on the job within `Lease` of [JOBS], another worker takes the job over. A job may therefore
 * run twice, or twice at the same time if its handler blocks the event loop for longer than `Lease`. Make
 * handlers idempotent.
 */

/** Limits: bytes of a type name, of a payload, and of a unique key; number of failed jobs listed. */
enum {
    DUDA_JOBS_NAME_MAX = 40,
    DUDA_JOBS_PAYLOAD_MAX = 512 << 10,
    DUDA_JOBS_UNIQUE_KEY_MAX = 200,
    DUDA_JOBS_LIST_MAX = 1000
};

/** A job, as its handler sees it. Strings live until the handler returns. */
struct duda_job {
    mk_str id;           /**< ID of the job; NUL-terminated, like all strings here */
    mk_str payload;      /**< as enqueued; for a scheduled job, the schedule */
    unsigned attempt;    /**< attempt number, from 1 */
    int64_t enqueued_ms; /**< time at which the job was enqueued, in ms since 1970 */
    mk_str last_error;   /**< error message of the previous attempt; absent: none */
};

/**
 * A job handler. Return 0 when the job is done. -EBADMSG: the job can never succeed, so it is moved to the
 * failed jobs at once. Any other negative errno value: the job is retried later, or moved to the failed jobs,
 * for operators to inspect, if this was the last attempt. `d` is the context of a task (duda/task.h), with
 * the settings (duda/config.h) of the service whose DUDA_START() function called duda_jobs_register().
 *
 *     static int send(struct duda_ctx *d, const struct duda_job *job)
 *     {
 *         int e = deliver(d, job->payload);
 *         return e == -EINVAL ? duda_job_fail(d, -EBADMSG, "no such address") : e;
 *     }
 */
typedef int duda_job_fn(struct duda_ctx *d, const struct duda_job *job);
/** Records the error message, for the log and the list of failed jobs; returns `error`. */
MK_API int duda_job_fail(struct duda_ctx *d, int error, const char *fmt, ...) MK_API_PRINTF(3, 4);

/** A job type, with a schedule if its jobs run at fixed times, like cron jobs. Zero selects the default. */
struct duda_job_type {
    const char *name;      /**< letters, digits, `-`, `_` */
    duda_job_fn *fn;       /**< job handler */
    unsigned concurrency;  /**< concurrent jobs per worker; default 1 */
    unsigned max_attempts; /**< maximum number of attempts; default 10 */
    uint32_t backoff_ms;   /**< delay before the first retry, doubled up to one hour; default 1 s */
    uint32_t deadline_ms; /**< time limit of an attempt, after which waits return -ETIMEDOUT; default 5 min */
    size_t stack;         /**< stack size in bytes, at most DUDA_STACK_MAX; default 64 KB */
    /** When a job of this type is enqueued automatically, once for all workers (and machines): "every 5m" (s,
     * m, h, d), or in the syntax of crontab(5), in UTC: "30 3 * * 1-5". Missed runs are combined into one.
     * NULL: never. */
    const char *schedule;
    uint64_t reserved[6]; /**< must be zero */
};

/**
 * Registers a job type: this worker then runs its jobs. Call it in a DUDA_START() function of a service;
 * `type` must live as long as the worker. Returns 0; -EINVAL: the name, schedule or stack size is invalid
 * (logged); -ENOMEM.
 *
 *     static const struct duda_job_type mail = {.name = "mail", .fn = send, .concurrency = 4};
 *     static int start(struct mk_worker *worker)
 *     {
 *         return duda_jobs_register(worker, &mail);
 *     }
 */
MK_API int duda_jobs_register(struct mk_worker *worker, const struct duda_job_type *type) MK_API_MUST_USE;

/** Options for enqueuing a job. */
struct duda_job_options {
    uint64_t delay_ms; /**< minimum delay in milliseconds */
    mk_str unique_key; /**< no other job can have this key until this one is done or has failed */
};

/**
 * Enqueues a job. Unless `id` is NULL, *id receives the job ID, which lives until the handler returns.
 * `options` may be NULL. When the function returns 0, the job is stored durably. Waits. -EEXIST: a job with
 * the same `unique_key` exists; -EINVAL; -EMSGSIZE; -ENODEV: no section [KV] or [REDIS] has the
 * Name that `Store` of [JOBS] refers to; or an error of the store.
 *
 *     int e = duda_jobs_enqueue(d, "mail", payload, &(struct duda_job_options){.unique_key = address}, NULL);
 */
MK_API int duda_jobs_enqueue_sized(struct duda_ctx *d, const char *type, mk_str payload,
                                   const struct duda_job_options *options, size_t options_size,
                                   mk_str *id) MK_API_MUST_USE;
static inline MK_API_MUST_USE int duda_jobs_enqueue(struct duda_ctx *d, const char *type, mk_str payload,
                                                    const struct duda_job_options *options, mk_str *id)
{
    return duda_jobs_enqueue_sized(d, type, payload, options, sizeof *options, id);
}

/** Numbers of waiting, running and failed jobs of a type. A job counts as failed once its last attempt has
 * failed. */
struct duda_job_counts {
    uint64_t waiting, running, failed;
};
/** Counts the jobs of a type. Waits. Returns 0; -EINVAL: the type name is invalid; -ENODEV: as for
 * duda_jobs_enqueue(); or an error of the store. */
MK_API int duda_jobs_count_sized(struct duda_ctx *d, const char *type, struct duda_job_counts *out,
                                 size_t out_size) MK_API_MUST_USE;
static inline MK_API_MUST_USE int duda_jobs_count(struct duda_ctx *d, const char *type,
                                                  struct duda_job_counts *out)
{
    return duda_jobs_count_sized(d, type, out, sizeof *out);
}

/**
 * Calls each(ctx, job) for at most DUDA_JOBS_LIST_MAX failed jobs, oldest first, until the callback returns
 * false. The callback must not wait. The function waits, and returns the errors of duda_jobs_count().
 *
 *     static bool show_failed(void *d, const struct duda_job *job)
 *     {
 *         return duda_printf(d, "%s: %s\n", job->id.p, job->last_error.p ? job->last_error.p : "") == 0;
 *     }
 *
 *     int e = duda_jobs_list_failed(d, "mail", show_failed, d);
 */
MK_API int duda_jobs_list_failed(struct duda_ctx *d, const char *type,
                                 bool (*each)(void *ctx, const struct duda_job *job),
                                 void *ctx) MK_API_MUST_USE;
/**
 * Re-enqueues a failed job as a new one, with its `unique_key`. Waits. Returns 0; -ENOENT: there is no such
 * failed job; -EEXIST: another job has the key by now, and the failed job stays in the list; or an error of
 * duda_jobs_count().
 *
 *     int e = duda_jobs_retry(d, "mail", duda_param(d, "id"));
 *     return e == -EEXIST ? 409 : e ? e : 204; // -ENOENT becomes 404
 */
MK_API int duda_jobs_retry(struct duda_ctx *d, const char *type, mk_str id) MK_API_MUST_USE;
/**
 * Deletes a failed job. Waits. Returns 0; -ENOENT: there is no such failed job; or an error of
 * duda_jobs_count().
 *
 *     int e = duda_jobs_delete(d, "mail", duda_param(d, "id"));
 *     return e ? e : 204;
 */
MK_API int duda_jobs_delete(struct duda_ctx *d, const char *type, mk_str id) MK_API_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif

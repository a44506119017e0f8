/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: work that is done later, in the background, at least once. */
#ifndef DUDA_JOBS_H
#define DUDA_JOBS_H

#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The functions are in monkey-duda-jobs.so: `#define DUDA_USE "duda-jobs",` ahead of <duda.h>, and link
 * with `pkg-config --libs duda-jobs`. Jobs are kept in a store (duda/store.h): a folder of this machine, or
 * Redis, for all machines. A kind belongs to its service, as duda/scope.h tells: others may have one of the same name.
 *
 *     [PLUGINS]
 *         Load duda-kv
 *     [KV]
 *         Folder /var/lib/shop
 *
 * What was pushed is done, whatever ends in between: a worker that dies in a job is not the job's end. Others
 * take it when the worker has not been heard of for `Lease` of [JOBS]. So a job may be done twice, or twice
 * at the same time if its handler holds the loop for longer than the Lease: it must bear that.
 */

/** Limits: bytes of a name of a kind, of a text, of what makes a job unique; dead jobs that are listed. */
enum { DUDA_JOBS_NAME = 40, DUDA_JOBS_TEXT_MAX = 512 << 10, DUDA_JOBS_UNIQUE = 200, DUDA_JOBS_LISTED = 1000 };

/** A job, as its handler sees it. Texts live until the handler returns. */
struct duda_job {
    mk_str id;         /**< a NUL follows each of these texts */
    mk_str text;       /**< what was pushed; of a kind with a schedule, that schedule */
    unsigned attempt;  /**< 1: the first */
    int64_t pushed_ms; /**< when, since 1970 */
    mk_str problem;    /**< of the last attempt; absent: there was none, or it said nothing */
};

/**
 * Does a job. 0: it is done. -EBADMSG: it can never be done, so it goes to the dead ones at once. Any other
 * negated errno value: it is done again later, unless it was the last attempt: then it goes to the dead ones,
 * where people look for it. `d` is that of a handler without a request (duda/task.h), with the settings
 * (duda/config.h) of the service whose DUDA_START() function has called duda_jobs_register().
 *
 *     static int send(struct duda_ctx *d, const struct duda_job *job)
 *     {
 *         int e = deliver(d, job->text);
 *         return e == -EINVAL ? duda_job_fail(d, -EBADMSG, "no such address") : e;
 *     }
 */
typedef int duda_job_fn(struct duda_ctx *d, const struct duda_job *job);
/** Says why, for the log and for those who look at dead jobs; answers `error`. */
MK_API int duda_job_fail(struct duda_ctx *d, int error, const char *why);

/** A kind of jobs. Zero means the default. */
struct duda_job_type {
    const char *name;     /**< letters, digits, `-`, `_` */
    duda_job_fn *fn;      /**< does one */
    unsigned parallel;    /**< so many at a time in each worker; default 1 */
    unsigned attempts;    /**< default 10 */
    uint32_t backoff_ms;  /**< until the second attempt; doubles with each, up to an hour; default 1 s */
    uint32_t deadline_ms; /**< of an attempt: its waits then answer -ETIMEDOUT; default 5 minutes */
    size_t stack;         /**< bytes, at most DUDA_STACK_MAX; default 64 KB */
    /** When a job of this kind comes by itself, once for all workers (and machines): "every 5m" (s, m, h, d),
     * or as in crontab(5), in UTC: "30 3 * * 1-5". One that is late is done once, not as often as it was due.
     * NULL: never. */
    const char *schedule;
};

/**
 * This worker does jobs of that kind from now on. Call it in a DUDA_START() function of a service; `kind`
 * must live as long as the worker. 0; -EINVAL: a name, schedule or stack is wrong, which is logged; -ENOMEM.
 *
 *     static const struct duda_job_type mail = {.name = "mail", .fn = send, .parallel = 4};
 *     static int start(struct mk_worker *worker)
 *     {
 *         return duda_jobs_register(worker, &mail);
 *     }
 */
MK_API int duda_jobs_register(struct mk_worker *worker, const struct duda_job_type *kind) MK_API_MUST_USE;

/** How a job is pushed. */
struct duda_job_options {
    uint64_t delay_ms; /**< not before so many milliseconds */
    mk_str unique;     /**< no second one with the same text until this one is done or dead */
};

/**
 * Pushes a job; *id, unless NULL, gets its number, which lives until the handler returns. `how` may be NULL.
 * Once it answers 0 the job is kept. Waits. -EEXIST: there is one of the same `unique`; -EINVAL; -EMSGSIZE;
 * -ENOTSUP: the store of [JOBS] keeps no jobs, or is not there; or what the store answers.
 *
 *     int e = duda_jobs_enqueue(d, "mail", text, &(struct duda_job_options){.unique = address}, NULL);
 */
MK_API int duda_jobs_enqueue(struct duda_ctx *d, const char *kind, mk_str text,
                             const struct duda_job_options *how, mk_str *id) MK_API_MUST_USE;

/** Jobs of a kind now. */
struct duda_job_counts {
    uint64_t waiting, running, dead;
};
MK_API int duda_jobs_count(struct duda_ctx *d, const char *kind, struct duda_job_counts *out) MK_API_MUST_USE;

/** Calls each(ctx, job) for dead jobs, oldest first, until it answers false. It must not wait. */
MK_API int duda_jobs_list_failed(struct duda_ctx *d, const char *kind,
                                 bool (*each)(void *ctx, const struct duda_job *job),
                                 void *ctx) MK_API_MUST_USE;
/** Lets a dead job wait again, as if it were new; -ENOENT. */
MK_API int duda_jobs_retry(struct duda_ctx *d, const char *kind, mk_str id) MK_API_MUST_USE;
/** Removes a dead job; -ENOENT. */
MK_API int duda_jobs_delete(struct duda_ctx *d, const char *kind, mk_str id) MK_API_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif

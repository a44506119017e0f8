/* SPDX-License-Identifier: Apache-2.0 */
/* The jobs of a worker. */
#ifndef DUDA_JOBS_JOBS_WORKER_H
#define DUDA_JOBS_JOBS_WORKER_H

#include <duda/jobs_backend.h>
#include <duda/scope.h>
#include <duda/wait.h>
#include <monkey/meter.h>
#include <monkey/worker.h>

#include "job_record.h"
#include "job_schedule.h"

struct jobs_settings {
    mk_str store;
    uint32_t lease_ms;
    bool runs;
    bool is_checked; /* the store was already looked up */
    uint32_t meter;
};

/* A queue belongs to one service: two services may have job types with the same name. */
enum { JOBS_QUEUE_MAX = DUDA_SCOPE_MAX + 1 + DUDA_JOBS_NAME_MAX };

/* A slot runs one job at a time. */
struct jobs_slot {
    struct duda_wait wait; /* wait of the task that takes jobs; must be first */
    struct jobs_runner *runner;
    struct duda_ctx *d;    /* task that takes jobs; NULL: ended */
    struct duda_ctx *job;  /* task that runs the job; NULL: idle */
    uint64_t began_us;     /* start of the job */
    struct mk_timer timer; /* next poll of the store */
    bool is_idle, may_look, is_over;
    bool holds; /* holds a reference to the worker until the task that takes jobs ends */
    int result;
    const struct duda_job *given;
    size_t error_len;
    char error_text[JOB_ERROR_MAX];
};

/* A job type that this worker runs. */
struct jobs_runner {
    struct jobs_runner *next;
    struct jobs_worker *work;
    const struct duda_job_type *kind;
    const struct duda_service_ref *owner; /* service that registered the job type; NULL: none */
    char queue[JOBS_QUEUE_MAX];           /* see jobs_queue_name() */
    size_t queue_len;
    struct job_schedule schedule;
    bool is_reported; /* the failure of the store is already logged */
    size_t n;
    struct jobs_slot *slots;
};

struct jobs_worker {
    struct mk_worker *worker;
    const struct jobs_settings *settings; /* NULL: not started yet */
    uint64_t *meter;                      /* counts attempts */
    bool is_draining;                     /* takes no more jobs */
    struct jobs_runner *runners;
};

/* Call it once, before the other functions. */
void jobs_worker_set_plugin(const struct mk_plugin *plugin);
/* Returns the jobs of the worker, created on first use; NULL if out of memory. */
struct jobs_worker *jobs_worker_get(struct mk_worker *w);
/* Formats "SCOPE:TYPE" into `buf`, of JOBS_QUEUE_MAX bytes. `kind` has at most DUDA_JOBS_NAME_MAX bytes. */
mk_str jobs_queue_name(mk_str scope, const char *kind, char *buf);
/* Returns the store that holds jobs; NULL if there is none. */
struct duda_store *jobs_store_find(struct duda_ctx *d);
/* Records why jobs_store_find() has returned NULL, and returns the error. */
int jobs_store_missing(struct duda_ctx *d);
/* Announces a new job to an idle slot of this worker or, if there is none, to all workers. */
void jobs_worker_notify(struct mk_worker *w, mk_str queue);
/* Handles such an announcement from another worker. */
void jobs_worker_on_notify(struct mk_worker *w, mk_str queue);

/* Fills in the ID, the payload, the enqueue time and the last error. The strings are NUL-terminated copies that
 * live until the handler returns. Returns false if out of memory. */
bool jobs_copy_job(struct duda_ctx *d, mk_str id, const struct job_record *r, struct duda_job *out);

uint64_t jobs_now_ms(void);
/* Starts one slot for each job that may run at the same time (the concurrency of the job type). Returns 0 or
 * a negated errno value. */
int jobs_runner_start(struct jobs_runner *r);
/* Stops taking jobs; the worker waits for running jobs to finish. */
void jobs_runner_drain(struct jobs_runner *r);
/* Cancels its tasks, which run jobs or wait for some. */
void jobs_runner_cancel(struct jobs_runner *r);

#endif

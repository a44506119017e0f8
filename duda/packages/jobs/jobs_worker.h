/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker does of jobs. */
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
    bool is_checked; /* the store was looked for */
    uint32_t meter;
};

/* A queue belongs to a service: two of them may have kinds of one name. */
enum { JOBS_QUEUE_MAX = DUDA_SCOPE_MAX + 1 + DUDA_JOBS_NAME };

/* One place in which a job is done at a time. */
struct jobs_slot {
    struct duda_wait wait; /* of the handler that takes jobs; the first */
    struct jobs_runner *runner;
    struct duda_ctx *d;    /* takes jobs; NULL: it has ended */
    struct duda_ctx *job;  /* does one; NULL: none */
    uint64_t begun_us;     /* when */
    struct mk_timer timer; /* when to look */
    bool is_idle, may_look, is_over;
    bool holds; /* the worker, until it has ended */
    int result;
    const struct duda_job *given;
    size_t problem_len;
    char problem[JOB_ERROR_MAX];
};

/* A kind that this worker does. */
struct jobs_runner {
    struct jobs_runner *next;
    struct jobs_worker *work;
    const struct duda_job_type *kind;
    const struct duda_service_ref *owner; /* the service of the kind; NULL: it is of no service */
    char queue[JOBS_QUEUE_MAX];           /* see jobs_queue_name() */
    size_t queue_len;
    struct job_schedule schedule;
    bool is_reported; /* the log says that the store does not answer */
    size_t n;
    struct jobs_slot *slots;
};

struct jobs_worker {
    struct mk_worker *worker;
    const struct jobs_settings *settings; /* NULL: not started yet */
    uint64_t *meter;                      /* of attempts */
    bool is_draining;                     /* takes no more jobs */
    struct jobs_runner *runners;
};

/* Once, before all others: the plugin. */
void jobs_worker_set_plugin(const struct mk_plugin *plugin);
/* That of the worker; made when it is first asked for. NULL: memory is out. */
struct jobs_worker *jobs_worker_get(struct mk_worker *w);
/* "SCOPE:KIND", in room for JOBS_QUEUE_MAX bytes. `kind` is a name of at most DUDA_JOBS_NAME. */
mk_str jobs_queue_name(mk_str scope, const char *kind, char *buf);
/* Where jobs are; NULL: nowhere. */
struct duda_store *jobs_store_find(struct duda_ctx *d);
/* Tells whoever may do it that there is a job; over all workers, if none here has time. */
void jobs_worker_notify(struct mk_worker *w, mk_str queue);
/* Another worker says so. */
void jobs_worker_on_notify(struct mk_worker *w, mk_str queue);

uint64_t jobs_now_ms(void);
/* As many as its handlers may be at work. 0 or a negated errno value. */
int jobs_runner_start(struct jobs_runner *r);
/* It takes no more, and the worker waits for what it has taken. */
void jobs_runner_drain(struct jobs_runner *r);
void jobs_runner_stop(struct jobs_runner *r);

#endif

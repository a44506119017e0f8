/* SPDX-License-Identifier: Apache-2.0 */
/* Threads for a loop's blocking work, such as reading from a slow disk. Threads are started as jobs arrive,
 * and access nothing but their jobs. */
#ifndef MK_EVENT_OFFLOAD_H
#define MK_EVENT_OFFLOAD_H

#include <pthread.h>

#include "event/loop.h"

/* Owned by struct mk_offload from mk_offload_submit() until done() is called. */
struct mk_offload_job {
    struct mk_offload_job *next;
    void (*run)(struct mk_offload_job *job);  /* in a thread */
    void (*done)(struct mk_offload_job *job); /* in the loop's thread, after run() */
};

enum { MK_OFFLOAD_THREADS = 4, MK_OFFLOAD_THREADS_MAX = 64 };

struct mk_offload {
    struct mk_loop *loop;
    size_t stack;  /* stack size of each thread; set before the first job */
    unsigned most; /* maximum threads, at most MK_OFFLOAD_THREADS_MAX; set before the first job */
    struct mk_fd_watch bell;
    int wakeup_fd;
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t wake;
    struct mk_offload_job *waiting, **waiting_end;
    struct mk_offload_job *finished;
    pthread_t threads[MK_OFFLOAD_THREADS_MAX];
    unsigned n_waiting, n_threads, n_idle;
    bool ending;
};

mk_err mk_offload_init(struct mk_offload *h, struct mk_loop *loop) MK_MUST_USE;
/* Waits until all submitted jobs have run, and calls their remaining done() callbacks. */
void mk_offload_fini(struct mk_offload *h);

/* Submits a job. False: no thread could be started, and the caller keeps the job. */
bool mk_offload_submit(struct mk_offload *h, struct mk_offload_job *job) MK_MUST_USE;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that do for a loop what would make it wait: reading from a slow disk. They are started when the
 * first job comes, and never touch anything but the job they were given. */
#ifndef MK_NET_HELPER_H
#define MK_NET_HELPER_H

#include <pthread.h>

#include "net/loop.h"

/* Belongs to the helper from mk_helper_submit until done() is called. */
struct mk_job {
    struct mk_job *next;
    void (*run)(struct mk_job *job);  /* in a thread */
    void (*done)(struct mk_job *job); /* in the loop, after it */
};

enum { MK_HELPER_THREADS = 4 };

struct mk_helper {
    struct mk_loop *loop;
    size_t stack; /* of each thread; to be set before the first job */
    struct mk_watch bell;
    int bell_fd;
    pthread_mutex_t lock; /* over everything below */
    pthread_cond_t wake;
    struct mk_job *waiting, **waiting_end;
    struct mk_job *finished;
    pthread_t threads[MK_HELPER_THREADS];
    unsigned n_waiting, n_threads, n_idle;
    bool ending;
};

mk_err mk_helper_init(struct mk_helper *h, struct mk_loop *loop) MK_MUST_USE;
/* Waits for the job that runs, and calls done() for all that were submitted. */
void mk_helper_fini(struct mk_helper *h);

/* False: no thread could be started, the job is still the caller's. */
bool mk_helper_submit(struct mk_helper *h, struct mk_job *job) MK_MUST_USE;

#endif

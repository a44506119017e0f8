/* SPDX-License-Identifier: Apache-2.0 */
/* Limits how many uploads a worker stores at a time, because its threads also do the work of other plugins. */
#ifndef DIRLISTING_UPLOAD_QUEUE_H
#define DIRLISTING_UPLOAD_QUEUE_H

#include <monkey/addr.h>
#include <monkey/worker.h>

enum { UPLOAD_STORES_MAX = 2 };

enum upload_job_state { UPLOAD_JOB_NEW, UPLOAD_JOB_WAITING, UPLOAD_JOB_RUNNING, UPLOAD_JOB_DONE };

struct upload_job {
    struct mk_addr client;                  /* of mk_addr_client_prefix() */
    void (*store)(struct upload_job *job);  /* in a thread */
    void (*finish)(struct upload_job *job); /* may free the job */
    enum upload_job_state state;
    int error; /* -EAGAIN: no thread was available */
    struct upload_queue *queue;
    struct upload_job *next;
};

/* The jobs of one worker. All zero, except `worker`: empty. */
struct upload_queue {
    struct mk_worker *worker;
    struct upload_job *running[UPLOAD_STORES_MAX]; /* at most one per client; NULL: free */
    struct upload_job *waiting;                    /* in order of arrival */
};

/* Stores now, or when a thread is free and the client has no other running job. May call finish() before it returns. */
void dirlisting_upload_queue_add(struct upload_queue *queue, struct upload_job *job);
/* Removes a waiting job. */
void dirlisting_upload_queue_remove(struct upload_queue *queue, struct upload_job *job);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "upload_queue.h"

#include <string.h>

static void start_waiting_jobs(struct upload_queue *queue);

static void run_job(void *ctx)
{
    struct upload_job *job = ctx;
    job->store(job);
}

static void on_job_done(void *ctx)
{
    struct upload_job *job = ctx;
    struct upload_queue *queue = job->queue;
    for (size_t i = 0; i < UPLOAD_STORES_MAX; i++)
        if (queue->running[i] == job)
            queue->running[i] = NULL;
    job->state = UPLOAD_JOB_DONE;
    job->finish(job);
    start_waiting_jobs(queue);
}

/* Returns NULL if all slots are in use, or if the client uses one. */
static struct upload_job **find_slot(struct upload_queue *queue, const struct upload_job *job)
{
    struct upload_job **slot = NULL;
    for (size_t i = 0; i < UPLOAD_STORES_MAX; i++) {
        const struct upload_job *running = queue->running[i];
        if (running && memcmp(running->client.ip, job->client.ip, sizeof job->client.ip) == 0)
            return NULL;
        if (!running)
            slot = &queue->running[i];
    }
    return slot;
}

static void start_job(struct upload_queue *queue, struct upload_job **slot, struct upload_job *job)
{
    job->error = mk_worker_offload(queue->worker, run_job, on_job_done, job);
    job->state = job->error ? UPLOAD_JOB_DONE : UPLOAD_JOB_RUNNING;
    if (job->error)
        job->finish(job);
    else
        *slot = job;
}

static void start_waiting_jobs(struct upload_queue *queue)
{
    struct upload_job **at = &queue->waiting, *job;
    while ((job = *at)) {
        struct upload_job **slot = find_slot(queue, job);
        if (!slot) {
            at = &job->next;
            continue;
        }
        *at = job->next;
        start_job(queue, slot, job);
    }
}

void dirlisting_upload_queue_add(struct upload_queue *queue, struct upload_job *job)
{
    struct upload_job **at = &queue->waiting;
    while (*at)
        at = &(*at)->next;
    *at = job;
    job->next = NULL;
    job->queue = queue;
    job->state = UPLOAD_JOB_WAITING;
    start_waiting_jobs(queue);
}

void dirlisting_upload_queue_remove(struct upload_queue *queue, struct upload_job *job)
{
    struct upload_job **at = &queue->waiting;
    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
    job->state = UPLOAD_JOB_DONE;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Takes and runs jobs: a background task takes a job, runs it in another task, and renews the lease while it
 * runs. If the worker dies, the lease expires, and another worker takes the job. */
#include <duda/memory.h>
#include <duda/request.h>
#include <duda/task.h>
#include <errno.h>
#include <monkey/mem.h>
#include <monkey/text.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/package.h"
#include "jobs_worker.h"

enum {
    LOOK_MS = 1000,
    ATTEMPTS = 10,
    BACKOFF_MS = 1000,
    BACKOFF_MAX_MS = 3600000,
    DEADLINE_MS = 300000,
    TOKEN_BYTES = 12
};

/* A job that was taken and is running. */
struct running_job {
    struct duda_store *store;
    mk_str queue, token;
    struct duda_jobs_dequeued job;
    struct job_record record;
    uint64_t dequeued_us; /* metrics clock */
    bool is_scheduled;
};

static mk_str runner_queue(const struct jobs_runner *r)
{
    return mk_str_of(r->queue, r->queue_len);
}

static bool is_scheduled_id(mk_str id)
{
    return mk_str_starts(id, MK_STR("schedule-"));
}

/* ---- Waiting ---- */

static void on_wait_timeout(struct mk_timer *timer)
{
    struct jobs_slot *t = MK_CONTAINER(timer, struct jobs_slot, timer);
    t->may_look = true;
    duda_wait_wake(&t->wait);
}

static void end_slot_wait(struct duda_wait *w)
{
    struct jobs_slot *t = (struct jobs_slot *)w;
    t->may_look = t->is_idle = false;
    mk_timer_stop(&t->timer);
}

static int wait_for_notification(struct jobs_slot *t, uint64_t ms)
{
    int e = duda_wait_begin(t->d, &t->wait, end_slot_wait);
    if (e)
        return e;
    t->is_idle = true;
    mk_timer_set(&t->timer, duda_worker(t->d), ms < LOOK_MS ? (uint32_t)ms : LOOK_MS);
    while (!t->may_look && !e)
        e = duda_wait_suspend(&t->wait);
    duda_wait_end(&t->wait);
    return e;
}

/* ---- Running a job ---- */

int duda_job_fail(struct duda_ctx *d, int error, const char *fmt, ...)
{
    struct jobs_slot *t = duda_task_context(d);
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(t->error_text, sizeof t->error_text, fmt, args);
    va_end(args);
    t->error_len = len < 0 ? 0 : (size_t)len < sizeof t->error_text ? (size_t)len : sizeof t->error_text - 1;
    return error;
}

static int run_job_handler(struct duda_ctx *d)
{
    const struct jobs_slot *t = duda_task_context(d);
    return t->runner->kind->fn(d, t->given);
}

static void on_job_task_end(void *ctx, int result)
{
    struct jobs_slot *t = ctx;
    mk_meter_end(t->runner->work->meter, mk_clock_us() - t->began_us, result < 0);
    t->job = NULL;
    t->is_over = true;
    t->result = result;
    duda_wait_wake(&t->wait);
}

static int start_job_task(struct jobs_slot *t)
{
    const struct duda_job_type *kind = t->runner->kind;
    const struct duda_task task = {.name = kind->name,
                                   .fn = run_job_handler,
                                   .ctx = t,
                                   .stack = kind->stack,
                                   .deadline_ms = kind->deadline_ms ? kind->deadline_ms : DEADLINE_MS,
                                   .owner = t->runner->owner,
                                   .on_end = on_job_task_end};
    t->is_over = false;
    t->error_len = 0;
    t->began_us = package_meter_begin(t->runner->work->meter);
    int e = duda_task_spawn(t->runner->work->worker, &task, &t->job);
    if (e)
        mk_meter_end(t->runner->work->meter, 0, true);
    return e;
}

/* Called when the lease was lost: another worker has taken the job, so both are running it. */
static void log_lost_job(struct jobs_slot *t, const struct running_job *job)
{
    duda_log(t->d, MK_LOG_WARN,
             "the lease of the job %s/%.*s was not renewed in time: another worker runs the job, too",
             t->runner->kind->name, MK_STR_ARG(job->job.id));
}

/* Waits until the job ends. Returns 0, -ESTALE if the lease was lost, or the error that cancelled this
 * task. */
static int wait_for_job_task(struct jobs_slot *t, const struct running_job *job)
{
    uint32_t lease = t->runner->work->settings->lease_ms;
    bool is_ours = true;
    int e = duda_wait_begin(t->d, &t->wait, end_slot_wait);
    while (!e && !t->is_over) {
        mk_timer_set(&t->timer, duda_worker(t->d), lease / 3);
        t->may_look = false;
        while (!t->is_over && !t->may_look && !e)
            e = duda_wait_suspend(&t->wait);
        if (e || t->is_over || !is_ours)
            continue;
        is_ours =
            job->store->jobs->renew(t->d, job->store, job->queue, job->job.id, job->token, lease) != -ESTALE;
        if (!is_ours)
            log_lost_job(t, job);
    }
    duda_wait_end(&t->wait);
    return e ? e : is_ours ? 0 : -ESTALE;
}

/* ---- End of a job ---- */

static uint64_t retry_backoff_ms(const struct duda_job_type *kind, unsigned tries)
{
    uint64_t ms = kind->backoff_ms ? kind->backoff_ms : BACKOFF_MS;
    while (--tries && ms < BACKOFF_MAX_MS)
        ms *= 2;
    return ms < BACKOFF_MAX_MS ? ms : BACKOFF_MAX_MS;
}

/* Uses the clock of the store: the clocks of machines differ, and a scheduled time that has passed on one
 * machine must not occur again on another. */
static struct duda_jobs_due next_schedule_time(const struct jobs_runner *r, uint64_t now_ms)
{
    int64_t next = job_schedule_next(&r->schedule, (int64_t)now_ms);
    return next < 0 ? (struct duda_jobs_due){.delay_ms = UINT32_MAX}
                    : (struct duda_jobs_due){.at_ms = (uint64_t)next};
}

static mk_str format_job_record(struct duda_ctx *d, const struct job_record *r)
{
    size_t cap = r->text.len + r->unique.len + JOB_ERROR_MAX + JOB_RECORD_HEAD;
    char *buf = duda_alloc(d, cap);
    struct mk_buf out = mk_buf_fixed(buf, buf ? cap : 0);
    job_record_format(&out, r);
    return out.failed ? MK_STR_NULL : mk_buf_str(&out);
}

static enum duda_jobs_outcome decide_job_outcome(const struct jobs_slot *t, const struct running_job *job,
                                                 struct duda_jobs_due *due)
{
    const struct duda_job_type *kind = t->runner->kind;
    unsigned attempts = kind->max_attempts ? kind->max_attempts : ATTEMPTS;
    *due = (struct duda_jobs_due){0};
    if (job->is_scheduled) {
        uint64_t elapsed_ms = (mk_clock_us() - job->dequeued_us) / 1000;
        *due = next_schedule_time(t->runner, job->job.now_ms + elapsed_ms);
        return DUDA_JOBS_REQUEUE;
    }
    if (t->result >= 0)
        return DUDA_JOBS_DONE;
    if (t->result == -EBADMSG || job->job.attempts >= attempts)
        return DUDA_JOBS_FAILED;
    due->delay_ms = retry_backoff_ms(kind, job->job.attempts);
    return DUDA_JOBS_RETRY;
}

static int complete_job(struct jobs_slot *t, struct running_job *job)
{
    struct duda_jobs_due due;
    enum duda_jobs_outcome outcome = decide_job_outcome(t, job, &due);
    job->record.error_text = MK_STR_NULL;
    if (t->result < 0) {
        job->record.error_text =
            t->error_len ? mk_str_of(t->error_text, t->error_len) : mk_str_from_c(strerror(-t->result));
        duda_log(t->d, outcome == DUDA_JOBS_FAILED ? MK_LOG_ERROR : MK_LOG_WARN,
                 "the job %s/%.*s failed%s: %.*s", t->runner->kind->name, MK_STR_ARG(job->job.id),
                 outcome == DUDA_JOBS_FAILED ? " for the last time" : "", MK_STR_ARG(job->record.error_text));
    }
    mk_str record = format_job_record(t->d, &job->record);
    if (!record.p)
        return -ENOMEM;
    return job->store->jobs->complete(t->d, job->store, job->queue, job->job.id, job->token, record,
                                      job->record.unique, outcome, due);
}

/* ---- The loop ---- */

/* Returns whether the job was scheduled, but its type no longer has a schedule. */
static bool is_stale_schedule(const struct jobs_slot *t, const struct running_job *job)
{
    const char *schedule = t->runner->kind->schedule;
    return is_scheduled_id(job->job.id) &&
           (!schedule || !mk_str_eq(job->record.text, mk_str_from_c(schedule)));
}

static int run_dequeued_job(struct jobs_slot *t, struct running_job *job)
{
    const struct duda_job_type *kind = t->runner->kind;
    unsigned attempts = kind->max_attempts ? kind->max_attempts : ATTEMPTS;
    struct duda_job given;
    if (!jobs_copy_job(t->d, job->job.id, &job->record, &given))
        return -ENOMEM;
    given.attempt = job->job.attempts;
    t->given = &given;
    t->result = 0;
    t->error_len = 0;
    if (is_stale_schedule(t, job))
        return complete_job(t, job);
    job->is_scheduled = is_scheduled_id(job->job.id);
    if (job->job.attempts > attempts && !job->is_scheduled) { /* the last allowed attempt did not finish */
        t->result = -EOWNERDEAD;
        return complete_job(t, job);
    }
    int e = start_job_task(t);
    if (e) {
        t->result = e == -EAGAIN ? -EBUSY : e; /* the job's handler crashed too often recently */
        return complete_job(t, job);
    }
    e = wait_for_job_task(t, job);
    return e ? e : complete_job(t, job);
}

static mk_str make_lease_token(struct duda_ctx *d)
{
    char bits[TOKEN_BYTES], buf[2 * TOKEN_BYTES];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    mk_random(bits, sizeof bits);
    mk_hex_encode(&text, mk_str_of(bits, sizeof bits));
    return duda_strdup(d, mk_buf_str(&text));
}

/* Logs once that the store fails or does not exist. */
static int log_store_error(struct jobs_slot *t, int e)
{
    struct jobs_runner *r = t->runner;
    if (e == -ECANCELED || e == -ETIMEDOUT)
        return wait_for_notification(t, LOOK_MS);
    if (!r->is_reported)
        duda_log(t->d, MK_LOG_ERROR, "[JOBS] Store %.*s: cannot take jobs of the type `%s`: %s",
                 MK_STR_ARG(r->work->settings->store), r->kind->name,
                 e == -ENODEV ? "there is no [KV] or [REDIS] with this Name, or its package is not loaded"
                              : strerror(-e));
    r->is_reported = true;
    return wait_for_notification(t, LOOK_MS);
}

static int dequeue_job(struct jobs_slot *t)
{
    struct running_job job = {
        .store = jobs_store_find(t->d), .queue = runner_queue(t->runner), .token = make_lease_token(t->d)};
    if (!job.store)
        return log_store_error(t, jobs_store_missing(t->d));
    int e = job.store->jobs->dequeue(t->d, job.store, job.queue, job.token,
                                     t->runner->work->settings->lease_ms, &job.job);
    if (e && e != -ENOENT)
        return log_store_error(t, e);
    t->runner->is_reported = false;
    job.dequeued_us = mk_clock_us();
    if (e)
        return wait_for_notification(t, job.job.next_ms);
    if (!job_record_parse(job.job.record, &job.record))
        job.record = (struct job_record){.text = job.job.record};
    e = run_dequeued_job(t, &job);
    return e == -ESTALE ? 0 : e ? log_store_error(t, e) : 0;
}

/* A job type with a schedule has one recurring job; the first worker enqueues it. */
static int enqueue_scheduled_job(struct jobs_slot *t)
{
    static const struct mk_hash_key any = {0x7363686564756c65, 0x6a6f62};
    const struct duda_job_type *kind = t->runner->kind;
    struct duda_store *s = jobs_store_find(t->d);
    if (!kind->schedule || t != t->runner->slots || !s)
        return 0;
    mk_str text = mk_str_from_c(kind->schedule);
    const struct job_record record = {.enqueued_ms = (int64_t)jobs_now_ms(), .text = text};
    mk_str id = duda_sprintf(t->d, "schedule-%016llx", (unsigned long long)mk_hash(&any, text));
    uint64_t now_ms;
    int e = s->jobs->now(t->d, s, runner_queue(t->runner), &now_ms);
    e = e ? e
          : s->jobs->enqueue(t->d, s, runner_queue(t->runner), id, format_job_record(t->d, &record),
                             MK_STR_NULL, next_schedule_time(t->runner, now_ms));
    return e == -EEXIST ? 0 : e;
}

static bool slot_should_continue(const struct jobs_slot *t)
{
    return !duda_cancelled(t->d) && !t->runner->work->is_draining;
}

static int slot_loop(struct duda_ctx *d)
{
    struct jobs_slot *t = duda_task_context(d);
    int e;
    while ((e = enqueue_scheduled_job(t)) && slot_should_continue(t))
        (void)log_store_error(t, e);
    while (slot_should_continue(t)) {
        size_t mark = duda_arena_mark(d);
        (void)dequeue_job(t);
        duda_arena_rewind(d, mark);
    }
    return duda_cancelled(d);
}

static void on_slot_end(void *ctx, int result)
{
    struct jobs_slot *t = ctx;
    (void)result;
    t->d = NULL;
    if (t->holds)
        mk_worker_unref(t->runner->work->worker);
    t->holds = false;
}

/* ---- Lifetime ---- */

int jobs_runner_start(struct jobs_runner *r)
{
    struct mk_worker *w = r->work->worker;
    size_t n = r->kind->concurrency ? r->kind->concurrency : 1;
    r->slots = mk_mem_zalloc(n, sizeof *r->slots);
    if (!r->slots)
        return -ENOMEM;
    for (; r->n < n;) {
        struct jobs_slot *t = &r->slots[r->n++];
        t->runner = r;
        mk_timer_init(&t->timer, on_wait_timeout);
        const struct duda_task task = {.name = "jobs", .fn = slot_loop, .ctx = t, .on_end = on_slot_end};
        int e = duda_task_spawn(w, &task, &t->d);
        if (e)
            return e;
    }
    return 0;
}

void jobs_runner_drain(struct jobs_runner *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct jobs_slot *t = &r->slots[i];
        if (t->d && t->is_idle) {
            t->may_look = true;
            duda_wait_wake(&t->wait);
        } else if (t->d) {
            t->holds = true;
            mk_worker_ref(r->work->worker);
        }
    }
}

void jobs_runner_cancel(struct jobs_runner *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct jobs_slot *t = &r->slots[i];
        if (t->job)
            duda_task_cancel(t->job); /* before t->d: the job reads data on the stack of that task */
        if (t->d)
            duda_task_cancel(t->d);
        mk_timer_stop(&t->timer);
    }
}

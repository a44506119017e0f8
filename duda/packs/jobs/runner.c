/* SPDX-License-Identifier: Apache-2.0 */
/* Takes jobs and does them: an errand takes, another one is the job itself, whose lease the first one keeps.
 * When the worker dies, the lease ends, and others take the job. */
#include <duda/asked.h>
#include <duda/errand.h>
#include <duda/memory.h>
#include <errno.h>
#include <monkey/mem.h>
#include <monkey/text.h>

#include "sections.h"
#include "work.h"

enum {
    LOOK_MS = 1000,
    ATTEMPTS = 10,
    BACKOFF_MS = 1000,
    BACKOFF_MAX_MS = 3600000,
    DEADLINE_MS = 300000,
    TOKEN_BYTES = 12
};

/* A job that was taken, while it is done. */
struct taken {
    struct duda_store *store;
    mk_str queue, token;
    struct duda_jobs_taken job;
    struct job_record record;
    uint64_t taken_us; /* by the clock of the meter */
    bool is_scheduled;
};

static mk_str queue_of(const struct jobs_runner *r)
{
    return mk_str_of(r->queue, r->queue_len);
}

static bool is_done_by_schedule(mk_str id)
{
    return mk_str_starts(id, MK_STR("schedule-"));
}

/* ---- Waiting ---- */

static void on_due(struct mk_timer *timer)
{
    struct jobs_taker *t = MK_CONTAINER(timer, struct jobs_taker, timer);
    t->may_look = true;
    duda_wait_wake(&t->wait);
}

static void end_waiting(struct duda_wait *w)
{
    struct jobs_taker *t = (struct jobs_taker *)w;
    t->may_look = t->is_idle = false;
    mk_timer_stop(&t->timer);
}

static int wait_for_news(struct jobs_taker *t, uint64_t ms)
{
    int e = duda_wait_begin(t->d, &t->wait, end_waiting);
    if (e)
        return e;
    t->is_idle = true;
    mk_timer_set(&t->timer, duda_worker(t->d), ms < LOOK_MS ? (uint32_t)ms : LOOK_MS);
    while (!t->may_look && !e)
        e = duda_wait_suspend(&t->wait);
    duda_wait_end(&t->wait);
    return e;
}

/* ---- The job itself ---- */

int duda_job_fail(struct duda *d, int error, const char *why)
{
    struct jobs_taker *t = duda_errand_context(d);
    struct mk_buf text = mk_buf_fixed(t->problem, sizeof t->problem);
    mk_buf_add(&text, mk_str_first(mk_str_from_c(why), sizeof t->problem));
    t->problem_len = text.len;
    return error;
}

static int do_job(struct duda *d)
{
    const struct jobs_taker *t = duda_errand_context(d);
    return t->runner->kind->fn(d, t->given);
}

static void on_end(void *ctx, int result)
{
    struct jobs_taker *t = ctx;
    mk_meter_end(t->runner->work->meter, mk_clock_us() - t->begun_us, result < 0);
    t->job = NULL;
    t->is_over = true;
    t->result = result;
    duda_wait_wake(&t->wait);
}

static int begin(struct jobs_taker *t)
{
    const struct duda_job_kind *kind = t->runner->kind;
    const struct duda_errand errand = {.name = kind->name,
                                       .fn = do_job,
                                       .ctx = t,
                                       .stack = kind->stack,
                                       .deadline_ms = kind->deadline_ms ? kind->deadline_ms : DEADLINE_MS,
                                       .owner = t->runner->owner,
                                       .on_end = on_end};
    t->is_over = false;
    t->problem_len = 0;
    t->begun_us = pack_meter_begin(t->runner->work->meter);
    int e = duda_errand_begin(t->runner->work->worker, &errand, &t->job);
    if (e)
        mk_meter_end(t->runner->work->meter, 0, true);
    return e;
}

/* It has been taken by another: there it is done again. */
static void lose(struct jobs_taker *t, const struct taken *job)
{
    duda_log(t->d, MK_LOG_WARN, "the job %s/%.*s was not renewed in time, and is done by another worker, too",
             t->runner->kind->name, MK_STR_ARG(job->job.id));
}

/* Until it is over. 0, -ESTALE, or what ended the taker. */
static int await(struct jobs_taker *t, const struct taken *job)
{
    uint32_t lease = t->runner->work->settings->lease_ms;
    bool is_ours = true;
    int e = duda_wait_begin(t->d, &t->wait, end_waiting);
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
            lose(t, job);
    }
    duda_wait_end(&t->wait);
    return e ? e : is_ours ? 0 : -ESTALE;
}

/* ---- Its end ---- */

static uint64_t pause_after(const struct duda_job_kind *kind, unsigned tries)
{
    uint64_t ms = kind->backoff_ms ? kind->backoff_ms : BACKOFF_MS;
    while (--tries && ms < BACKOFF_MAX_MS)
        ms *= 2;
    return ms < BACKOFF_MAX_MS ? ms : BACKOFF_MAX_MS;
}

/* By the clock of the store, because those of machines differ: a time that one of them has had must not come again
 * on another one. */
static struct duda_jobs_due next_time(const struct jobs_runner *r, uint64_t now_ms)
{
    int64_t next = job_schedule_next(&r->schedule, (int64_t)now_ms);
    return next < 0 ? (struct duda_jobs_due){.delay_ms = UINT32_MAX}
                    : (struct duda_jobs_due){.at_ms = (uint64_t)next};
}

static mk_str write_record(struct duda *d, const struct job_record *r)
{
    size_t cap = r->text.len + r->unique.len + JOB_PROBLEM_MAX + JOB_RECORD_HEAD;
    char *room = duda_alloc(d, cap);
    struct mk_buf out = mk_buf_fixed(room, room ? cap : 0);
    job_record_write(&out, r);
    return out.failed ? MK_ABSENT : mk_buf_str(&out);
}

static enum duda_jobs_end judge(const struct jobs_taker *t, const struct taken *job,
                                struct duda_jobs_due *due)
{
    const struct duda_job_kind *kind = t->runner->kind;
    unsigned attempts = kind->attempts ? kind->attempts : ATTEMPTS;
    *due = (struct duda_jobs_due){0};
    if (job->is_scheduled) {
        uint64_t elapsed_ms = (mk_clock_us() - job->taken_us) / 1000;
        *due = next_time(t->runner, job->job.now_ms + elapsed_ms);
        return DUDA_JOBS_AGAIN;
    }
    if (t->result >= 0)
        return DUDA_JOBS_DONE;
    if (t->result == -EBADMSG || job->job.tries >= attempts)
        return DUDA_JOBS_DEAD;
    due->delay_ms = pause_after(kind, job->job.tries);
    return DUDA_JOBS_LATER;
}

static int finish(struct jobs_taker *t, struct taken *job)
{
    struct duda_jobs_due due;
    enum duda_jobs_end how = judge(t, job, &due);
    job->record.problem = MK_ABSENT;
    if (t->result < 0) {
        job->record.problem =
            t->problem_len ? mk_str_of(t->problem, t->problem_len) : mk_str_from_c(strerror(-t->result));
        duda_log(t->d, how == DUDA_JOBS_DEAD ? MK_LOG_ERROR : MK_LOG_WARN,
                 "the job %s/%.*s has failed%s: %.*s", t->runner->kind->name, MK_STR_ARG(job->job.id),
                 how == DUDA_JOBS_DEAD ? ", and is dead" : "", MK_STR_ARG(job->record.problem));
    }
    mk_str record = write_record(t->d, &job->record);
    if (!record.p)
        return -ENOMEM;
    return job->store->jobs->finish(t->d, job->store, job->queue, job->job.id, job->token, record,
                                    job->record.unique, how, due);
}

/* ---- One after the other ---- */

/* What is left of a schedule that the service has no more. */
static bool is_outdated(const struct jobs_taker *t, const struct taken *job)
{
    const char *schedule = t->runner->kind->schedule;
    return is_done_by_schedule(job->job.id) &&
           (!schedule || !mk_str_eq(job->record.text, mk_str_from_c(schedule)));
}

/* A NUL follows the copy. Absent text stays absent. */
static bool keep(struct duda *d, mk_str text, mk_str *out)
{
    *out = text.p ? duda_copy(d, text) : MK_ABSENT;
    return out->p || !text.p;
}

static int run(struct jobs_taker *t, struct taken *job)
{
    const struct duda_job_kind *kind = t->runner->kind;
    unsigned attempts = kind->attempts ? kind->attempts : ATTEMPTS;
    struct duda_job given = {.attempt = job->job.tries, .pushed_ms = job->record.pushed_ms};
    if (!keep(t->d, job->job.id, &given.id) || !keep(t->d, job->record.text, &given.text) ||
        !keep(t->d, job->record.problem, &given.problem))
        return -ENOMEM;
    t->given = &given;
    t->result = 0;
    t->problem_len = 0;
    if (is_outdated(t, job))
        return finish(t, job);
    job->is_scheduled = is_done_by_schedule(job->job.id);
    if (job->job.tries > attempts && !job->is_scheduled) { /* no attempt has come to an end */
        t->result = -EOWNERDEAD;
        return finish(t, job);
    }
    int e = begin(t);
    if (e) {
        t->result = e == -EAGAIN ? -EBUSY : e; /* its handler has crashed too often of late */
        return finish(t, job);
    }
    e = await(t, job);
    return e ? e : finish(t, job);
}

static mk_str make_token(struct duda *d)
{
    char bits[TOKEN_BYTES], room[2 * TOKEN_BYTES];
    struct mk_buf text = mk_buf_fixed(room, sizeof room);
    mk_random(bits, sizeof bits);
    mk_hex_encode(&text, mk_str_of(bits, sizeof bits));
    return duda_copy(d, mk_buf_str(&text));
}

/* The store does not answer, or there is none: said once. */
static int complain(struct jobs_taker *t, int e)
{
    struct jobs_runner *r = t->runner;
    if (e == -ECANCELED || e == -ETIMEDOUT)
        return wait_for_news(t, LOOK_MS);
    if (!r->is_reported)
        duda_log(t->d, MK_LOG_ERROR, "[JOBS] Store %.*s: no jobs `%s` from there: %s",
                 MK_STR_ARG(r->work->settings->store), r->kind->name,
                 e == -ENOTSUP ? "there is no [KV] or [REDIS] of this Name, or it is not loaded"
                               : strerror(-e));
    r->is_reported = true;
    return wait_for_news(t, LOOK_MS);
}

static int take_one(struct jobs_taker *t)
{
    struct taken job = {
        .store = jobs_work_store(t->d), .queue = queue_of(t->runner), .token = make_token(t->d)};
    if (!job.store)
        return complain(t, -ENOTSUP);
    int e = job.store->jobs->take(t->d, job.store, job.queue, job.token, t->runner->work->settings->lease_ms,
                                  &job.job);
    if (e && e != -ENOENT)
        return complain(t, e);
    t->runner->is_reported = false;
    job.taken_us = mk_clock_us();
    if (e)
        return wait_for_news(t, job.job.next_ms);
    if (!job_record_read(job.job.record, &job.record))
        job.record = (struct job_record){.text = job.job.record};
    e = run(t, &job);
    return e == -ESTALE ? 0 : e ? complain(t, e) : 0;
}

/* A kind with a schedule has one job, which comes again and again; whoever is first pushes it. */
static int push_scheduled(struct jobs_taker *t)
{
    static const struct mk_hash_key any = {0x7363686564756c65, 0x6a6f62};
    const struct duda_job_kind *kind = t->runner->kind;
    struct duda_store *s = jobs_work_store(t->d);
    if (!kind->schedule || t != t->runner->takers || !s)
        return 0;
    mk_str text = mk_str_from_c(kind->schedule);
    const struct job_record record = {.pushed_ms = (int64_t)jobs_work_now_ms(), .text = text};
    mk_str id = duda_print(t->d, "schedule-%016llx", (unsigned long long)mk_hash(&any, text));
    uint64_t now_ms;
    int e = s->jobs->now(t->d, s, queue_of(t->runner), &now_ms);
    e = e ? e
          : s->jobs->push(t->d, s, queue_of(t->runner), id, write_record(t->d, &record), MK_ABSENT,
                          next_time(t->runner, now_ms));
    return e == -EEXIST ? 0 : e;
}

static bool goes_on(const struct jobs_taker *t)
{
    return !duda_ended(t->d) && !t->runner->work->is_draining;
}

static int take_jobs(struct duda *d)
{
    struct jobs_taker *t = duda_errand_context(d);
    int e;
    while ((e = push_scheduled(t)) && goes_on(t))
        (void)complain(t, e);
    while (goes_on(t)) {
        size_t mark = duda_mark(d);
        (void)take_one(t);
        duda_release(d, mark);
    }
    return duda_ended(d);
}

static void on_taker_end(void *ctx, int result)
{
    struct jobs_taker *t = ctx;
    (void)result;
    t->d = NULL;
    if (t->holds)
        mk_worker_let_go(t->runner->work->worker);
    t->holds = false;
}

/* ---- Its life ---- */

int jobs_runner_start(struct jobs_runner *r)
{
    struct mk_worker *w = r->work->worker;
    size_t n = r->kind->parallel ? r->kind->parallel : 1;
    r->takers = mk_mem_zalloc(n, sizeof *r->takers);
    if (!r->takers)
        return -ENOMEM;
    for (; r->n < n;) {
        struct jobs_taker *t = &r->takers[r->n++];
        t->runner = r;
        mk_timer_init(&t->timer, on_due);
        const struct duda_errand errand = {.name = "jobs", .fn = take_jobs, .ctx = t, .on_end = on_taker_end};
        int e = duda_errand_begin(w, &errand, &t->d);
        if (e)
            return e;
    }
    return 0;
}

void jobs_runner_drain(struct jobs_runner *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct jobs_taker *t = &r->takers[i];
        if (t->d && t->is_idle) {
            t->may_look = true;
            duda_wait_wake(&t->wait);
        } else if (t->d) {
            t->holds = true;
            mk_worker_hold(r->work->worker);
        }
    }
}

void jobs_runner_stop(struct jobs_runner *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct jobs_taker *t = &r->takers[i];
        if (t->job)
            duda_errand_end(t->job); /* it reads what the taker has */
        if (t->d)
            duda_errand_end(t->d);
        mk_timer_stop(&t->timer);
    }
    mk_mem_free(r->takers);
}

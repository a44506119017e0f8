/* SPDX-License-Identifier: Apache-2.0 */
/* Statements run in threads, one for each session. A handler that does not wait any more leaves its statement
 * behind: it is interrupted, and the session is free when it has returned. */
#include "base.h"

#include <duda/memory.h>
#include <duda/wait.h>
#include <errno.h>
#include <monkey/mem.h>

#include "sections.h"

/* A copy of what a handler wants: the handler may be gone before the thread has begun. */
struct sqlite_job {
    struct waiting *waiting; /* NULL: none waits for it */
    enum sqlite_use use;
    mk_str text;
    size_t n;
    struct duda_sql_value *values;
    char room[];
};

/* A handler that waits for its statement; on its stack. */
struct waiting {
    struct duda_wait wait; /* the first */
    struct sqlite_seat *seat;
    struct sqlite_job *job; /* NULL: it is over */
};

/* ---- Sessions ---- */

static void release(struct sqlite_seat *seat)
{
    struct sqlite_base *b = seat->base;
    if (pack_waiters_give(&b->waiters, seat))
        return;
    seat->next = b->free;
    b->free = seat;
}

static int take(struct duda *d, struct sqlite_base *b, struct sqlite_seat **out)
{
    void *seat = b->free;
    int e = 0;
    if (seat)
        b->free = b->free->next;
    else
        e = b->waiters.n >= b->settings->waiting_max ? -EBUSY : pack_waiters_wait(&b->waiters, d, &seat);
    *out = seat;
    return e;
}

/* ---- Statements ---- */

static struct sqlite_job *copy_job(enum sqlite_use use, mk_str text, const struct duda_sql_value *values,
                                   size_t n)
{
    size_t room = n * sizeof *values + text.len + 1;
    for (size_t i = 0; i < n; i++)
        if (__builtin_add_overflow(room, values[i].text.len, &room))
            return NULL;
    struct sqlite_job *job = mk_mem_zalloc(1, sizeof *job + room + _Alignof(struct duda_sql_value));
    if (!job)
        return NULL;
    size_t skew = (size_t)((uintptr_t)job->room % _Alignof(struct duda_sql_value));
    job->values = (void *)(job->room + (skew ? _Alignof(struct duda_sql_value) - skew : 0));
    job->n = n;
    job->use = use;
    char *at = (char *)(job->values + n);
    memcpy(at, text.p, text.len);
    job->text = mk_str_of(at, text.len);
    at += text.len + 1;
    for (size_t i = 0; i < n; i++) {
        job->values[i] = values[i];
        if (!values[i].text.p)
            continue;
        memcpy(at, values[i].text.p, values[i].text.len);
        job->values[i].text.p = at;
        at += values[i].text.len;
    }
    return job;
}

static void work(void *ctx)
{
    struct sqlite_seat *seat = ctx;
    sqlite_session_run(&seat->session, seat->job->use, seat->job->text, seat->job->values, seat->job->n);
}

static void end_transaction(struct sqlite_seat *seat);

static void report(struct sqlite_base *b, const struct sqlite_seat *seat)
{
    bool is_down = !seat->session.handle;
    if (is_down && !b->is_reported)
        mk_worker_log(b->worker, MK_LOG_ERROR, "%s: %s", b->settings->file.p, seat->session.rows.problem);
    b->is_reported = is_down;
}

static void done(void *ctx)
{
    struct sqlite_seat *seat = ctx;
    struct sqlite_job *job = seat->job;
    seat->job = NULL;
    atomic_store(&seat->session.is_cancelled, false);
    report(seat->base, seat);
    struct waiting *waiting = job->waiting;
    mk_mem_free(job);
    if (waiting) {
        waiting->job = NULL;
        duda_wait_wake(&waiting->wait);
        return;
    }
    if (seat->ends)
        end_transaction(seat);
    else if (!seat->in_transaction)
        release(seat);
}

static int start(struct sqlite_seat *seat, struct sqlite_job *job)
{
    seat->job = job;
    int e = job ? mk_threads_run(seat->base->threads, work, done, seat) : -ENOMEM;
    if (e) {
        seat->job = NULL;
        mk_mem_free(job);
    }
    return e;
}

/* The lock of a transaction that was given up is in the way of all others: it goes now, not with the next
 * statement. */
static void end_transaction(struct sqlite_seat *seat)
{
    seat->ends = seat->in_transaction = false;
    seat->session.must_roll_back = true;
    if (start(seat, copy_job(SQLITE_OURS, MK_STR(""), NULL, 0)))
        release(seat);
}

static void end_waiting(struct duda_wait *w)
{
    struct waiting *waiting = (struct waiting *)w;
    if (!waiting->job)
        return;
    waiting->job->waiting = NULL;
    atomic_store(&waiting->seat->session.is_cancelled, true);
}

/* When it returns, a thread may still run the statement: then seat->job is set. */
static int run_in(struct duda *d, struct sqlite_seat *seat, struct duda_sql_result *result,
                  enum sqlite_use use, mk_str text, const struct duda_sql_value *values, size_t n)
{
    struct waiting waiting = {.seat = seat};
    int e = duda_wait_begin(d, &waiting.wait, end_waiting);
    if (e)
        return e;
    e = start(seat, copy_job(use, text, values, n));
    if (!e) {
        waiting.job = seat->job;
        seat->job->waiting = &waiting;
        e = duda_wait_suspend(&waiting.wait);
    }
    duda_wait_end(&waiting.wait);
    if (e)
        return e;
    e = duda_sql_rows_give(&seat->session.rows, d, result);
    duda_sql_rows_free(&seat->session.rows);
    return e;
}

static int refuse(struct duda *d, struct duda_sql *db, struct duda_sql_result *result, int e)
{
    const char *why = e == -EBUSY ? "more than MaxQueue handlers wait for a thread" : strerror(-e);
    if (e && !result->problem.len)
        result->problem = duda_print(d, "[SQLITE] %.*s: %s", MK_STR_ARG(db->name), why);
    return e;
}

static int run(struct duda *d, struct duda_sql *db, void *session, struct duda_sql_result *result,
               const struct duda_sql_query *q)
{
    struct sqlite_seat *seat = session;
    int e = seat ? 0 : take(d, (struct sqlite_base *)db, &seat);
    if (e)
        return refuse(d, db, result, e);
    e = run_in(d, seat, result, session ? SQLITE_INSIDE : SQLITE_ALONE, mk_str_from_c(q->text), q->parameters,
               q->n);
    if (!session && !seat->job) /* else done() does it */
        release(seat);
    return refuse(d, db, result, e);
}

static int begin(struct duda *d, struct duda_sql *db, struct duda_sql_result *result, void **session)
{
    struct sqlite_seat *seat;
    int e = take(d, (struct sqlite_base *)db, &seat);
    if (e)
        return refuse(d, db, result, e);
    seat->in_transaction = true;
    e = run_in(d, seat, result, SQLITE_OURS, MK_STR("BEGIN IMMEDIATE"), NULL, 0);
    if (!e) {
        *session = seat;
        return 0;
    }
    seat->ends = true;
    if (!seat->job)
        end_transaction(seat);
    return e;
}

static int finish(struct duda *d, struct duda_sql *db, void *session, struct duda_sql_result *result,
                  bool commits)
{
    (void)db;
    return run_in(d, session, result, SQLITE_OURS, commits ? MK_STR("COMMIT") : MK_STR("ROLLBACK"), NULL, 0);
}

static void end(struct duda_sql *db, void *session, bool over)
{
    struct sqlite_seat *seat = session;
    (void)db;
    if (seat->job) {
        seat->ends = true;
    } else if (over) {
        seat->in_transaction = false;
        release(seat);
    } else {
        end_transaction(seat);
    }
}

static const struct duda_sql_ops ops = {.run = run, .begin = begin, .finish = finish, .end = end};

/* Mistakes are told at the start, not by the first request. */
static int check_migrations(struct sqlite_base *b)
{
    struct sqlite_seat *seat = b->free;
    b->free = seat->next;
    int e = start(seat, copy_job(SQLITE_OURS, MK_STR(""), NULL, 0));
    if (e)
        release(seat);
    return e;
}

int sqlite_base_open(struct sqlite_base *b, struct mk_worker *w, const struct sqlite_settings *settings)
{
    b->sql = (struct duda_sql){.ops = &ops, .name = settings->name, .meter = pack_meter(w, settings)};
    b->settings = settings;
    b->worker = w;
    pack_waiters_init(&b->waiters);
    b->threads = mk_threads_new(w, settings->threads, settings->threads);
    b->seats = mk_mem_zalloc(settings->threads, sizeof *b->seats);
    if (!b->threads || !b->seats)
        return -ENOMEM;
    for (unsigned i = 0; i < settings->threads; i++) {
        b->seats[i].base = b;
        b->seats[i].session.settings = settings;
        release(&b->seats[i]);
    }
    return settings->migrations ? check_migrations(b) : 0;
}

void sqlite_base_close(struct sqlite_base *b)
{
    for (unsigned i = 0; b->seats && i < b->settings->threads; i++)
        atomic_store(&b->seats[i].session.is_cancelled, true);
    mk_threads_free(b->threads);
    for (unsigned i = 0; b->seats && i < b->settings->threads; i++) {
        sqlite_session_close(&b->seats[i].session);
        duda_sql_rows_free(&b->seats[i].session.rows);
    }
    mk_mem_free(b->seats);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Statements run in threads, one for each session. If a handler is cancelled, its statement is interrupted,
 * and the session becomes free when the statement returns. */
#include "pool.h"

#include <duda/memory.h>
#include <duda/wait.h>
#include <errno.h>
#include <monkey/mem.h>

#include "common/package.h"
#include "violation.h"

/* A copy of the handler's request: the handler may be gone before the thread starts. */
struct sqlite_job {
    struct waiting *waiting; /* NULL: no handler waits for the statement */
    enum sqlite_use use;
    uint64_t cursor; /* 0: a statement */
    size_t n_rows;   /* of a cursor to read; 0: opens the cursor */
    mk_str text;
    size_t n;
    struct duda_sql_value *values;
    char buf[];
};

/* A handler that waits for its statement. This struct is on its stack. */
struct waiting {
    struct duda_wait wait; /* must be first */
    struct sqlite_slot *slot;
    struct sqlite_job *job; /* NULL: done */
};

/* ---- Sessions ---- */

static void release_slot(struct sqlite_slot *slot)
{
    struct sqlite_pool *b = slot->pool;
    if (package_wait_queue_hand_over(&b->waiters, slot))
        return;
    slot->next = b->free;
    b->free = slot;
}

static int acquire_slot(struct duda_ctx *d, struct sqlite_pool *b, struct sqlite_slot **out)
{
    void *slot = b->free;
    int e = 0;
    if (slot)
        b->free = b->free->next;
    else
        e = b->waiters.n >= b->settings->waiting_max ? -EBUSY
                                                     : package_wait_queue_wait(&b->waiters, d, &slot);
    *out = slot;
    return e;
}

/* ---- Statements ---- */

static struct sqlite_job *sqlite_job_new(enum sqlite_use use, mk_str text,
                                         const struct duda_sql_value *values, size_t n)
{
    size_t space = n * sizeof *values + text.len + 1;
    for (size_t i = 0; i < n; i++)
        if (__builtin_add_overflow(space, values[i].text.len, &space))
            return NULL;
    struct sqlite_job *job = mk_mem_zalloc(1, sizeof *job + space + _Alignof(struct duda_sql_value));
    if (!job)
        return NULL;
    size_t skew = (size_t)((uintptr_t)job->buf % _Alignof(struct duda_sql_value));
    job->values = (void *)(job->buf + (skew ? _Alignof(struct duda_sql_value) - skew : 0));
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

static void run_job(void *ctx)
{
    struct sqlite_slot *slot = ctx;
    const struct sqlite_job *job = slot->job;
    if (!job->cursor)
        sqlite_session_run(&slot->session, job->use, job->text, job->values, job->n);
    else if (job->n_rows)
        sqlite_session_fetch(&slot->session, job->cursor, job->n_rows);
    else
        sqlite_session_open_cursor(&slot->session, job->cursor, job->text, job->values, job->n);
}

static void rollback_abandoned_transaction(struct sqlite_slot *slot);

static void log_open_failure(struct sqlite_pool *b, const struct sqlite_slot *slot)
{
    bool is_down = !slot->session.handle;
    if (is_down && !b->is_reported) /* a worker that stops interrupts its migration */
        mk_worker_log(b->worker, b->is_closing ? MK_LOG_INFO : MK_LOG_ERROR, "%s: %s", b->settings->file.p,
                      slot->session.rows.message);
    b->is_reported = is_down;
}

static void on_job_done(void *ctx)
{
    struct sqlite_slot *slot = ctx;
    struct sqlite_job *job = slot->job;
    slot->job = NULL;
    atomic_store(&slot->session.is_cancelled, false);
    log_open_failure(slot->pool, slot);
    struct waiting *waiting = job->waiting;
    mk_mem_free(job);
    if (waiting) {
        waiting->job = NULL;
        duda_wait_wake(&waiting->wait);
        return;
    }
    if (slot->ends)
        rollback_abandoned_transaction(slot);
    else if (!slot->in_transaction)
        release_slot(slot);
}

static int submit_job(struct sqlite_slot *slot, struct sqlite_job *job)
{
    slot->job = job;
    slot->since_ms = mk_worker_now_ms(slot->pool->worker);
    if (slot->pool->settings->migrations && !slot->session.handle)
        package_migration_log_start(&slot->pool->migration_log);
    int e = job ? mk_thread_pool_submit(slot->pool->threads, run_job, on_job_done, slot) : -ENOMEM;
    if (e) {
        slot->job = NULL;
        mk_mem_free(job);
    }
    return e;
}

/* Rolls back an abandoned transaction now, not before the next statement, because its lock blocks all other
 * writers. */
static void rollback_abandoned_transaction(struct sqlite_slot *slot)
{
    slot->ends = slot->in_transaction = false;
    slot->session.must_roll_back = true;
    if (submit_job(slot, sqlite_job_new(SQLITE_USE_INTERNAL, MK_STR(""), NULL, 0)))
        release_slot(slot);
}

static void abandon_job(struct duda_wait *w)
{
    struct waiting *waiting = (struct waiting *)w;
    if (!waiting->job)
        return;
    waiting->job->waiting = NULL;
    atomic_store(&waiting->slot->session.is_cancelled, true);
}

/* Runs a job in a thread, and frees it. If the handler is cancelled, the job may still run when this function
 * returns; slot->job is then set. */
static int run_job_on_slot(struct duda_ctx *d, struct sqlite_slot *slot, struct duda_sql_result *result,
                           struct sqlite_job *job)
{
    struct waiting waiting = {.slot = slot};
    int e = duda_wait_begin(d, &waiting.wait, abandon_job);
    if (e) {
        mk_mem_free(job);
        return e;
    }
    e = submit_job(slot, job);
    if (!e) {
        waiting.job = slot->job;
        slot->job->waiting = &waiting;
        e = duda_wait_suspend(&waiting.wait);
    }
    duda_wait_end(&waiting.wait);
    if (e)
        return e;
    e = duda_sql_rows_result(&slot->session.rows, d, result);
    if (slot->session.violated) {
        const struct duda_sql_violation violation =
            sqlite_violation_parse(slot->session.violated, slot->session.violation_text);
        duda_sql_set_violation(d, result, &violation);
    }
    duda_sql_rows_free(&slot->session.rows);
    return e;
}

static int run_on_slot(struct duda_ctx *d, struct sqlite_slot *slot, struct duda_sql_result *result,
                       enum sqlite_use use, mk_str text, const struct duda_sql_value *values, size_t n)
{
    return run_job_on_slot(d, slot, result, sqlite_job_new(use, text, values, n));
}

static int set_result_error(struct duda_ctx *d, struct duda_sql_db *db, struct duda_sql_result *result, int e)
{
    const char *error_text = e == -EBUSY ? "more than MaxQueue handlers wait for a thread" : strerror(-e);
    if (e && !result->error.len)
        result->error = duda_sprintf(d, "[SQLITE] %.*s: %s", MK_STR_ARG(db->name), error_text);
    return e;
}

static int run_statement(struct duda_ctx *d, struct duda_sql_db *db, void *session,
                         struct duda_sql_result *result, const struct duda_sql_statement *q)
{
    struct sqlite_slot *slot = session;
    int e = slot ? 0 : acquire_slot(d, (struct sqlite_pool *)db, &slot);
    if (e)
        return set_result_error(d, db, result, e);
    e = run_on_slot(d, slot, result, session ? SQLITE_USE_TRANSACTION : SQLITE_USE_AUTOCOMMIT,
                    mk_str_from_c(q->text), q->parameters, q->n);
    if (!session && !slot->job) /* otherwise on_job_done() releases the slot */
        release_slot(slot);
    return set_result_error(d, db, result, e);
}

static int begin_transaction(struct duda_ctx *d, struct duda_sql_db *db, struct duda_sql_result *result,
                             const struct duda_sql_transaction_options *options, void **session)
{
    struct sqlite_slot *slot;
    int e = acquire_slot(d, (struct sqlite_pool *)db, &slot);
    if (e)
        return set_result_error(d, db, result, e);
    slot->in_transaction = true;
    e = run_on_slot(d, slot, result, SQLITE_USE_INTERNAL,
                    options->read_only ? MK_STR(SQLITE_BEGIN_READ_ONLY) : MK_STR("BEGIN IMMEDIATE"), NULL, 0);
    if (!e) {
        *session = slot;
        return 0;
    }
    slot->ends = true;
    if (!slot->job)
        rollback_abandoned_transaction(slot);
    return e;
}

static int finish_transaction(struct duda_ctx *d, struct duda_sql_db *db, void *session,
                              struct duda_sql_result *result, bool commits)
{
    (void)db;
    return run_on_slot(d, session, result, SQLITE_USE_INTERNAL,
                       commits ? MK_STR("COMMIT") : MK_STR("ROLLBACK"), NULL, 0);
}

static void end_transaction(struct duda_sql_db *db, void *session, bool over)
{
    struct sqlite_slot *slot = session;
    (void)db;
    if (slot->job) {
        slot->ends = true;
    } else if (over) {
        slot->in_transaction = false;
        release_slot(slot);
    } else {
        rollback_abandoned_transaction(slot);
    }
}

/* ---- Cursors ---- */

static int run_cursor_job(struct duda_ctx *d, struct duda_sql_db *db, struct sqlite_slot *slot,
                          struct duda_sql_result *result, struct sqlite_job *job, uint64_t cursor,
                          size_t n_rows)
{
    if (!job)
        return set_result_error(d, db, result, -ENOMEM);
    job->cursor = cursor;
    job->n_rows = n_rows;
    return set_result_error(d, db, result, run_job_on_slot(d, slot, result, job));
}

static int open_cursor(struct duda_ctx *d, struct duda_sql_db *db, void *session,
                       struct duda_sql_result *result, const struct duda_sql_statement *q, uint64_t *cursor)
{
    uint64_t number = ++((struct sqlite_pool *)db)->n_cursors;
    struct sqlite_job *job =
        sqlite_job_new(SQLITE_USE_TRANSACTION, mk_str_from_c(q->text), q->parameters, q->n);
    int e = run_cursor_job(d, db, session, result, job, number, 0);
    *cursor = e ? 0 : number;
    return e;
}

static int fetch_rows(struct duda_ctx *d, struct duda_sql_db *db, void *session, uint64_t cursor, size_t n,
                      struct duda_sql_result *result)
{
    struct sqlite_job *job = sqlite_job_new(SQLITE_USE_TRANSACTION, MK_STR(""), NULL, 0);
    return run_cursor_job(d, db, session, result, job, cursor, n);
}

/* While a thread still runs a job, the end of the transaction closes the cursor. */
static void close_cursor(struct duda_sql_db *db, void *session, uint64_t cursor)
{
    struct sqlite_slot *slot = session;
    (void)db;
    if (!slot->job)
        sqlite_session_close_cursor(&slot->session, cursor);
}

static const struct duda_sql_ops ops = {.run_statement = run_statement,
                                        .begin = begin_transaction,
                                        .finish = finish_transaction,
                                        .release = end_transaction,
                                        .open_cursor = open_cursor,
                                        .fetch = fetch_rows,
                                        .close_cursor = close_cursor};

/* Opens the database at startup, to report errors now instead of on the first request. */
static int check_migrations(struct sqlite_pool *b)
{
    struct sqlite_slot *slot = b->free;
    b->free = slot->next;
    int e = submit_job(slot, sqlite_job_new(SQLITE_USE_INTERNAL, MK_STR(""), NULL, 0));
    if (e)
        release_slot(slot);
    return e;
}

static struct package_migration_state get_migration_state(void *ctx)
{
    const struct sqlite_pool *b = ctx;
    struct package_migration_state state = {.since_ms = 0};
    for (unsigned i = 0; i < b->settings->threads && !state.running; i++) {
        const struct sqlite_slot *slot = &b->slots[i];
        if (!slot->job || !atomic_load(&slot->session.is_migrating))
            continue;
        state.running = atomic_load(&slot->session.migration.running);
        state.since_ms = slot->since_ms;
    }
    return state;
}

int sqlite_pool_open(struct sqlite_pool *b, struct mk_worker *w, const struct sqlite_settings *settings)
{
    b->sql = (struct duda_sql_db){.ops = &ops, .name = settings->name, .meter = package_meter(w, settings)};
    b->settings = settings;
    b->worker = w;
    package_wait_queue_init(&b->waiters);
    b->migration_log = (struct package_migration_log){.worker = w,
                                                      .section = "SQLITE",
                                                      .name = settings->name,
                                                      .service = settings->migrations_of,
                                                      .get_state = get_migration_state,
                                                      .ctx = b};
    package_migration_log_init(&b->migration_log, settings->timeout_ms);
    b->threads = mk_thread_pool_new(w, settings->threads, settings->threads);
    b->slots = mk_mem_zalloc(settings->threads, sizeof *b->slots);
    if (!b->threads || !b->slots)
        return -ENOMEM;
    for (unsigned i = 0; i < settings->threads; i++) {
        b->slots[i].pool = b;
        b->slots[i].session.settings = settings;
        release_slot(&b->slots[i]);
    }
    return settings->migrations ? check_migrations(b) : 0;
}

void sqlite_pool_close(struct sqlite_pool *b)
{
    b->is_closing = true;
    for (unsigned i = 0; b->slots && i < b->settings->threads; i++)
        atomic_store(&b->slots[i].session.is_closing, true);
    mk_thread_pool_free(b->threads);
    package_migration_log_stop(&b->migration_log);
    for (unsigned i = 0; b->slots && i < b->settings->threads; i++) {
        sqlite_session_close(&b->slots[i].session);
        duda_sql_rows_free(&b->slots[i].session.rows);
    }
    mk_mem_free(b->slots);
}

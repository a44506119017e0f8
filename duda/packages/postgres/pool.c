/* SPDX-License-Identifier: Apache-2.0 */
/* A statement is sent over the connection with the fewest statements in flight. A transaction has a
 * connection to itself. */
#include "pool.h"

#include <duda/memory.h>
#include <duda/wait.h>
#include <errno.h>
#include <monkey/mem.h>
#include <stdio.h>

#include "common/package.h"
#include "conn_use.h"
#include "result.h"

enum { CANCEL_AFTER_MS = 100, DEPTH_MAX = 64 };

/* ---- Choice of a connection ---- */

/* Returns NULL if no connection is up, or all are busy. */
static struct postgres_conn *find_available_conn(const struct postgres_pool *b, size_t depth)
{
    struct postgres_conn *best = NULL;
    for (unsigned i = 0; i < b->settings->connections; i++) {
        struct postgres_conn *c = &b->conns[i];
        if (postgres_conn_can_send(c) && c->base.sent.n <= depth &&
            (!best || c->base.sent.n < best->base.sent.n))
            best = c;
    }
    return best;
}

/* Returns the first connection that is down and may be opened; NULL if there is none. */
static struct postgres_conn *find_closed_conn(const struct postgres_pool *b)
{
    for (unsigned i = 0; i < b->settings->connections; i++) {
        struct postgres_conn *c = &b->conns[i];
        if (!postgres_conn_is_reserved(c) &&
            package_conn_is_in_state(&c->base, PACKAGE_CONN_DOWN)) /* reserved: its transaction is lost */
            return c;
    }
    return NULL;
}

static void open_conn(struct postgres_pool *b, struct postgres_conn *c)
{
    package_conn_open(&c->base);
    if (b->settings->migrations)
        package_migration_log_start(&b->migration_log);
}

/* Opens up to n connections. Returns the time of the next attempt, or 0 if none is scheduled. If an attempt
 * fails at once and no connection is up, the waiting statements fail. */
static uint64_t open_connections(struct postgres_pool *b, unsigned n)
{
    struct postgres_conn *c;
    while (n-- && (c = find_closed_conn(b))) {
        open_conn(b, c);
        if (package_conn_is_in_state(&c->base, PACKAGE_CONN_DOWN))
            return c->base.retry_ms;
    }
    return 0;
}

static uint64_t min_time(uint64_t a, uint64_t b)
{
    return !a || (b && b < a) ? b : a;
}

static void set_pool_timer(struct postgres_pool *b)
{
    uint64_t now = mk_worker_now_ms(b->worker);
    uint64_t due = min_time(b->retry_ms, b->cancel_ms);
    due = min_time(due, b->waiting.first ? b->waiting.first->due_ms : 0);
    if (due)
        mk_timer_set(&b->timer, b->worker, due > now ? (uint32_t)(due - now) : 1);
}

/* Schedules cancel requests for abandoned statements. The delay avoids requests for statements that end soon,
 * which most of them do. */
static void schedule_cancel(struct postgres_pool *b)
{
    bool needed = false;
    for (unsigned i = 0; i < b->settings->connections; i++)
        needed = needed || postgres_conn_has_abandoned(&b->conns[i]);
    if (!needed || b->cancel_ms)
        return;
    b->cancel_ms = mk_worker_now_ms(b->worker) + CANCEL_AFTER_MS;
    set_pool_timer(b);
}

/* Sends the waiting statements. Returns how many more connections would help: one for each statement that did
 * not find an idle connection. */
static unsigned send_waiting_queries(struct postgres_pool *b)
{
    unsigned n_more = 0;
    while (b->waiting.first) {
        struct postgres_conn *c = find_available_conn(b, DEPTH_MAX);
        n_more += !c || c->base.sent.first;
        if (!c)
            break;
        struct postgres_query *job = (struct postgres_query *)package_request_queue_pop(&b->waiting);
        if (job->is_abandoned) {
            postgres_query_free(job);
            continue;
        }
        if (b->waiting.first)
            postgres_conn_cork(c);
        postgres_conn_send(c, job);
    }
    return n_more;
}

/* Gives idle connections to the waiting transactions. Returns how many more connections would help. */
static unsigned assign_transactions(struct postgres_pool *b)
{
    while (b->waiting_transactions.n) {
        struct postgres_conn *c = find_available_conn(b, 0);
        if (!c)
            return 1;
        if (package_wait_queue_hand_over(&b->waiting_transactions, c))
            postgres_conn_reserve(c);
    }
    return 0;
}

static void on_deferred(void *ctx)
{
    struct postgres_pool *b = ctx;
    if (!b->is_checked)
        open_conn(b, &b->conns[0]);
    b->is_checked = true;
    unsigned n_more = assign_transactions(b); /* first, because they need an idle connection */
    n_more += send_waiting_queries(b);
    for (unsigned i = 0; i < b->settings->connections; i++)
        postgres_conn_flush(&b->conns[i]);
    b->retry_ms = open_connections(b, n_more);
    set_pool_timer(b);
}

/* ---- Connection events ---- */

static void on_conn_ready(struct postgres_conn *c)
{
    struct postgres_pool *b = c->owner;
    if (b->waiting.first || b->waiting_transactions.n)
        mk_deferred_post(b->deferred);
    if (postgres_conn_has_abandoned(c))
        schedule_cancel(b);
}

static void on_up(struct package_conn *conn)
{
    on_conn_ready((struct postgres_conn *)conn);
}

static bool is_any_conn_up(const struct postgres_pool *b)
{
    for (unsigned i = 0; i < b->settings->connections; i++)
        if (package_conn_is_ready(&b->conns[i].base))
            return true;
    return false;
}

/* If no connection is up and attempts fail, all waiting handlers get the error; the next request tries
 * again. */
static void on_down(struct package_conn *conn, int error)
{
    struct postgres_conn *c = (struct postgres_conn *)conn;
    struct postgres_pool *b = c->owner;
    struct package_request *r;
    if (is_any_conn_up(b) || !package_conn_is_failing(conn)) {
        on_conn_ready(c);
        return;
    }
    while ((r = package_request_queue_pop(&b->waiting)))
        postgres_conn_finish_request(conn, r, error, false);
    package_wait_queue_fail_all(&b->waiting_transactions, error);
}

static struct package_migration_state get_migration_state(void *ctx)
{
    const struct postgres_pool *b = ctx;
    struct package_migration_state state = {.since_ms = 0};
    for (unsigned i = 0; i < b->settings->connections && !state.running; i++)
        if (package_conn_is_in_state(&b->conns[i].base, PACKAGE_CONN_MIGRATING))
            state = (struct package_migration_state){b->conns[i].migrate.at, b->conns[i].base.since_ms};
    return state;
}

/* Returns whether no connection can be up yet, because the database is being migrated. */
static bool is_waiting_for_migration(struct postgres_pool *b)
{
    return get_migration_state(b).since_ms && !is_any_conn_up(b);
}

/* Migrations have no time limit. A handler waits for them until its own deadline. */
static void fail_overdue_queries(struct postgres_pool *b)
{
    uint64_t now = mk_worker_now_ms(b->worker);
    struct postgres_query *job;
    while ((job = (struct postgres_query *)package_request_queue_pop_due(&b->waiting, now))) {
        if (!job->is_abandoned && is_waiting_for_migration(b)) {
            job->request.due_ms = now + b->settings->timeout_ms;
            package_request_queue_push(&b->waiting, &job->request);
            continue;
        }
        postgres_query_fail(job, -ETIMEDOUT, b->settings->name, "no connection within Timeout");
        if (job->on_done)
            job->on_done(job->ctx, job);
        postgres_query_free(job);
    }
}

static void cancel_abandoned_queries(struct postgres_pool *b)
{
    if (!b->cancel_ms || b->cancel_ms > mk_worker_now_ms(b->worker))
        return;
    b->cancel_ms = 0;
    for (unsigned i = 0; i < b->settings->connections; i++)
        postgres_conn_cancel_abandoned(&b->conns[i]);
    schedule_cancel(b); /* retries statements that could not be cancelled */
}

static void on_timer(struct mk_timer *t)
{
    struct postgres_pool *b = MK_CONTAINER(t, struct postgres_pool, timer);
    cancel_abandoned_queries(b);
    fail_overdue_queries(b);
    on_deferred(b);
}

/* ---- Statements ---- */

/* A handler that waits for the last `left` of its `n` statements. */
struct waiting {
    struct duda_wait wait; /* must be first */
    struct postgres_pool *pool;
    struct pending_query *all;
    size_t n, left;
    int error; /* error of the first failed statement */
};

/* A statement that a handler waits for. */
struct pending_query {
    struct waiting *waiting;
    struct duda_sql_result *result;
    struct postgres_query *job; /* NULL: done */
    bool is_query;              /* see struct postgres_statement */
};

static int set_result_error(struct duda_ctx *d, const struct postgres_settings *settings,
                            struct duda_sql_result *result, int e, const char *message)
{
    result->error = duda_sprintf(d, "[POSTGRES] %.*s: %s", MK_STR_ARG(settings->name), message);
    return e;
}

static int store_query_result(const struct waiting *waiting, const struct postgres_query *job,
                              struct duda_sql_result *result)
{
    struct duda_ctx *d = waiting->wait.d;
    struct duda_sql_violation violation;
    *result = (struct duda_sql_result){0};
    if (job->error) {
        if (job->result && postgres_result_violation(job->result, &violation))
            duda_sql_set_violation(d, result, &violation);
        result->error = duda_strdup(d, mk_str_from_c(job->error_text));
        return job->error;
    }
    int e =
        job->result ? postgres_result_copy(job->result, waiting->pool->settings->result_max, d, result) : 0;
    if (!e)
        return 0;
    return set_result_error(d, waiting->pool->settings, result, e,
                            e == -EMSGSIZE ? "the result is longer than MaxResultSize" : strerror(-e));
}

static void on_query_done(void *ctx, const struct postgres_query *job)
{
    struct pending_query *a = ctx;
    struct waiting *waiting = a->waiting;
    int e = store_query_result(waiting, job, a->result);
    waiting->error = waiting->error ? waiting->error : e;
    a->job = NULL;
    if (--waiting->left == 0)
        duda_wait_wake(&waiting->wait);
}

/* Detaches the unfinished statements from the handler, and schedules cancel requests for them. */
static void abandon_queries(struct duda_wait *w)
{
    const struct waiting *waiting = (struct waiting *)w;
    if (!waiting->left)
        return;
    for (size_t i = 0; i < waiting->n; i++)
        if (waiting->all[i].job) {
            waiting->all[i].job->on_done = NULL;
            waiting->all[i].job->is_abandoned = true;
        }
    schedule_cancel(waiting->pool);
}

/* Sends the query over `conn`; if `conn` is NULL, queues it for the first available connection. */
static void enqueue_query(struct postgres_pool *b, struct postgres_conn *conn, struct postgres_query *job)
{
    if (conn) {
        postgres_conn_send(conn, job);
        return;
    }
    job->request.due_ms = mk_worker_now_ms(b->worker) + b->settings->timeout_ms;
    package_request_queue_push(&b->waiting, &job->request);
}

static int create_queries(struct pending_query *all, const struct duda_sql_statement *queries, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct duda_sql_statement *q = &queries[i];
        struct postgres_query *job = postgres_query_new(mk_str_from_c(q->text), q->parameters, q->n);
        if (!job) {
            while (i--)
                postgres_query_free(all[i].job);
            return -ENOMEM;
        }
        job->is_query = all[i].is_query;
        job->on_done = on_query_done;
        job->ctx = &all[i];
        all[i].job = job;
    }
    return 0;
}

static void send_queries(struct waiting *waiting, struct postgres_pool *b, struct postgres_conn *conn,
                         struct duda_sql_result *results, size_t n)
{
    if (conn && n > 1)
        postgres_conn_cork(conn);
    waiting->n = waiting->left = n;
    for (size_t i = 0; i < n; i++) {
        waiting->all[i].waiting = waiting;
        waiting->all[i].result = &results[i];
        enqueue_query(b, conn, waiting->all[i].job);
    }
    mk_deferred_post(b->deferred);
}

static size_t free_queue_slots(const struct postgres_pool *b)
{
    size_t n = b->waiting.n + b->waiting_transactions.n, max = b->settings->waiting_max;
    return n < max ? max - n : 0;
}

static int run_queries(struct duda_ctx *d, struct postgres_pool *b, struct postgres_conn *conn,
                       struct pending_query *all, const struct duda_sql_statement *queries, size_t n,
                       struct duda_sql_result *results)
{
    struct waiting waiting = {.pool = b, .all = all};
    if (conn && package_conn_is_in_state(&conn->base, PACKAGE_CONN_EXCLUSIVE))
        return set_result_error(d, b->settings, results, -EALREADY, "a COPY is in progress");
    if (conn && !package_conn_is_in_state(&conn->base, PACKAGE_CONN_READY))
        return set_result_error(d, b->settings, results, -ECONNRESET,
                                "the connection was lost, and so was the transaction");
    if (!conn && n > free_queue_slots(b))
        return set_result_error(d, b->settings, results, -EBUSY, "more than MaxQueue statements wait");
    int e = duda_wait_begin(d, &waiting.wait, abandon_queries);
    if (e)
        return e;
    e = create_queries(all, queries, n);
    if (e) {
        set_result_error(d, b->settings, results, e, "out of memory");
    } else {
        send_queries(&waiting, b, conn, results, n);
        e = duda_wait_suspend(&waiting.wait);
    }
    duda_wait_end(&waiting.wait);
    return e ? e : waiting.error;
}

/* Handlers share connections, so a statement that changes the session is allowed only in a transaction, whose
 * connection is closed at its end. */
static int check_statement(struct duda_ctx *d, const struct postgres_pool *b, struct postgres_conn *conn,
                           const struct duda_sql_statement *query, struct duda_sql_result *result,
                           struct pending_query *pending)
{
    struct postgres_statement s = postgres_statement_classify(mk_str_from_c(query->text));
    const char *message = NULL;
    pending->is_query = s.is_query;
    if (s.is_empty)
        return set_result_error(d, b->settings, result, -EINVAL, "expected one statement");
    if (s.copies)
        message = "the statement is a COPY: use duda_postgres_copy()";
    else if (s.controls_transaction)
        message = "use duda_sql_begin(), duda_sql_commit() and duda_sql_rollback() for transactions";
    else if (!conn && s.changes_session)
        message = "the statement would change a connection that all handlers share: run it in a transaction";
    else if (!conn && s.reads_session)
        message = "the statement reads state of one connection: use RETURNING, or a transaction";
    if (message)
        return set_result_error(d, b->settings, result, -EOPNOTSUPP, message);
    if (conn && s.changes_session)
        postgres_conn_retire(conn);
    return 0;
}

static int run_statement(struct duda_ctx *d, struct duda_sql_db *db, void *session,
                         struct duda_sql_result *result, const struct duda_sql_statement *query)
{
    struct postgres_pool *b = (struct postgres_pool *)db;
    struct pending_query pending;
    int e = check_statement(d, b, session, query, result, &pending);
    return e ? e : run_queries(d, b, session, &pending, query, 1, result);
}

static int run_batch(struct duda_ctx *d, struct duda_sql_db *db, void *session,
                     struct duda_sql_result *results, const struct duda_sql_statement *queries, size_t n)
{
    struct postgres_pool *b = (struct postgres_pool *)db;
    struct pending_query *all = duda_alloc(d, n * sizeof *all);
    int e = all ? 0 : set_result_error(d, b->settings, results, -ENOMEM, "out of memory");
    for (size_t i = 0; i < n && !e; i++)
        e = check_statement(d, b, session, &queries[i], &results[i], &all[i]);
    return e ? e : run_queries(d, b, session, all, queries, n, results);
}

/* ---- Transactions ---- */

static void end_transaction(struct duda_sql_db *db, void *session, bool over)
{
    struct postgres_pool *b = (struct postgres_pool *)db;
    struct postgres_conn *c = session;
    bool is_up = package_conn_is_in_state(&c->base, PACKAGE_CONN_READY),
         has_sent = is_up && c->base.sent.first;
    c->is_read_only = false;
    postgres_conn_release(c);
    if (has_sent) /* the handler was cancelled: the server must stop the statement */
        postgres_conn_cancel_running(c);
    if (has_sent || package_conn_is_in_state(&c->base, PACKAGE_CONN_EXCLUSIVE))
        package_conn_fail(&c->base, -ECANCELED, "a transaction was cancelled");
    else if (is_up && !over) {
        struct postgres_query *job = postgres_query_new(MK_STR("ROLLBACK"), NULL, 0);
        if (job)
            postgres_conn_send(c, job);
        else
            package_conn_fail(&c->base, -ENOMEM, "out of memory");
    }
    postgres_conn_on_idle(c);
    mk_deferred_post(b->deferred);
}

static int finish_transaction(struct duda_ctx *d, struct duda_sql_db *db, void *session,
                              struct duda_sql_result *result, bool commits)
{
    return postgres_pool_query(d, (struct postgres_pool *)db, session, result,
                               commits ? "COMMIT" : "ROLLBACK");
}

int postgres_pool_acquire(struct duda_ctx *d, struct postgres_pool *b, struct postgres_conn **out)
{
    void *conn = NULL;
    if (!free_queue_slots(b))
        return -EBUSY;
    mk_deferred_post(b->deferred);
    int e = package_wait_queue_wait(&b->waiting_transactions, d, &conn);
    *out = conn;
    return e;
}

const char *postgres_pool_error_text(const struct postgres_pool *b, int e)
{
    for (unsigned i = 0; i < b->settings->connections; i++)
        if (package_conn_is_failing(&b->conns[i].base))
            return package_conn_error_reason(&b->conns[i].base);
    return strerror(-e);
}

void postgres_pool_release(struct postgres_pool *b, struct postgres_conn *c)
{
    end_transaction(&b->sql, c, true);
}

static const char *begin_statement(const struct duda_sql_transaction_options *options)
{
    static const char *const texts[][2] = {
        [DUDA_SQL_DEFAULT_ISOLATION] = {"BEGIN", "BEGIN READ ONLY"},
        [DUDA_SQL_READ_COMMITTED] = {"BEGIN ISOLATION LEVEL READ COMMITTED",
                                     "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY"},
        [DUDA_SQL_REPEATABLE_READ] = {"BEGIN ISOLATION LEVEL REPEATABLE READ",
                                      "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"},
        [DUDA_SQL_SERIALIZABLE] = {"BEGIN ISOLATION LEVEL SERIALIZABLE",
                                   "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY"},
    };
    return (size_t)options->isolation < MK_LEN(texts) ? texts[options->isolation][options->read_only] : NULL;
}

static int begin_transaction(struct duda_ctx *d, struct duda_sql_db *db, struct duda_sql_result *result,
                             const struct duda_sql_transaction_options *options, void **session)
{
    struct postgres_pool *b = (struct postgres_pool *)db;
    const char *text = begin_statement(options);
    struct postgres_conn *c;
    if (!text)
        return set_result_error(d, b->settings, result, -EINVAL, "the isolation level is unknown");
    int e = postgres_pool_acquire(d, b, &c);
    if (e)
        return set_result_error(d, b->settings, result, e,
                                e == -EBUSY ? "more than MaxQueue statements wait"
                                            : postgres_pool_error_text(b, e));
    c->is_read_only = options->read_only;
    e = postgres_pool_query(d, b, c, result, text);
    if (e)
        end_transaction(db, c, false);
    else
        *session = c;
    return e;
}

/* ---- Cursors ---- */

enum { CURSOR_TEXT_MAX = 64 };

static int open_cursor(struct duda_ctx *d, struct duda_sql_db *db, void *session,
                       struct duda_sql_result *result, const struct duda_sql_statement *query,
                       uint64_t *cursor)
{
    uint64_t number = ++((struct postgres_pool *)db)->n_cursors;
    mk_str text = duda_sprintf(d, "DECLARE duda_cursor_%llu NO SCROLL CURSOR FOR %s",
                               (unsigned long long)number, query->text);
    if (!text.p)
        return -ENOMEM;
    int e = run_statement(d, db, session, result,
                          &(struct duda_sql_statement){text.p, query->parameters, query->n});
    *cursor = e ? 0 : number;
    return e;
}

static int fetch_rows(struct duda_ctx *d, struct duda_sql_db *db, void *session, uint64_t cursor, size_t n,
                      struct duda_sql_result *result)
{
    char text[CURSOR_TEXT_MAX];
    snprintf(text, sizeof text, "FETCH %zu FROM duda_cursor_%llu", n, (unsigned long long)cursor);
    return postgres_pool_query(d, (struct postgres_pool *)db, session, result, text);
}

static void close_cursor(struct duda_sql_db *db, void *session, uint64_t cursor)
{
    struct postgres_conn *c = session;
    char text[CURSOR_TEXT_MAX];
    snprintf(text, sizeof text, "CLOSE duda_cursor_%llu", (unsigned long long)cursor);
    if (package_conn_is_in_state(&c->base, PACKAGE_CONN_READY) && !c->base.sent.first)
        postgres_pool_send_detached((struct postgres_pool *)db, c,
                                    &(struct duda_sql_statement){.text = text});
}

int postgres_pool_query(struct duda_ctx *d, struct postgres_pool *b, struct postgres_conn *c,
                        struct duda_sql_result *result, const char *text)
{
    struct pending_query pending = {.is_query = postgres_statement_classify(mk_str_from_c(text)).is_query};
    return run_queries(d, b, c, &pending, &(struct duda_sql_statement){text, NULL, 0}, 1, result);
}

void postgres_pool_send_detached(struct postgres_pool *b, struct postgres_conn *conn,
                                 const struct duda_sql_statement *query)
{
    struct postgres_query *job = postgres_query_new(mk_str_from_c(query->text), query->parameters, query->n);
    if (!job)
        return;
    enqueue_query(b, conn, job);
    mk_deferred_post(b->deferred);
}

/* ---- Lifetime ---- */

static void on_resolved(void *ctx)
{
    struct postgres_pool *b = ctx;
    for (unsigned i = 0; i < b->settings->connections; i++)
        postgres_conn_on_resolved(&b->conns[i]);
    postgres_conn_on_resolved(&b->pubsub.conn);
}

static const struct duda_sql_ops ops = {.run_statement = run_statement,
                                        .run_batch = run_batch,
                                        .begin = begin_transaction,
                                        .finish = finish_transaction,
                                        .release = end_transaction,
                                        .open_cursor = open_cursor,
                                        .fetch = fetch_rows,
                                        .close_cursor = close_cursor,
                                        .has_arrays = true};

static const struct package_conn_ops package_ops = {.section = "POSTGRES",
                                                    .connect = postgres_conn_connect,
                                                    .close = postgres_conn_close,
                                                    .on_up = on_up,
                                                    .on_down = on_down,
                                                    .on_timeout = postgres_conn_on_timeout,
                                                    .finish = postgres_conn_finish_request};

int postgres_pool_open(struct postgres_pool *b, struct mk_worker *w, const struct postgres_settings *settings)
{
    b->sql = (struct duda_sql_db){.ops = &ops, .name = settings->name, .meter = package_meter(w, settings)};
    b->settings = settings;
    b->worker = w;
    package_wait_queue_init(&b->waiting_transactions);
    postgres_resolver_init(&b->hosts, w, &settings->host_list);
    b->hosts.on_resolved = on_resolved;
    b->hosts.ctx = b;
    b->deferred = mk_deferred_new(w, on_deferred, b);
    mk_timer_init(&b->timer, on_timer);
    b->migration_log = (struct package_migration_log){.worker = w,
                                                      .section = "POSTGRES",
                                                      .name = settings->name,
                                                      .service = settings->migrations_of,
                                                      .get_state = get_migration_state,
                                                      .ctx = b};
    package_migration_log_init(&b->migration_log, settings->timeout_ms);
    b->conns = mk_mem_zalloc(settings->connections, sizeof *b->conns);
    if (!b->deferred || !b->conns)
        return -ENOMEM;
    for (unsigned i = 0; i < settings->connections; i++) {
        struct postgres_conn *c = &b->conns[i];
        c->owner = b;
        c->on_statement_done = on_conn_ready;
        if (postgres_conn_init(c, w, settings, &b->hosts, &package_ops))
            return -ENOMEM;
    }
    b->is_checked = !settings->migrations;
    if (!b->is_checked) /* connects now, to report errors at startup instead of on the first request */
        mk_deferred_post(b->deferred);
    return postgres_pubsub_init(&b->pubsub, w, settings, &b->hosts);
}

struct postgres_pool *postgres_pool_from_sql(struct duda_sql_db *db)
{
    return db->ops == &ops ? (struct postgres_pool *)db : NULL;
}

void postgres_pool_close(struct postgres_pool *b)
{
    struct package_request *r;
    postgres_pubsub_fini(&b->pubsub);
    for (unsigned i = 0; b->conns && i < b->settings->connections; i++)
        postgres_conn_fini(&b->conns[i]);
    while ((r = package_request_queue_pop(&b->waiting)))
        postgres_query_free((struct postgres_query *)r);
    postgres_resolver_fini(&b->hosts);
    mk_mem_free(b->conns);
    mk_deferred_free(b->deferred);
    mk_timer_stop(&b->timer);
    package_migration_log_stop(&b->migration_log);
}

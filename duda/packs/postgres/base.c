/* SPDX-License-Identifier: Apache-2.0 */
/* Statements go to the connection with the fewest under way; a transaction has one for itself. */
#include "base.h"

#include <duda/memory.h>
#include <duda/wait.h>
#include <errno.h>
#include <monkey/mem.h>

#include "sections.h"
#include "values.h"

enum { TICK_MS = 100, DEPTH_MAX = 64 };

/* ---- Which connection ---- */

/* NULL: none is up, or all are busy. Opens another one if the best has something to do already. */
static struct postgres_conn *choose(struct postgres_base *b, unsigned depth)
{
    struct postgres_conn *best = NULL, *down = NULL;
    for (unsigned i = 0; i < b->settings->connections; i++) {
        struct postgres_conn *c = &b->conns[i];
        if (c->state == POSTGRES_DOWN &&
            !c->is_reserved) /* a transaction must not go on in another session */
            down = down ? down : c;
        else if (postgres_conn_is_open(c) && !c->is_reserved && c->n_sent <= depth &&
                 (!best || c->n_sent < best->n_sent))
            best = c;
    }
    if (down && (!best || best->n_sent))
        postgres_conn_open(down);
    return best;
}

static void tick_later(struct postgres_base *b)
{
    bool needed = b->waiting || b->wanting.n;
    for (unsigned i = 0; i < b->settings->connections; i++)
        needed = needed || b->conns[i].sent ||
                 (b->conns[i].state > POSTGRES_DOWN && b->conns[i].state < POSTGRES_UP);
    if (b->ticks || !needed)
        return;
    b->ticks = true;
    mk_alarm_set(b->alarm, TICK_MS);
}

static void send_waiting(struct postgres_base *b)
{
    struct postgres_conn *c;
    while (b->waiting && (c = choose(b, DEPTH_MAX))) {
        struct postgres_job *job = b->waiting;
        b->waiting = job->next;
        if (!b->waiting)
            b->last = &b->waiting;
        b->n_waiting--;
        if (job->is_abandoned) {
            postgres_job_free(job);
            continue;
        }
        if (b->waiting)
            postgres_conn_hold(c);
        postgres_conn_send(c, job);
    }
}

static void serve_transactions(struct postgres_base *b)
{
    struct postgres_conn *c;
    while (b->wanting.n && (c = choose(b, 0)))
        c->is_reserved = pack_waiters_give(&b->wanting, c);
}

static void on_turn(void *ctx)
{
    struct postgres_base *b = ctx;
    if (!b->is_checked)
        postgres_conn_open(&b->conns[0]);
    b->is_checked = true;
    serve_transactions(b); /* first: they need a connection that is idle */
    send_waiting(b);
    for (unsigned i = 0; i < b->settings->connections; i++)
        postgres_conn_flush(&b->conns[i]);
    tick_later(b);
}

/* ---- What connections say ---- */

static void go_on(struct postgres_conn *c)
{
    struct postgres_base *b = c->owner;
    if (b->waiting || b->wanting.n)
        mk_turn_end_set(b->turn);
}

static bool any_is_up(const struct postgres_base *b)
{
    for (unsigned i = 0; i < b->settings->connections; i++)
        if (b->conns[i].state >= POSTGRES_UP)
            return true;
    return false;
}

/* Without a database, those that wait learn why; the next one tries again. */
static void on_down(struct postgres_conn *c, int error)
{
    struct postgres_base *b = c->owner;
    if (any_is_up(b) || !c->is_reported) {
        go_on(c);
        return;
    }
    while (b->waiting) {
        struct postgres_job *job = b->waiting;
        b->waiting = job->next;
        b->n_waiting--;
        postgres_job_fail(job, error, b->settings->name, c->why);
        if (job->on_over)
            job->on_over(job->ctx, job);
        postgres_job_free(job);
    }
    b->last = &b->waiting;
    pack_waiters_fail(&b->wanting, error);
}

static void drop_overdue(struct postgres_base *b)
{
    uint64_t now = mk_worker_now_ms(b->worker);
    while (b->waiting && b->waiting->due_ms <= now) {
        struct postgres_job *job = b->waiting;
        b->waiting = job->next;
        if (!b->waiting)
            b->last = &b->waiting;
        b->n_waiting--;
        postgres_job_fail(job, -ETIMEDOUT, b->settings->name, "no connection within Timeout");
        if (job->on_over)
            job->on_over(job->ctx, job);
        postgres_job_free(job);
    }
}

static void on_tick(void *ctx)
{
    struct postgres_base *b = ctx;
    b->ticks = false;
    for (unsigned i = 0; i < b->settings->connections; i++)
        postgres_conn_check(&b->conns[i]);
    drop_overdue(b);
    on_turn(b);
}

/* ---- Statements ---- */

/* A handler that waits for `left` of its `n` statements. */
struct waiting {
    struct duda_wait wait; /* the first */
    const struct postgres_settings *settings;
    struct asked *all;
    size_t n, left;
    int error; /* of the first that failed */
};

/* One of them. */
struct asked {
    struct waiting *waiting;
    struct duda_sql_result *result;
    struct postgres_job *job; /* NULL: it is over */
};

static int refuse(struct duda *d, const struct postgres_settings *settings, struct duda_sql_result *result,
                  int e, const char *why)
{
    result->problem = duda_print(d, "[POSTGRES] %.*s: %s", MK_STR_ARG(settings->name), why);
    return e;
}

static int take(const struct waiting *waiting, const struct postgres_job *job, struct duda_sql_result *result)
{
    struct duda *d = waiting->wait.d;
    *result = (struct duda_sql_result){0};
    if (job->error) {
        result->problem = duda_copy(d, mk_str_from_c(job->problem));
        return job->error;
    }
    int e = job->result ? postgres_values_give(job->result, waiting->settings->result_max, d, result) : 0;
    if (!e)
        return 0;
    return refuse(d, waiting->settings, result, e,
                  e == -EMSGSIZE ? "the result is longer than MaxResult" : strerror(-e));
}

static void on_over(void *ctx, const struct postgres_job *job)
{
    struct asked *a = ctx;
    struct waiting *waiting = a->waiting;
    int e = take(waiting, job, a->result);
    waiting->error = waiting->error ? waiting->error : e;
    a->job = NULL;
    if (--waiting->left == 0)
        duda_wait_wake(&waiting->wait);
}

/* A statement that is not over then is of use to nobody. */
static void end_waiting(struct duda_wait *w)
{
    const struct waiting *waiting = (struct waiting *)w;
    for (size_t i = 0; i < waiting->n; i++)
        if (waiting->all[i].job) {
            waiting->all[i].job->on_over = NULL;
            waiting->all[i].job->is_abandoned = true;
        }
}

/* Gives the job to that connection, or to the first that can take it. */
static void enqueue(struct postgres_base *b, struct postgres_conn *conn, struct postgres_job *job)
{
    if (conn) {
        postgres_conn_send(conn, job);
        return;
    }
    job->due_ms = mk_worker_now_ms(b->worker) + b->settings->timeout_ms;
    job->next = NULL;
    *b->last = job;
    b->last = &job->next;
    b->n_waiting++;
}

static int make_jobs(struct asked *all, const struct duda_sql_query *queries, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct duda_sql_query *q = &queries[i];
        struct postgres_job *job = postgres_job_new(mk_str_from_c(q->text), q->parameters, q->n);
        if (!job) {
            while (i--)
                postgres_job_free(all[i].job);
            return -ENOMEM;
        }
        job->on_over = on_over;
        job->ctx = &all[i];
        all[i].job = job;
    }
    return 0;
}

static void send_all(struct waiting *waiting, struct postgres_base *b, struct postgres_conn *conn,
                     struct duda_sql_result *results, size_t n)
{
    if (conn && n > 1)
        postgres_conn_hold(conn);
    waiting->n = waiting->left = n;
    for (size_t i = 0; i < n; i++) {
        waiting->all[i].waiting = waiting;
        waiting->all[i].result = &results[i];
        enqueue(b, conn, waiting->all[i].job);
    }
    mk_turn_end_set(b->turn);
}

static size_t room_for_waiting(const struct postgres_base *b)
{
    unsigned n = b->n_waiting + b->wanting.n, max = b->settings->waiting_max;
    return n < max ? max - n : 0;
}

static int ask(struct duda *d, struct postgres_base *b, struct postgres_conn *conn, struct asked *all,
               const struct duda_sql_query *queries, size_t n, struct duda_sql_result *results)
{
    struct waiting waiting = {.settings = b->settings, .all = all};
    if (conn && conn->state == POSTGRES_COPYING)
        return refuse(d, b->settings, results, -EALREADY, "a COPY is under way");
    if (conn && conn->state != POSTGRES_UP)
        return refuse(d, b->settings, results, -ECONNRESET,
                      "the connection was lost, and the transaction with it");
    if (!conn && n > room_for_waiting(b))
        return refuse(d, b->settings, results, -EBUSY, "more than MaxWaiting statements wait");
    int e = duda_wait_begin(d, &waiting.wait, end_waiting);
    if (e)
        return e;
    e = make_jobs(all, queries, n);
    if (e) {
        refuse(d, b->settings, results, e, "out of memory");
    } else {
        send_all(&waiting, b, conn, results, n);
        e = duda_wait_suspend(&waiting.wait);
    }
    duda_wait_end(&waiting.wait);
    return e ? e : waiting.error;
}

/* All handlers share a connection, unless a transaction has it: then it is closed at the end, if it was
 * changed. */
static int check(struct duda *d, const struct postgres_base *b, struct postgres_conn *conn,
                 const struct duda_sql_query *query, struct duda_sql_result *result)
{
    struct postgres_statement s = postgres_statement_read(mk_str_from_c(query->text));
    const char *why = NULL;
    if (s.is_empty)
        return refuse(d, b->settings, result, -EINVAL, "expected one statement");
    if (s.copies)
        why = "this is a COPY, which duda_postgres_copy() does";
    else if (s.ends_transaction)
        why =
            "transactions begin with duda_sql_begin(), and end with duda_sql_commit() or duda_sql_rollback()";
    else if (!conn && s.changes_session)
        why = "this would change a connection that all handlers share: it belongs into a transaction";
    else if (!conn && s.reads_session)
        why = "this belongs to one connection: use RETURNING, or a transaction";
    if (why)
        return refuse(d, b->settings, result, -EOPNOTSUPP, why);
    if (conn)
        conn->is_changed = conn->is_changed || s.changes_session;
    return 0;
}

static int run(struct duda *d, struct duda_sql *db, void *session, struct duda_sql_result *result,
               const struct duda_sql_query *query)
{
    struct postgres_base *b = (struct postgres_base *)db;
    struct asked one;
    int e = check(d, b, session, query, result);
    return e ? e : ask(d, b, session, &one, query, 1, result);
}

static int many(struct duda *d, struct duda_sql *db, void *session, struct duda_sql_result *results,
                const struct duda_sql_query *queries, size_t n)
{
    struct postgres_base *b = (struct postgres_base *)db;
    struct asked *all = duda_alloc(d, n * sizeof *all);
    int e = all ? 0 : refuse(d, b->settings, results, -ENOMEM, "out of memory");
    for (size_t i = 0; i < n && !e; i++)
        e = check(d, b, session, &queries[i], &results[i]);
    return e ? e : ask(d, b, session, all, queries, n, results);
}

/* ---- Transactions ---- */

static void end(struct duda_sql *db, void *session, bool over)
{
    struct postgres_base *b = (struct postgres_base *)db;
    struct postgres_conn *c = session;
    c->is_reserved = false;
    if (c->state == POSTGRES_UP && c->sent) /* its handler was cancelled: the server must not go on with it */
        postgres_conn_stop_server(c);
    if (c->state == POSTGRES_COPYING || (c->state == POSTGRES_UP && c->sent))
        postgres_conn_fail(c, -ECANCELED, "a transaction was given up");
    else if (c->state == POSTGRES_UP && !over) {
        struct postgres_job *job = postgres_job_new(MK_STR("ROLLBACK"), NULL, 0);
        if (job)
            postgres_conn_send(c, job);
        else
            postgres_conn_fail(c, -ENOMEM, "out of memory");
    }
    postgres_conn_settle(c);
    mk_turn_end_set(b->turn);
}

static int finish(struct duda *d, struct duda_sql *db, void *session, struct duda_sql_result *result,
                  bool commits)
{
    return postgres_base_run(d, (struct postgres_base *)db, session, result, commits ? "COMMIT" : "ROLLBACK");
}

int postgres_base_take(struct duda *d, struct postgres_base *b, struct postgres_conn **out)
{
    void *conn = NULL;
    if (!room_for_waiting(b))
        return -EBUSY;
    mk_turn_end_set(b->turn);
    int e = pack_waiters_wait(&b->wanting, d, &conn);
    *out = conn;
    return e;
}

const char *postgres_base_why(const struct postgres_base *b, int e)
{
    for (unsigned i = 0; i < b->settings->connections; i++)
        if (b->conns[i].is_reported)
            return b->conns[i].why;
    return strerror(-e);
}

void postgres_base_give(struct postgres_base *b, struct postgres_conn *c)
{
    end(&b->sql, c, true);
}

static int begin(struct duda *d, struct duda_sql *db, struct duda_sql_result *result, void **session)
{
    struct postgres_base *b = (struct postgres_base *)db;
    struct postgres_conn *c;
    int e = postgres_base_take(d, b, &c);
    if (e)
        return refuse(d, b->settings, result, e,
                      e == -EBUSY ? "more than MaxWaiting statements wait" : postgres_base_why(b, e));
    e = postgres_base_run(d, b, c, result, "BEGIN");
    if (e)
        end(db, c, false);
    else
        *session = c;
    return e;
}

int postgres_base_run(struct duda *d, struct postgres_base *b, struct postgres_conn *c,
                      struct duda_sql_result *result, const char *text)
{
    struct asked one;
    return ask(d, b, c, &one, &(struct duda_sql_query){text, NULL, 0}, 1, result);
}

void postgres_base_send(struct postgres_base *b, struct postgres_conn *conn,
                        const struct duda_sql_query *query)
{
    struct postgres_job *job = postgres_job_new(mk_str_from_c(query->text), query->parameters, query->n);
    if (!job)
        return;
    enqueue(b, conn, job);
    mk_turn_end_set(b->turn);
}

/* ---- Its life ---- */

static void on_found(void *ctx)
{
    struct postgres_base *b = ctx;
    for (unsigned i = 0; i < b->settings->connections; i++)
        postgres_conn_found(&b->conns[i]);
    postgres_conn_found(&b->hub.conn);
}

static const struct duda_sql_ops ops = {
    .run = run, .many = many, .begin = begin, .finish = finish, .end = end};

int postgres_base_open(struct postgres_base *b, struct mk_worker *w, const struct postgres_settings *settings)
{
    b->sql = (struct duda_sql){.ops = &ops, .name = settings->name, .meter = pack_meter(w, settings)};
    b->settings = settings;
    b->worker = w;
    b->last = &b->waiting;
    pack_waiters_init(&b->wanting);
    postgres_hosts_init(&b->hosts, w, &settings->places);
    b->hosts.on_found = on_found;
    b->hosts.ctx = b;
    b->turn = mk_turn_end_new(w, on_turn, b);
    b->alarm = mk_alarm_new(w, on_tick, b);
    b->conns = mk_mem_zalloc(settings->connections, sizeof *b->conns);
    if (!b->turn || !b->alarm || !b->conns)
        return -ENOMEM;
    for (unsigned i = 0; i < settings->connections; i++) {
        struct postgres_conn *c = &b->conns[i];
        postgres_conn_init(c, w, settings, &b->hosts);
        c->owner = b;
        c->on_up = c->on_free = go_on;
        c->on_down = on_down;
    }
    b->is_checked = !settings->migrations;
    if (!b->is_checked) /* mistakes are told at the start, not by the first request */
        mk_turn_end_set(b->turn);
    return postgres_hub_init(&b->hub, w, settings, &b->hosts);
}

struct postgres_base *postgres_base_of(struct duda_sql *db)
{
    return db->ops == &ops ? (struct postgres_base *)db : NULL;
}

void postgres_base_close(struct postgres_base *b)
{
    postgres_hub_fini(&b->hub);
    for (unsigned i = 0; b->conns && i < b->settings->connections; i++)
        postgres_conn_fini(&b->conns[i]);
    for (struct postgres_job *job = b->waiting, *next; job; job = next) {
        next = job->next;
        postgres_job_free(job);
    }
    postgres_hosts_fini(&b->hosts);
    mk_mem_free(b->conns);
    mk_turn_end_free(b->turn);
    mk_alarm_free(b->alarm);
}

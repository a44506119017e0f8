/* SPDX-License-Identifier: Apache-2.0 */
/* Statements go to the connection with the fewest under way; a transaction has one for itself. */
#include "base.h"

#include <duda/memory.h>
#include <duda/wait.h>
#include <errno.h>
#include <monkey/mem.h>

#include "sections.h"

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
        else if (c->state == POSTGRES_UP && !c->is_reserved && c->n_sent <= depth &&
                 (!best || c->n_sent < best->n_sent))
            best = c;
    }
    if (down && (!best || best->n_sent))
        postgres_conn_open(down);
    return best;
}

static void tick_later(struct postgres_base *b)
{
    bool needed = b->waiting || b->wanting;
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
        postgres_conn_send(c, job);
    }
}

static void serve_transactions(struct postgres_base *b)
{
    struct postgres_conn *c;
    while (b->wanting && (c = choose(b, 0))) {
        struct postgres_waiter *w = b->wanting;
        b->wanting = w->next;
        if (!b->wanting)
            b->wanting_last = &b->wanting;
        b->n_waiting--;
        c->is_reserved = true;
        w->conn = c;
        w->is_over = true;
        duda_wake(w->d);
    }
}

static void on_turn(void *ctx)
{
    struct postgres_base *b = ctx;
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
    if (b->waiting || b->wanting)
        mk_turn_end_set(b->turn);
}

static bool any_is_up(const struct postgres_base *b)
{
    for (unsigned i = 0; i < b->settings->connections; i++)
        if (b->conns[i].state == POSTGRES_UP)
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
        duda_sql_rows_fail(&job->rows, error, "POSTGRES", b->settings->name, c->why);
        if (job->on_over)
            job->on_over(job->ctx, &job->rows);
        postgres_job_free(job);
    }
    b->last = &b->waiting;
    for (struct postgres_waiter *w = b->wanting; w; w = w->next) {
        w->is_over = true;
        duda_wake(w->d);
        b->n_waiting--;
    }
    b->wanting = NULL;
    b->wanting_last = &b->wanting;
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
        duda_sql_rows_fail(&job->rows, -ETIMEDOUT, "POSTGRES", b->settings->name,
                           "no connection within Timeout");
        if (job->on_over)
            job->on_over(job->ctx, &job->rows);
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

/* On the stack of the handler, as long as it waits. */
struct wait {
    struct duda *d;
    struct duda_sql_result *result;
    bool is_over;
    int error;
};

static void on_over(void *ctx, struct duda_sql_rows *rows)
{
    struct wait *wait = ctx;
    wait->error = duda_sql_rows_give(rows, wait->d, wait->result);
    wait->is_over = true;
    duda_wake(wait->d);
}

static int refuse(struct duda *d, const struct postgres_base *b, struct duda_sql_result *result, int e,
                  const char *why)
{
    result->problem = duda_print(d, "[POSTGRES] %.*s: %s", MK_STR_ARG(b->settings->name), why);
    return e;
}

/* Gives the job to that connection, or to the first that can take it. 0, -EBUSY. */
static int enqueue(struct postgres_base *b, struct postgres_conn *conn, struct postgres_job *job)
{
    if (conn) {
        postgres_conn_send(conn, job);
    } else {
        if (b->n_waiting >= b->settings->waiting_max)
            return -EBUSY;
        job->due_ms = mk_worker_now_ms(b->worker) + b->settings->timeout_ms;
        job->next = NULL;
        *b->last = job;
        b->last = &job->next;
        b->n_waiting++;
    }
    mk_turn_end_set(b->turn);
    return 0;
}

static int run(struct duda *d, struct duda_sql *db, void *session, struct duda_sql_result *result,
               mk_str text, const struct duda_sql_value *values, size_t n)
{
    struct postgres_base *b = (struct postgres_base *)db;
    struct postgres_conn *conn = session;
    struct wait wait = {.d = d, .result = result};
    if (conn && conn->state != POSTGRES_UP)
        return refuse(d, b, result, -ECONNRESET, "the connection was lost, and the transaction with it");
    struct postgres_job *job = postgres_job_new(text, values, n);
    if (!job)
        return refuse(d, b, result, -ENOMEM, "out of memory");
    job->on_over = on_over;
    job->ctx = &wait;
    int e = enqueue(b, conn, job);
    if (e) {
        postgres_job_free(job);
        return refuse(d, b, result, e, "more than MaxWaiting statements wait");
    }
    while (!wait.is_over && !(e = duda_suspend(d)))
        continue;
    if (wait.is_over)
        return wait.error;
    job->on_over = NULL;
    return e;
}

/* ---- Transactions ---- */

static void stop_waiting(struct postgres_base *b, struct postgres_waiter *w)
{
    struct postgres_waiter **at = &b->wanting;
    if (w->is_over)
        return;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    if (b->wanting_last == &w->next)
        b->wanting_last = at;
    b->n_waiting--;
}

static void end(struct duda_sql *db, void *session, bool over)
{
    struct postgres_base *b = (struct postgres_base *)db;
    struct postgres_conn *c = session;
    c->is_reserved = false;
    if (c->state == POSTGRES_UP && c->sent) /* its handler was cancelled: the server must not go on with it */
        postgres_conn_fail(c, -ECANCELED, "a transaction was given up");
    else if (c->state == POSTGRES_UP && !over) {
        struct postgres_job *job = postgres_job_new(MK_STR("ROLLBACK"), NULL, 0);
        if (job)
            postgres_conn_send(c, job);
        else
            postgres_conn_fail(c, -ENOMEM, "out of memory");
    }
    mk_turn_end_set(b->turn);
}

static int begin(struct duda *d, struct duda_sql *db, struct duda_sql_result *result, void **session)
{
    struct postgres_base *b = (struct postgres_base *)db;
    struct postgres_waiter w = {.d = d};
    int e = 0;
    if (b->n_waiting >= b->settings->waiting_max)
        return -EBUSY;
    *b->wanting_last = &w;
    b->wanting_last = &w.next;
    b->n_waiting++;
    mk_turn_end_set(b->turn);
    while (!w.is_over && !e)
        e = duda_suspend(d);
    stop_waiting(b, &w);
    if (!w.conn)
        return e ? e : -ECONNREFUSED;
    e = e ? e : run(d, db, w.conn, result, MK_STR("BEGIN"), NULL, 0);
    if (e)
        end(db, w.conn, false);
    else
        *session = w.conn;
    return e;
}

/* ---- Its life ---- */

static const struct duda_sql_ops ops = {run, begin, end};

int postgres_base_open(struct postgres_base *b, struct mk_worker *w, const struct postgres_settings *settings)
{
    b->sql = (struct duda_sql){.ops = &ops, .name = settings->name, .meter = pack_meter(w, settings)};
    b->settings = settings;
    b->worker = w;
    b->last = &b->waiting;
    b->wanting_last = &b->wanting;
    b->turn = mk_turn_end_new(w, on_turn, b);
    b->alarm = mk_alarm_new(w, on_tick, b);
    b->conns = mk_mem_zalloc(settings->connections, sizeof *b->conns);
    if (!b->turn || !b->alarm || !b->conns)
        return -ENOMEM;
    for (unsigned i = 0; i < settings->connections; i++) {
        struct postgres_conn *c = &b->conns[i];
        postgres_conn_init(c, w, settings);
        c->owner = b;
        c->on_up = c->on_free = go_on;
        c->on_down = on_down;
    }
    return 0;
}

void postgres_base_close(struct postgres_base *b)
{
    for (unsigned i = 0; b->conns && i < b->settings->connections; i++)
        postgres_conn_fini(&b->conns[i]);
    for (struct postgres_job *job = b->waiting, *next; job; job = next) {
        next = job->next;
        postgres_job_free(job);
    }
    mk_mem_free(b->conns);
    mk_turn_end_free(b->turn);
    mk_alarm_free(b->alarm);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Statements go to the connection with the fewest under way; a transaction has one for itself. */
#include "base.h"

#include <duda/memory.h>
#include <duda/wait.h>
#include <errno.h>
#include <monkey/mem.h>

#include "sections.h"
#include "values.h"

enum { CANCEL_AFTER_MS = 100, DEPTH_MAX = 64 };

/* ---- Which connection ---- */

/* NULL: none is up, or all are busy. */
static struct postgres_conn *choose(const struct postgres_base *b, size_t depth)
{
    struct postgres_conn *best = NULL;
    for (unsigned i = 0; i < b->settings->connections; i++) {
        struct postgres_conn *c = &b->conns[i];
        if (postgres_conn_is_open(c) && !c->is_reserved && c->link.sent.n <= depth &&
            (!best || c->link.sent.n < best->link.sent.n))
            best = c;
    }
    return best;
}

/* The first one that is down and may be opened; NULL: there is none. */
static struct postgres_conn *find_closed(const struct postgres_base *b)
{
    for (unsigned i = 0; i < b->settings->connections; i++) {
        struct postgres_conn *c = &b->conns[i];
        if (!c->is_reserved &&
            pack_link_is(&c->link, PACK_LINK_DOWN)) /* a transaction stays in its session */
            return c;
    }
    return NULL;
}

/* Opens up to n connections. Returns the time of the next attempt; 0: no attempt is due. If an attempt fails at once and
 * no connection is up, the waiting statements fail. */
static uint64_t open_more(struct postgres_base *b, unsigned n)
{
    struct postgres_conn *c;
    while (n-- && (c = find_closed(b))) {
        pack_link_open(&c->link);
        if (pack_link_is(&c->link, PACK_LINK_DOWN))
            return c->link.retry_ms;
    }
    return 0;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return !a || (b && b < a) ? b : a;
}

static void set_timer(struct postgres_base *b)
{
    uint64_t now = mk_worker_now_ms(b->worker);
    uint64_t due = earlier(b->retry_ms, b->cancel_ms);
    due = earlier(due, b->waiting.first ? b->waiting.first->due_ms : 0);
    if (due)
        mk_timer_set(&b->timer, b->worker, due > now ? (uint32_t)(due - now) : 1);
}

/* Most statements are over soon: the server is asked to stop those that are not. */
static void cancel_later(struct postgres_base *b)
{
    bool needed = false;
    for (unsigned i = 0; i < b->settings->connections; i++)
        needed = needed || postgres_conn_has_abandoned(&b->conns[i]);
    if (!needed || b->cancel_ms)
        return;
    b->cancel_ms = mk_worker_now_ms(b->worker) + CANCEL_AFTER_MS;
    set_timer(b);
}

/* Answers how many more connections would be of use: one for each statement that finds none idle. */
static unsigned send_waiting(struct postgres_base *b)
{
    unsigned n_more = 0;
    while (b->waiting.first) {
        struct postgres_conn *c = choose(b, DEPTH_MAX);
        n_more += !c || c->link.sent.first;
        if (!c)
            break;
        struct postgres_job *job = (struct postgres_job *)pack_requests_pop(&b->waiting);
        if (job->is_abandoned) {
            postgres_job_free(job);
            continue;
        }
        if (b->waiting.first)
            postgres_conn_hold(c);
        postgres_conn_send(c, job);
    }
    return n_more;
}

/* As above. */
static unsigned serve_transactions(struct postgres_base *b)
{
    while (b->wanting.n) {
        struct postgres_conn *c = choose(b, 0);
        if (!c)
            return 1;
        c->is_reserved = pack_waiters_give(&b->wanting, c);
    }
    return 0;
}

static void on_turn(void *ctx)
{
    struct postgres_base *b = ctx;
    if (!b->is_checked)
        pack_link_open(&b->conns[0].link);
    b->is_checked = true;
    unsigned n_more = serve_transactions(b); /* first: they need a connection that is idle */
    n_more += send_waiting(b);
    for (unsigned i = 0; i < b->settings->connections; i++)
        postgres_conn_flush(&b->conns[i]);
    b->retry_ms = open_more(b, n_more);
    set_timer(b);
}

/* ---- What connections say ---- */

static void go_on(struct postgres_conn *c)
{
    struct postgres_base *b = c->owner;
    if (b->waiting.first || b->wanting.n)
        mk_turn_end_set(b->turn);
    if (postgres_conn_has_abandoned(c))
        cancel_later(b);
}

static void on_up(struct pack_link *l)
{
    go_on((struct postgres_conn *)l);
}

static bool any_is_up(const struct postgres_base *b)
{
    for (unsigned i = 0; i < b->settings->connections; i++)
        if (pack_link_is_up(&b->conns[i].link))
            return true;
    return false;
}

/* Without a database, those that wait learn why; the next one tries again. */
static void on_down(struct pack_link *l, int error)
{
    struct postgres_conn *c = (struct postgres_conn *)l;
    struct postgres_base *b = c->owner;
    struct pack_request *r;
    if (any_is_up(b) || !pack_link_is_failing(l)) {
        go_on(c);
        return;
    }
    while ((r = pack_requests_pop(&b->waiting)))
        postgres_conn_finish(l, r, error, false);
    pack_waiters_fail(&b->wanting, error);
}

static void drop_overdue(struct postgres_base *b)
{
    uint64_t now = mk_worker_now_ms(b->worker);
    struct postgres_job *job;
    while ((job = (struct postgres_job *)pack_requests_pop_due(&b->waiting, now))) {
        postgres_job_fail(job, -ETIMEDOUT, b->settings->name, "no connection within Timeout");
        if (job->on_over)
            job->on_over(job->ctx, job);
        postgres_job_free(job);
    }
}

static void cancel_abandoned(struct postgres_base *b)
{
    if (!b->cancel_ms || b->cancel_ms > mk_worker_now_ms(b->worker))
        return;
    b->cancel_ms = 0;
    for (unsigned i = 0; i < b->settings->connections; i++)
        postgres_conn_cancel_abandoned(&b->conns[i]);
    cancel_later(b); /* if it was not possible */
}

static void on_due(struct mk_timer *t)
{
    struct postgres_base *b = MK_CONTAINER(t, struct postgres_base, timer);
    cancel_abandoned(b);
    drop_overdue(b);
    on_turn(b);
}

/* ---- Statements ---- */

/* A handler that waits for `left` of its `n` statements. */
struct waiting {
    struct duda_wait wait; /* the first */
    struct postgres_base *base;
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
    int e =
        job->result ? postgres_values_give(job->result, waiting->base->settings->result_max, d, result) : 0;
    if (!e)
        return 0;
    return refuse(d, waiting->base->settings, result, e,
                  e == -EMSGSIZE ? "the result is longer than MaxResultSize" : strerror(-e));
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
    cancel_later(waiting->base);
}

/* Gives the job to that connection, or to the first that can take it. */
static void enqueue(struct postgres_base *b, struct postgres_conn *conn, struct postgres_job *job)
{
    if (conn) {
        postgres_conn_send(conn, job);
        return;
    }
    job->request.due_ms = mk_worker_now_ms(b->worker) + b->settings->timeout_ms;
    pack_requests_push(&b->waiting, &job->request);
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
    size_t n = b->waiting.n + b->wanting.n, max = b->settings->waiting_max;
    return n < max ? max - n : 0;
}

static int ask(struct duda *d, struct postgres_base *b, struct postgres_conn *conn, struct asked *all,
               const struct duda_sql_query *queries, size_t n, struct duda_sql_result *results)
{
    struct waiting waiting = {.base = b, .all = all};
    if (conn && pack_link_is(&conn->link, PACK_LINK_EXCLUSIVE))
        return refuse(d, b->settings, results, -EALREADY, "a COPY is under way");
    if (conn && !pack_link_is(&conn->link, PACK_LINK_UP))
        return refuse(d, b->settings, results, -ECONNRESET,
                      "the connection was lost, and the transaction with it");
    if (!conn && n > room_for_waiting(b))
        return refuse(d, b->settings, results, -EBUSY, "more than MaxQueue statements wait");
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
    bool is_up = pack_link_is(&c->link, PACK_LINK_UP), has_sent = is_up && c->link.sent.first;
    c->is_reserved = false;
    if (has_sent) /* its handler was cancelled: the server must not go on with it */
        postgres_conn_stop_server(c);
    if (has_sent || pack_link_is(&c->link, PACK_LINK_EXCLUSIVE))
        pack_link_fail(&c->link, -ECANCELED, "a transaction was given up");
    else if (is_up && !over) {
        struct postgres_job *job = postgres_job_new(MK_STR("ROLLBACK"), NULL, 0);
        if (job)
            postgres_conn_send(c, job);
        else
            pack_link_fail(&c->link, -ENOMEM, "out of memory");
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
        if (pack_link_is_failing(&b->conns[i].link))
            return pack_link_reason(&b->conns[i].link);
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
                      e == -EBUSY ? "more than MaxQueue statements wait" : postgres_base_why(b, e));
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

static const struct pack_link_ops link_ops = {.section = "POSTGRES",
                                              .connect = postgres_conn_connect,
                                              .close = postgres_conn_close,
                                              .on_up = on_up,
                                              .on_down = on_down,
                                              .on_late = postgres_conn_on_late,
                                              .finish = postgres_conn_finish};

int postgres_base_open(struct postgres_base *b, struct mk_worker *w, const struct postgres_settings *settings)
{
    b->sql = (struct duda_sql){.ops = &ops, .name = settings->name, .meter = pack_meter(w, settings)};
    b->settings = settings;
    b->worker = w;
    pack_waiters_init(&b->wanting);
    postgres_hosts_init(&b->hosts, w, &settings->places);
    b->hosts.on_found = on_found;
    b->hosts.ctx = b;
    b->turn = mk_turn_end_new(w, on_turn, b);
    mk_timer_init(&b->timer, on_due);
    b->conns = mk_mem_zalloc(settings->connections, sizeof *b->conns);
    if (!b->turn || !b->conns)
        return -ENOMEM;
    for (unsigned i = 0; i < settings->connections; i++) {
        struct postgres_conn *c = &b->conns[i];
        c->owner = b;
        c->on_free = go_on;
        if (postgres_conn_init(c, w, settings, &b->hosts, &link_ops))
            return -ENOMEM;
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
    struct pack_request *r;
    postgres_hub_fini(&b->hub);
    for (unsigned i = 0; b->conns && i < b->settings->connections; i++)
        postgres_conn_fini(&b->conns[i]);
    while ((r = pack_requests_pop(&b->waiting)))
        postgres_job_free((struct postgres_job *)r);
    postgres_hosts_fini(&b->hosts);
    mk_mem_free(b->conns);
    mk_turn_end_free(b->turn);
    mk_timer_stop(&b->timer);
}

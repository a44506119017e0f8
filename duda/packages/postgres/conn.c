/* SPDX-License-Identifier: Apache-2.0 */
/* Non-blocking libpq. Each statement ends with its own Sync: outside an explicit transaction, it is a
 * separate transaction, and its error does not affect the next statement. */
#include "conn.h"

#include <errno.h>
#include <fcntl.h>
#include <monkey/mem.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conn_use.h"
#include "result.h"
#include "retry.h"

enum { GRACE_MS = 500 };

/* ---- Closing ---- */

static void unwatch_socket(struct postgres_conn *c)
{
    mk_watcher_free(c->watcher);
    c->watcher = NULL;
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    c->watched_events = 0;
}

void postgres_conn_close(struct package_conn *conn)
{
    struct postgres_conn *c = (struct postgres_conn *)conn;
    unwatch_socket(c);
    postgres_cancel_detach(c->cancel);
    c->cancel = NULL;
    postgres_migration_free(&c->migrate);
    if (c->pg)
        PQfinish(c->pg);
    c->pg = NULL;
    c->copying = NULL;
    c->cork = POSTGRES_CORK_OFF;
    postgres_conn_on_close(c);
    postgres_prepared_clear(&c->prepared);
}

static struct postgres_query *first_sent_query(const struct postgres_conn *c)
{
    return (struct postgres_query *)c->base.sent.first;
}

/* The server itself enforces the statement timeout; this deadline detects a server that does not respond. A
 * pipelined statement gets its deadline when the statement before it has ended. */
static uint64_t query_deadline_ms(const struct postgres_conn *c)
{
    return mk_worker_now_ms(c->base.worker) + c->settings->timeout_ms + GRACE_MS;
}

static struct postgres_query *pop_first_sent(struct postgres_conn *c)
{
    struct package_request *r = package_request_queue_pop(&c->base.sent);
    if (c->base.sent.first)
        c->base.sent.first->due_ms = query_deadline_ms(c);
    return (struct postgres_query *)r;
}

static void finish_query(const struct package_conn *conn, struct postgres_query *query, int error,
                         const char *error_text)
{
    if (error)
        postgres_query_fail(query, error, conn->name, error_text);
    if (query->on_done)
        query->on_done(query->ctx, query);
    postgres_query_free(query);
}

void postgres_conn_finish_request(struct package_conn *conn, struct package_request *r, int error,
                                  bool is_sent)
{
    (void)is_sent;
    finish_query(conn, (struct postgres_query *)r, error, package_conn_error_reason(conn));
}

void postgres_conn_on_timeout(struct package_conn *conn)
{
    struct postgres_conn *c = (struct postgres_conn *)conn;
    if (package_conn_is_opening(conn))
        postgres_resolver_rotate(c->hosts, c->first_host);
    else
        postgres_conn_cancel_running(c);
}

/* ---- Connecting ---- */

static void on_socket_ready(void *ctx, unsigned events);

/* Returns whether the watched socket is the current one. libpq may replace its socket while it connects, and
 * the new one may have the same number. */
static bool is_socket_watched(const struct postgres_conn *c)
{
    struct stat theirs, ours;
    if (!c->watcher || package_conn_is_ready(&c->base))
        return c->watcher;
    return fstat(PQsocket(c->pg), &theirs) == 0 && fstat(c->fd, &ours) == 0 && theirs.st_ino == ours.st_ino &&
           theirs.st_dev == ours.st_dev;
}

/* libpq may close its socket at any time. While a duplicate of the socket is open, the kernel continues to
 * report events for the closed descriptor, so we watch a duplicate of our own. */
static bool watch_socket(struct postgres_conn *c, unsigned events)
{
    if (is_socket_watched(c)) {
        c->watched_events = events;
        return mk_watcher_change(c->watcher, events | MK_LEVEL) == 0;
    }
    unwatch_socket(c);
    c->watched_events = events;
    c->fd = fcntl(PQsocket(c->pg), F_DUPFD_CLOEXEC, 0);
    if (c->fd >= 0)
        c->watcher = mk_watcher_new(c->base.worker, c->fd, events | MK_LEVEL, on_socket_ready, c);
    return c->watcher != NULL;
}

static void finish_connect(struct postgres_conn *c)
{
    if (PQsetnonblocking(c->pg, 1) || !PQenterPipelineMode(c->pg) || !watch_socket(c, MK_READABLE)) {
        package_conn_fail(&c->base, -ENOMEM, PQerrorMessage(c->pg));
        return;
    }
    postgres_prepared_init(&c->prepared);
    package_conn_mark_ready(&c->base);
}

static void continue_migration(struct postgres_conn *c)
{
    int e = postgres_migration_continue(&c->migrate, c->pg);
    if (e == 0)
        finish_connect(c);
    else if (e != -EAGAIN)
        package_conn_fail(&c->base, -EREMOTEIO, c->migrate.error_text);
    else if (!watch_socket(c, PQflush(c->pg) == 1 ? MK_READABLE | MK_WRITABLE : MK_READABLE))
        package_conn_fail(&c->base, -ENOMEM, "out of memory");
}

static void ignore_notice(void *ctx, const char *text)
{
    (void)ctx, (void)text;
}

static void start_session(struct postgres_conn *c)
{
    PQsetNoticeProcessor(c->pg, ignore_notice, NULL);
    (void)PQsetErrorVerbosity(c->pg, PQERRORS_DEFAULT);
    if (!c->settings->migrations) {
        finish_connect(c);
        return;
    }
    package_conn_set_state(&c->base, PACKAGE_CONN_MIGRATING);
    c->migrate = (struct postgres_migration){.all = c->settings->migrations,
                                             .history = {.service = c->settings->migrations_of}};
    if (postgres_migration_start(&c->migrate, c->pg))
        continue_migration(c);
    else
        package_conn_fail(&c->base, -ENOMEM, PQerrorMessage(c->pg));
}

/* Returns whether authentication failed (SQLSTATE class 28) or the database does not exist (class 3D). After
 * a failed attempt, the SQLSTATE occurs only in the message: "FATAL: 28P01: password ...". */
static bool is_auth_error(const char *message)
{
    for (const char *at = message; (at = strstr(at, ":  ")); at++)
        if ((strncmp(at + 3, "28", 2) == 0 || strncmp(at + 3, "3D", 2) == 0) && strncmp(at + 8, ": ", 2) == 0)
            return true;
    return false;
}

static void fail_connect(struct postgres_conn *c)
{
    char error_text[PACKAGE_CONN_ERROR_MAX];
    bool is_rejected = PQconnectionNeedsPassword(c->pg) || is_auth_error(PQerrorMessage(c->pg));
    snprintf(error_text, sizeof error_text, "%s", PQerrorMessage(c->pg));
    char *location = strstr(error_text, "\nLOCATION:");
    if (location)
        *location = 0;
    package_conn_fail(&c->base, is_rejected ? -ENOKEY : -ECONNREFUSED, error_text);
}

static void continue_connect(struct postgres_conn *c)
{
    bool watches = true;
    switch (PQconnectPoll(c->pg)) {
    case PGRES_POLLING_READING:
        watches = watch_socket(c, MK_READABLE);
        break;
    case PGRES_POLLING_WRITING:
        watches = watch_socket(c, MK_WRITABLE);
        break;
    case PGRES_POLLING_OK:
        start_session(c);
        return;
    case PGRES_POLLING_FAILED:
    case PGRES_POLLING_ACTIVE:
    default:
        fail_connect(c);
        return;
    }
    if (!watches)
        package_conn_fail(&c->base, -ENOMEM, "out of memory");
}

/* Later values win: the configuration overrides our defaults, and resolved addresses override the
 * configuration. */
static void start_connect(struct postgres_conn *c)
{
    enum { HOSTS = 9 };
    const struct postgres_resolver *h = c->hosts;
    const char *names[] = {"options",
                           "fallback_application_name",
                           "client_encoding",
                           "tcp_user_timeout",
                           "keepalives_idle",
                           "keepalives_interval",
                           "user",
                           "dbname",
                           "password",
                           NULL,
                           NULL,
                           NULL,
                           NULL};
    char options[160], timeout[16];
    const char *values[] = {options,
                            "monkey",
                            "UTF8",
                            timeout,
                            "30", /* detects a server that is lost during a migration */
                            "10",
                            c->settings->user.p,
                            c->settings->server.p,
                            c->settings->password.p,
                            h->hosts.p,
                            h->addresses.p,
                            h->ports.p,
                            NULL};
    if (h->host_list->n) {
        names[HOSTS] = "host";
        names[HOSTS + 1] = "hostaddr";
        names[HOSTS + 2] = h->host_list->has_ports ? "port" : NULL;
    }
    snprintf(options, sizeof options, "-c statement_timeout=%u%s%s", c->settings->timeout_ms,
             c->settings->test_schema.len ? " -c search_path=" : "",
             c->settings->test_schema.len ? c->settings->test_schema.p : "");
    snprintf(timeout, sizeof timeout, "%u", c->settings->timeout_ms);
    package_conn_set_state(&c->base, PACKAGE_CONN_CONNECTING);
    c->pg = PQconnectStartParams(names, values, 1);
    if (!c->pg || PQstatus(c->pg) == CONNECTION_BAD)
        package_conn_fail(&c->base, -ECONNREFUSED, c->pg ? PQerrorMessage(c->pg) : "out of memory");
    else if (!watch_socket(c, MK_WRITABLE))
        package_conn_fail(&c->base, -ENOMEM, "out of memory");
    else
        (void)PQsetErrorVerbosity(c->pg, PQERRORS_VERBOSE); /* adds the SQLSTATE: see fail_connect() */
}

void postgres_conn_on_resolved(struct postgres_conn *c)
{
    if (!package_conn_is_in_state(&c->base, PACKAGE_CONN_RESOLVING))
        return;
    if (c->hosts->error_text[0])
        package_conn_fail(&c->base, -ECONNREFUSED, c->hosts->error_text);
    else
        start_connect(c);
}

void postgres_conn_connect(struct package_conn *conn)
{
    struct postgres_conn *c = (struct postgres_conn *)conn;
    c->first_host = c->hosts->first;
    package_conn_set_state(conn, PACKAGE_CONN_RESOLVING);
    if (postgres_resolver_resolve(c->hosts) != -EAGAIN)
        postgres_conn_on_resolved(c);
}

/* ---- Statements ---- */

/* Prepares a statement on its first use. A retry runs without a prepared statement. */
static void use_prepared_statement(struct postgres_conn *c, struct postgres_query *query)
{
    query->prepare = POSTGRES_PREPARE_NONE;
    query->prepared = NULL;
    if (!query->is_query || query->n_repeats || !c->settings->prepares || c->prepared.is_disabled)
        return;
    query->prepared = postgres_prepared_find(&c->prepared, query->text);
    if (query->prepared)
        return;
    query->prepared = postgres_prepared_add(&c->prepared, query->text);
    if (query->prepared)
        query->prepare = POSTGRES_PREPARE_SENT;
}

/* Since version 17, libpq can defer sending until PQflush(): a single send() per loop iteration then
 * transmits the statements of all handlers. */
extern int PQsendPipelineSync(PGconn *pg) __attribute__((weak));

static bool send_pipeline_sync(struct postgres_conn *c)
{
    return PQsendPipelineSync ? PQsendPipelineSync(c->pg) : PQpipelineSync(c->pg);
}

static bool send_query(struct postgres_conn *c, struct postgres_query *query)
{
    int n = (int)query->n;
    use_prepared_statement(c, query);
    if (!query->prepared)
        return PQsendQueryParams(c->pg, query->text.p, n, NULL, query->values, query->lengths, query->formats,
                                 0) &&
               send_pipeline_sync(c);
    if (query->prepare == POSTGRES_PREPARE_SENT &&
        !PQsendPrepare(c->pg, query->prepared->name, query->text.p, n, NULL))
        return false;
    return PQsendQueryPrepared(c->pg, query->prepared->name, n, query->values, query->lengths, query->formats,
                               0) &&
           send_pipeline_sync(c);
}

void postgres_conn_send(struct postgres_conn *c, struct postgres_query *query)
{
    if (!package_conn_is_in_state(&c->base, PACKAGE_CONN_READY)) { /* sending an earlier statement failed */
        finish_query(&c->base, query, -ECONNRESET, package_conn_error_reason(&c->base));
        return;
    }
    query->request.due_ms = query_deadline_ms(c);
    package_conn_add_sent(&c->base, &query->request);
    if (!send_query(c, query))
        package_conn_fail(&c->base, -ECONNRESET, PQerrorMessage(c->pg));
}

/* For older versions of libpq, TCP_CORK collects the statements into full packets. */
static bool set_tcp_cork(struct postgres_conn *c, int on)
{
    return setsockopt(c->fd, IPPROTO_TCP, TCP_CORK, &on, sizeof on) == 0;
}

void postgres_conn_cork(struct postgres_conn *c)
{
    if (PQsendPipelineSync || !package_conn_is_in_state(&c->base, PACKAGE_CONN_READY) ||
        c->cork != POSTGRES_CORK_OFF)
        return;
    c->cork = set_tcp_cork(c, 1) ? POSTGRES_CORK_ON : POSTGRES_CORK_UNSUPPORTED; /* a Unix socket */
}

void postgres_conn_flush(struct postgres_conn *c)
{
    if (c->cork == POSTGRES_CORK_ON && set_tcp_cork(c, 0))
        c->cork = POSTGRES_CORK_OFF;
    if (!package_conn_is_in_state(&c->base, PACKAGE_CONN_READY))
        return;
    int left = PQflush(c->pg);
    unsigned events = left > 0 ? MK_READABLE | MK_WRITABLE : MK_READABLE;
    if (left < 0)
        package_conn_fail(&c->base, -ECONNRESET, PQerrorMessage(c->pg));
    else if (events != c->watched_events && !watch_socket(c, events))
        package_conn_fail(&c->base, -ENOMEM, "out of memory");
}

/* ---- Results ---- */

static void retry_first_query(struct postgres_conn *c)
{
    struct postgres_query *query = pop_first_sent(c);
    query->repeats = query->is_suspect = false;
    query->n_repeats++;
    query->error = 0;
    query->suspect_prepared = query->prepared;
    PQclear(query->result);
    query->result = NULL;
    postgres_conn_send(c, query);
}

static void store_query_result(struct postgres_conn *c, struct postgres_query *query, PGresult *result)
{
    const char *error_text;
    int e = postgres_result_errno(result, &error_text);
    postgres_retry_decide(c, query, result);
    /* COMMIT in a failed transaction succeeds, but rolls back. */
    if (!e && mk_str_eq(query->text, MK_STR("COMMIT")) && strcmp(PQcmdStatus(result), "ROLLBACK") == 0) {
        e = -EREMOTEIO;
        error_text = "the transaction has failed and was rolled back";
    }
    if (e)
        postgres_query_fail(query, e, c->settings->name, error_text);
    PQclear(query->result);
    query->result = result;
}

static void finish_first_query(struct postgres_conn *c)
{
    if (first_sent_query(c)->repeats)
        retry_first_query(c);
    else
        finish_query(&c->base, pop_first_sent(c), 0, NULL);
    postgres_conn_on_idle(c);
    if (package_conn_is_in_state(&c->base, PACKAGE_CONN_READY))
        c->on_statement_done(c);
}

/* Handles a result of the first statement. */
static void handle_result(struct postgres_conn *c, PGresult *result)
{
    struct postgres_query *query = first_sent_query(c);
    ExecStatusType status = PQresultStatus(result);
    if (status == PGRES_PIPELINE_SYNC) {
        PQclear(result);
        finish_first_query(c);
    } else if (status == PGRES_PIPELINE_ABORTED) { /* this result follows an error of the same statement */
        PQclear(result);
    } else if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH) {
        PQclear(result);
        finish_query(&c->base, pop_first_sent(c), -EOPNOTSUPP,
                     "the statement is a COPY: use duda_postgres_copy()");
        package_conn_fail(&c->base, -ECONNRESET, "another handler ran a COPY without duda_postgres_copy()");
    } else if (query->prepare == POSTGRES_PREPARE_SENT && status == PGRES_COMMAND_OK) {
        PQclear(result);
        query->prepare = POSTGRES_PREPARE_DONE;
        query->prepared->is_kept = true;
    } else if (query->error) {
        PQclear(result);
    } else {
        store_query_result(c, query, result);
    }
}

/* libpq returns NULL between two results of a pipeline. */
static void read_results(struct postgres_conn *c)
{
    unsigned nothing = 0;
    while (package_conn_is_in_state(&c->base, PACKAGE_CONN_READY) && c->base.sent.first && !PQisBusy(c->pg) &&
           nothing < 2) {
        PGresult *result = PQgetResult(c->pg);
        nothing = result ? 0 : nothing + 1;
        if (result)
            handle_result(c, result);
    }
}

static void read_notifications(struct postgres_conn *c)
{
    PGnotify *n;
    while (package_conn_is_in_state(&c->base, PACKAGE_CONN_READY) && (n = PQnotifies(c->pg))) {
        if (c->on_notify)
            c->on_notify(c, n->relname, mk_str_from_c(n->extra));
        PQfreemem(n);
    }
}

static void on_socket_ready(void *ctx, unsigned events)
{
    struct postgres_conn *c = ctx;
    (void)events;
    if (package_conn_is_in_state(&c->base, PACKAGE_CONN_CONNECTING)) {
        continue_connect(c);
        return;
    }
    if (!PQconsumeInput(c->pg)) {
        package_conn_fail(&c->base, -ECONNRESET, PQerrorMessage(c->pg));
    } else if (package_conn_is_in_state(&c->base, PACKAGE_CONN_MIGRATING)) {
        continue_migration(c);
    } else {
        read_results(c);
        read_notifications(c);
        postgres_conn_flush(c);
    }
}

/* ---- COPY, which cannot be pipelined ---- */

bool postgres_conn_begin_copy(struct postgres_conn *c, const char *text, void *owner)
{
    unwatch_socket(c);
    package_conn_set_state(&c->base, PACKAGE_CONN_EXCLUSIVE);
    c->copying = owner;
    return PQexitPipelineMode(c->pg) && PQsendQueryParams(c->pg, text, 0, NULL, NULL, NULL, NULL, 0);
}

bool postgres_conn_end_copy(struct postgres_conn *c)
{
    c->copying = NULL;
    if (!PQenterPipelineMode(c->pg) || !watch_socket(c, MK_READABLE))
        return false;
    PQsetNoticeProcessor(c->pg, ignore_notice, NULL);
    package_conn_set_state(&c->base, PACKAGE_CONN_READY);
    c->on_statement_done(c);
    return true;
}

/* ---- Idle connections ---- */

/* Deallocates one prepared statement, in a statement of its own. Do not call it in a transaction. */
static bool deallocate_prepared_statement(struct postgres_conn *c, const char *name)
{
    char text[POSTGRES_NAME_MAX + 16];
    snprintf(text, sizeof text, "DEALLOCATE %s", name);
    struct postgres_query *query = postgres_query_new(mk_str_from_c(text), NULL, 0);
    if (query)
        postgres_conn_send(c, query);
    return query != NULL;
}

void postgres_conn_on_idle(struct postgres_conn *c)
{
    char name[POSTGRES_NAME_MAX];
    if (!package_conn_is_in_state(&c->base, PACKAGE_CONN_READY) || c->base.sent.first ||
        postgres_conn_is_reserved(c))
        return;
    if (postgres_conn_is_retired(c))
        package_conn_fail(&c->base, -ECONNRESET, "its session state was not usable by other handlers");
    else if (postgres_prepared_sweep(&c->prepared, name))
        (void)deallocate_prepared_statement(c, name);
}

/* Marks all statements in flight as possible victims: a cancel request may hit a later statement, which is
 * then retried. We therefore send the request only while every statement in flight can be retried, and send
 * no further statement until the cancel request has completed. */
static void on_cancel_request_done(void *ctx)
{
    struct postgres_conn *c = ctx;
    c->cancel = NULL;
    for (struct package_request *r = c->base.sent.first; r; r = r->next)
        ((struct postgres_query *)r)->is_suspect = true;
    postgres_conn_on_idle(c);
    postgres_conn_flush(c);
    if (package_conn_is_in_state(&c->base, PACKAGE_CONN_READY))
        c->on_statement_done(c);
}

bool postgres_conn_has_abandoned(const struct postgres_conn *c)
{
    const struct postgres_query *first = first_sent_query(c);
    return first && package_conn_is_in_state(&c->base, PACKAGE_CONN_READY) && first->is_abandoned &&
           !first->is_cancelled && !c->cancel;
}

void postgres_conn_cancel_abandoned(struct postgres_conn *c)
{
    struct postgres_query *first = first_sent_query(c);
    if (!postgres_conn_has_abandoned(c))
        return;
    for (const struct package_request *r = first->request.next; r; r = r->next) {
        const struct postgres_query *query = (const struct postgres_query *)r;
        if (!query->is_query && query->on_done)
            return;
    }
    c->cancel = postgres_cancel_start(c->base.worker, c->pg, on_cancel_request_done, c);
    first->is_cancelled = c->cancel;
}

void postgres_conn_cancel_running(struct postgres_conn *c)
{
    if (c->pg)
        (void)postgres_cancel_start(c->base.worker, c->pg, NULL, NULL);
}

/* ---- Lifetime ---- */

int postgres_conn_init(struct postgres_conn *c, struct mk_worker *w, const struct postgres_settings *settings,
                       struct postgres_resolver *hosts, const struct package_conn_ops *ops)
{
    c->hosts = hosts;
    c->settings = settings;
    c->fd = -1;
    return package_conn_init(&c->base, w, ops, settings->name, settings->timeout_ms);
}

void postgres_conn_fini(struct postgres_conn *c)
{
    if (c->settings)
        package_conn_set_error(&c->base, MK_STR("the worker is stopping"));
    package_conn_fini(&c->base);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* libpq without blocking. Each statement ends with a Sync of its own: a transaction for itself, unless one
 * was begun, and an error of one is none of the next. */
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

#include "judge.h"
#include "values.h"

enum { GRACE_MS = 500 };

/* ---- Its end ---- */

static void unwatch(struct postgres_conn *c)
{
    mk_watcher_free(c->watcher);
    c->watcher = NULL;
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
}

void postgres_conn_close(struct pack_link *l)
{
    struct postgres_conn *c = (struct postgres_conn *)l;
    unwatch(c);
    postgres_cancel_forget(c->cancel);
    c->cancel = NULL;
    postgres_upgrade_end(&c->upgrade);
    if (c->pg)
        PQfinish(c->pg);
    c->pg = NULL;
    c->copying = NULL;
    c->is_held = c->cannot_hold = false;
    c->prepared_now = false;
    c->retires = c->is_changed = false;
    postgres_prepared_clear(&c->prepared);
}

static struct postgres_job *first_sent(const struct postgres_conn *c)
{
    return (struct postgres_job *)c->link.sent.first;
}

/* The server itself stops a statement that takes too long; this is for a server that does not answer. Those
 * behind the first have their time from when it is over. */
static uint64_t due_ms(const struct postgres_conn *c)
{
    return mk_worker_now_ms(c->link.worker) + c->settings->timeout_ms + GRACE_MS;
}

static struct postgres_job *unlink_first(struct postgres_conn *c)
{
    struct pack_request *r = pack_requests_pop(&c->link.sent);
    c->prepared_now = false;
    if (c->link.sent.first)
        c->link.sent.first->due_ms = due_ms(c);
    return (struct postgres_job *)r;
}

static void finish(const struct pack_link *l, struct postgres_job *job, int error, const char *why)
{
    if (error)
        postgres_job_fail(job, error, l->name, why);
    if (job->on_over)
        job->on_over(job->ctx, job);
    postgres_job_free(job);
}

void postgres_conn_finish(struct pack_link *l, struct pack_request *r, int error, bool is_sent)
{
    (void)is_sent;
    finish(l, (struct postgres_job *)r, error, pack_link_reason(l));
}

void postgres_conn_on_late(struct pack_link *l)
{
    struct postgres_conn *c = (struct postgres_conn *)l;
    if (pack_link_is_opening(l))
        postgres_hosts_turn(c->hosts, c->first_host);
    else
        postgres_conn_stop_server(c);
}

/* ---- Up ---- */

static void on_ready(void *ctx, unsigned which);

/* While it connects, libpq may change its socket, and the number may be the same. */
static bool is_watched(const struct postgres_conn *c)
{
    struct stat theirs, ours;
    if (!c->watcher || pack_link_is_up(&c->link))
        return c->watcher;
    return fstat(PQsocket(c->pg), &theirs) == 0 && fstat(c->fd, &ours) == 0 && theirs.st_ino == ours.st_ino &&
           theirs.st_dev == ours.st_dev;
}

/* libpq closes its socket when it likes, and what is open elsewhere, too, would go on reporting events to a
 * watcher that is gone: a duplicate of ours is watched. */
static bool watch(struct postgres_conn *c, unsigned events)
{
    if (is_watched(c))
        return mk_watcher_change(c->watcher, events | MK_LEVEL) == 0;
    unwatch(c);
    c->fd = fcntl(PQsocket(c->pg), F_DUPFD_CLOEXEC, 0);
    if (c->fd >= 0)
        c->watcher = mk_watcher_new(c->link.worker, c->fd, events | MK_LEVEL, on_ready, c);
    return c->watcher != NULL;
}

static void become_up(struct postgres_conn *c)
{
    if (PQsetnonblocking(c->pg, 1) || !PQenterPipelineMode(c->pg) || !watch(c, MK_READABLE)) {
        pack_link_fail(&c->link, -ENOMEM, PQerrorMessage(c->pg));
        return;
    }
    c->has_more = false;
    postgres_prepared_begin(&c->prepared);
    pack_link_up(&c->link);
}

static void upgrade(struct postgres_conn *c)
{
    int e = postgres_upgrade(&c->upgrade, c->pg);
    if (e == 0)
        become_up(c);
    else if (e != -EAGAIN)
        pack_link_fail(&c->link, -EREMOTEIO, c->upgrade.why);
    else if (!watch(c, PQflush(c->pg) == 1 ? MK_READABLE | MK_WRITABLE : MK_READABLE))
        pack_link_fail(&c->link, -ENOMEM, "out of memory");
}

static void ignore_notice(void *ctx, const char *text)
{
    (void)ctx, (void)text;
}

static void begin_session(struct postgres_conn *c)
{
    PQsetNoticeProcessor(c->pg, ignore_notice, NULL);
    (void)PQsetErrorVerbosity(c->pg, PQERRORS_DEFAULT);
    if (!c->settings->migrations) {
        become_up(c);
        return;
    }
    pack_link_move(&c->link, PACK_LINK_GREETING);
    c->upgrade = (struct postgres_upgrade){.all = c->settings->migrations,
                                           .history = {.service = c->settings->migrations_of}};
    if (postgres_upgrade_begin(&c->upgrade, c->pg))
        upgrade(c);
    else
        pack_link_fail(&c->link, -ENOMEM, PQerrorMessage(c->pg));
}

/* The SQLSTATE of an attempt is in its message alone: "FATAL:  28P01: password ...". Class 28: it does not take
 * who we are; 3D: it has no such database. */
static bool is_turned_away(const char *message)
{
    for (const char *at = message; (at = strstr(at, ":  ")); at++)
        if ((strncmp(at + 3, "28", 2) == 0 || strncmp(at + 3, "3D", 2) == 0) && strncmp(at + 8, ": ", 2) == 0)
            return true;
    return false;
}

static void fail_attempt(struct postgres_conn *c)
{
    char why[PACK_LINK_WHY_MAX];
    bool is_turned = PQconnectionNeedsPassword(c->pg) || is_turned_away(PQerrorMessage(c->pg));
    snprintf(why, sizeof why, "%s", PQerrorMessage(c->pg));
    char *place = strstr(why, "\nLOCATION:");
    if (place)
        *place = 0;
    pack_link_fail(&c->link, is_turned ? -ENOKEY : -ECONNREFUSED, why);
}

static void connect_on(struct postgres_conn *c)
{
    bool watches = true;
    switch (PQconnectPoll(c->pg)) {
    case PGRES_POLLING_READING:
        watches = watch(c, MK_READABLE);
        break;
    case PGRES_POLLING_WRITING:
        watches = watch(c, MK_WRITABLE);
        break;
    case PGRES_POLLING_OK:
        begin_session(c);
        return;
    case PGRES_POLLING_FAILED:
    case PGRES_POLLING_ACTIVE:
    default:
        fail_attempt(c);
        return;
    }
    if (!watches)
        pack_link_fail(&c->link, -ENOMEM, "out of memory");
}

/* What the configuration says comes behind what is ours, and so counts; what was found counts most. */
static void connect_now(struct postgres_conn *c)
{
    const struct postgres_hosts *h = c->hosts;
    const char *names[] = {"options",
                           "fallback_application_name",
                           "client_encoding",
                           "tcp_user_timeout",
                           "dbname",
                           "password",
                           NULL,
                           NULL,
                           NULL,
                           NULL};
    char options[64], patience[16];
    const char *values[] = {
        options,    "monkey",       "UTF8",     patience, c->settings->server.p, c->settings->password.p,
        h->hosts.p, h->addresses.p, h->ports.p, NULL};
    if (h->places->n) {
        names[6] = "host";
        names[7] = "hostaddr";
        names[8] = h->places->has_ports ? "port" : NULL;
    }
    snprintf(options, sizeof options, "-c statement_timeout=%u", c->settings->timeout_ms);
    snprintf(patience, sizeof patience, "%u", c->settings->timeout_ms);
    pack_link_move(&c->link, PACK_LINK_CONNECTING);
    c->pg = PQconnectStartParams(names, values, 1);
    if (!c->pg || PQstatus(c->pg) == CONNECTION_BAD)
        pack_link_fail(&c->link, -ECONNREFUSED, c->pg ? PQerrorMessage(c->pg) : "out of memory");
    else if (!watch(c, MK_WRITABLE))
        pack_link_fail(&c->link, -ENOMEM, "out of memory");
    else
        (void)PQsetErrorVerbosity(c->pg,
                                  PQERRORS_VERBOSE); /* so that it has the SQLSTATE: see fail_attempt() */
}

void postgres_conn_found(struct postgres_conn *c)
{
    if (!pack_link_is(&c->link, PACK_LINK_RESOLVING))
        return;
    if (c->hosts->why[0])
        pack_link_fail(&c->link, -ECONNREFUSED, c->hosts->why);
    else
        connect_now(c);
}

void postgres_conn_connect(struct pack_link *l)
{
    struct postgres_conn *c = (struct postgres_conn *)l;
    c->first_host = c->hosts->first;
    pack_link_move(l, PACK_LINK_RESOLVING);
    if (postgres_hosts_find(c->hosts) != -EAGAIN)
        postgres_conn_found(c);
}

/* ---- Statements ---- */

/* It is prepared with its first use, and repeated without. */
static void find_prepared(struct postgres_conn *c, struct postgres_job *job)
{
    job->prepares = false;
    job->prepared = NULL;
    if (!job->is_query || job->n_repeats || !c->settings->prepares || c->prepared.is_off)
        return;
    job->prepared = postgres_prepared_find(&c->prepared, job->text);
    if (job->prepared)
        return;
    job->prepared = postgres_prepared_add(&c->prepared, job->text);
    job->prepares = job->prepared;
}

/* Since version 17, libpq can leave the sending to PQflush(): then one send of a turn carries the statements
 * of all handlers. */
extern int PQsendPipelineSync(PGconn *pg) __attribute__((weak));

static bool end_statement(struct postgres_conn *c)
{
    return PQsendPipelineSync ? PQsendPipelineSync(c->pg) : PQpipelineSync(c->pg);
}

static bool put(struct postgres_conn *c, struct postgres_job *job)
{
    int n = (int)job->n;
    find_prepared(c, job);
    if (!job->prepared)
        return PQsendQueryParams(c->pg, job->text.p, n, NULL, job->values, job->lengths, job->formats, 0) &&
               end_statement(c);
    if (job->prepares && !PQsendPrepare(c->pg, job->prepared->name, job->text.p, n, NULL))
        return false;
    return PQsendQueryPrepared(c->pg, job->prepared->name, n, job->values, job->lengths, job->formats, 0) &&
           end_statement(c);
}

void postgres_conn_send(struct postgres_conn *c, struct postgres_job *job)
{
    if (!pack_link_is(&c->link, PACK_LINK_UP)) { /* it has failed with what was sent before */
        finish(&c->link, job, -ECONNRESET, pack_link_reason(&c->link));
        return;
    }
    job->request.due_ms = due_ms(c);
    pack_link_add_sent(&c->link, &job->request);
    if (!put(c, job))
        pack_link_fail(&c->link, -ECONNRESET, PQerrorMessage(c->pg));
}

/* For older ones TCP can: it makes a packet of all that is sent while it is corked. */
static bool cork(struct postgres_conn *c, int on)
{
    return setsockopt(c->fd, IPPROTO_TCP, TCP_CORK, &on, sizeof on) == 0;
}

void postgres_conn_hold(struct postgres_conn *c)
{
    if (PQsendPipelineSync || !pack_link_is(&c->link, PACK_LINK_UP) || c->is_held || c->cannot_hold)
        return;
    c->is_held = cork(c, 1);
    c->cannot_hold = !c->is_held; /* a unix socket */
}

void postgres_conn_flush(struct postgres_conn *c)
{
    c->is_held = c->is_held && !cork(c, 0);
    if (!pack_link_is(&c->link, PACK_LINK_UP))
        return;
    int left = PQflush(c->pg);
    if (left < 0)
        pack_link_fail(&c->link, -ECONNRESET, PQerrorMessage(c->pg));
    else if (c->has_more == (left > 0)) /* as before: it need not be said */
        return;
    else if (watch(c, left ? MK_READABLE | MK_WRITABLE : MK_READABLE))
        c->has_more = left > 0;
    else
        pack_link_fail(&c->link, -ENOMEM, "out of memory");
}

/* ---- Results ---- */

static void repeat_first(struct postgres_conn *c)
{
    struct postgres_job *job = unlink_first(c);
    job->repeats = job->is_suspect = false;
    job->n_repeats++;
    job->error = 0;
    job->doubted = job->prepared;
    PQclear(job->result);
    job->result = NULL;
    postgres_conn_send(c, job);
}

static void take_rows(struct postgres_conn *c, struct postgres_job *job, PGresult *result)
{
    const char *why;
    int e = postgres_values_error(result, &why);
    postgres_judge(c, job, result);
    /* The answer to COMMIT of a transaction that has failed. */
    if (!e && mk_str_eq(job->text, MK_STR("COMMIT")) && strcmp(PQcmdStatus(result), "ROLLBACK") == 0) {
        e = -EREMOTEIO;
        why = "the transaction has failed and was rolled back";
    }
    if (e)
        postgres_job_fail(job, e, c->settings->name, why);
    PQclear(job->result);
    job->result = result;
}

static void finish_first(struct postgres_conn *c)
{
    if (first_sent(c)->repeats)
        repeat_first(c);
    else
        finish(&c->link, unlink_first(c), 0, NULL);
    postgres_conn_settle(c);
    if (pack_link_is(&c->link, PACK_LINK_UP))
        c->on_free(c);
}

/* A result of the first statement. */
static void take_result(struct postgres_conn *c, PGresult *result)
{
    struct postgres_job *job = first_sent(c);
    ExecStatusType status = PQresultStatus(result);
    if (status == PGRES_PIPELINE_SYNC) {
        PQclear(result);
        finish_first(c);
    } else if (status == PGRES_PIPELINE_ABORTED) { /* behind an error of the same statement */
        PQclear(result);
    } else if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH) {
        PQclear(result);
        finish(&c->link, unlink_first(c), -EOPNOTSUPP, "it is a COPY, which duda_postgres_copy() does");
        pack_link_fail(&c->link, -ECONNRESET, "a statement of another handler was a COPY");
    } else if (job->prepares && !c->prepared_now && status == PGRES_COMMAND_OK) {
        PQclear(result);
        c->prepared_now = true;
        job->prepared->is_kept = true;
    } else if (job->error) {
        PQclear(result);
    } else {
        take_rows(c, job, result);
    }
}

/* Between two results of a pipeline libpq answers NULL. */
static void take_results(struct postgres_conn *c)
{
    unsigned nothing = 0;
    while (pack_link_is(&c->link, PACK_LINK_UP) && c->link.sent.first && !PQisBusy(c->pg) && nothing < 2) {
        PGresult *result = PQgetResult(c->pg);
        nothing = result ? 0 : nothing + 1;
        if (result)
            take_result(c, result);
    }
}

static void take_messages(struct postgres_conn *c)
{
    PGnotify *n;
    while (pack_link_is(&c->link, PACK_LINK_UP) && (n = PQnotifies(c->pg))) {
        if (c->on_notify)
            c->on_notify(c, n->relname, mk_str_from_c(n->extra));
        PQfreemem(n);
    }
}

static void on_ready(void *ctx, unsigned which)
{
    struct postgres_conn *c = ctx;
    (void)which;
    if (pack_link_is(&c->link, PACK_LINK_CONNECTING)) {
        connect_on(c);
        return;
    }
    if (!PQconsumeInput(c->pg)) {
        pack_link_fail(&c->link, -ECONNRESET, PQerrorMessage(c->pg));
    } else if (pack_link_is(&c->link, PACK_LINK_GREETING)) {
        upgrade(c);
    } else {
        take_results(c);
        take_messages(c);
        postgres_conn_flush(c);
    }
}

/* ---- COPY, which libpq has no pipeline for ---- */

bool postgres_conn_begin_copy(struct postgres_conn *c, const char *text, void *owner)
{
    unwatch(c);
    pack_link_move(&c->link, PACK_LINK_EXCLUSIVE);
    c->copying = owner;
    return PQexitPipelineMode(c->pg) && PQsendQueryParams(c->pg, text, 0, NULL, NULL, NULL, NULL, 0);
}

bool postgres_conn_end_copy(struct postgres_conn *c)
{
    c->copying = NULL;
    if (!PQenterPipelineMode(c->pg) || !watch(c, MK_READABLE))
        return false;
    PQsetNoticeProcessor(c->pg, ignore_notice, NULL);
    pack_link_move(&c->link, PACK_LINK_UP);
    c->has_more = false;
    c->on_free(c);
    return true;
}

/* ---- Its rest ---- */

bool postgres_conn_is_open(const struct postgres_conn *c)
{
    return pack_link_is(&c->link, PACK_LINK_UP) && !c->retires && !c->cancel;
}

/* Each name by a statement of its own: in a transaction it would have to wait. */
static bool deallocate(struct postgres_conn *c, const char *name)
{
    char text[POSTGRES_NAME_MAX + 16];
    snprintf(text, sizeof text, "DEALLOCATE %s", name);
    struct postgres_job *job = postgres_job_new(mk_str_from_c(text), NULL, 0);
    if (job)
        postgres_conn_send(c, job);
    return job != NULL;
}

void postgres_conn_settle(struct postgres_conn *c)
{
    char name[POSTGRES_NAME_MAX];
    if (!pack_link_is(&c->link, PACK_LINK_UP) || c->link.sent.first || c->is_reserved)
        return;
    if (c->retires || c->is_changed)
        pack_link_fail(&c->link, -ECONNRESET, "its session was not as it shall be");
    else if (postgres_prepared_sweep(&c->prepared, name))
        (void)deallocate(c, name);
}

/* The request to cancel may come when a later statement is at work: that is repeated. So it is sent only while
 * there is none that could not be, and none follows before it is done. */
static void on_cancelled(void *ctx)
{
    struct postgres_conn *c = ctx;
    c->cancel = NULL;
    for (struct pack_request *r = c->link.sent.first; r; r = r->next)
        ((struct postgres_job *)r)->is_suspect = true;
    postgres_conn_settle(c);
    postgres_conn_flush(c);
    if (pack_link_is(&c->link, PACK_LINK_UP))
        c->on_free(c);
}

bool postgres_conn_has_abandoned(const struct postgres_conn *c)
{
    const struct postgres_job *first = first_sent(c);
    return first && pack_link_is(&c->link, PACK_LINK_UP) && first->is_abandoned && !first->is_cancelled &&
           !c->cancel;
}

void postgres_conn_cancel_abandoned(struct postgres_conn *c)
{
    struct postgres_job *first = first_sent(c);
    if (!postgres_conn_has_abandoned(c))
        return;
    for (const struct pack_request *r = first->request.next; r; r = r->next) {
        const struct postgres_job *job = (const struct postgres_job *)r;
        if (!job->is_query && job->on_over)
            return;
    }
    c->cancel = postgres_cancel_begin(c->link.worker, c->pg, on_cancelled, c);
    first->is_cancelled = c->cancel;
}

void postgres_conn_stop_server(struct postgres_conn *c)
{
    if (c->pg)
        (void)postgres_cancel_begin(c->link.worker, c->pg, NULL, NULL);
}

/* ---- Its life ---- */

int postgres_conn_init(struct postgres_conn *c, struct mk_worker *w, const struct postgres_settings *settings,
                       struct postgres_hosts *hosts, const struct pack_link_ops *ops)
{
    c->hosts = hosts;
    c->settings = settings;
    c->fd = -1;
    return pack_link_init(&c->link, w, ops, settings->name, settings->timeout_ms);
}

void postgres_conn_fini(struct postgres_conn *c)
{
    if (c->settings)
        pack_link_explain(&c->link, MK_STR("the worker stops"));
    pack_link_fini(&c->link);
}

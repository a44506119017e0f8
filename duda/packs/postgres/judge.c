/* SPDX-License-Identifier: Apache-2.0 */
/* SQLSTATE: appendix A of PostgreSQL's manual. */
#include "judge.h"

enum {
    REPEATS_MAX = 3,
    RETIRE_MS = 1000, /* a server that stays read only is left so often, at most */
};

static bool is_class(const char *state, const char *class)
{
    return strncmp(state, class, strlen(class)) == 0;
}

/* An error that a prepared statement may have of itself: what it stands for has changed, so that its types or
 * its result are those of before. */
static bool may_be_stale(const char *state)
{
    return is_class(state, "42") || is_class(state, "0A") || is_class(state, "22P0") || is_class(state, "XX");
}

static void lose(struct postgres_conn *c, const struct postgres_prepared *p)
{
    if (postgres_prepared_lose(&c->prepared, p, mk_worker_now_ms(c->link.worker)))
        mk_worker_log(
            c->link.worker, MK_LOG_WARN,
            "[POSTGRES] %.*s: the server forgets prepared statements, as with a pooler: they are not "
            "prepared any more (see the key Prepare)",
            MK_STR_ARG(c->settings->name));
}

/* In a transaction, which has failed, it cannot be tried without: it is prepared anew when it is next used. */
static void judge_prepared(struct postgres_conn *c, struct postgres_job *job, const char *state)
{
    struct postgres_prepared *p = job->prepared;
    if (job->prepares && !c->prepared_now) { /* it could not be prepared */
        p->is_dead = true;
        job->repeats = is_class(state, "42P05");
    } else if (is_class(state, "26")) {
        lose(c, p);
        job->repeats = true;
    } else if (!job->prepares && may_be_stale(state)) {
        p->is_dead = p->is_dead || c->is_reserved;
        job->repeats = true;
    }
}

/* The server of this connection was demoted, but its address may lead to another one by now. */
static void leave_server(struct postgres_conn *c)
{
    uint64_t now = mk_worker_now_ms(c->link.worker);
    if (c->retired_ms && now - c->retired_ms < RETIRE_MS)
        return;
    c->retired_ms = now;
    c->retires = true;
}

/* Outside of a transaction what has failed has done nothing, so that it can be repeated. */
static void judge_error(struct postgres_conn *c, struct postgres_job *job, const char *state)
{
    if (job->prepared)
        judge_prepared(c, job, state);
    if (is_class(state, "57014") && (job->is_suspect || c->cancel))
        job->repeats = true;
    if (is_class(state, "25006"))
        leave_server(c);
    if (!job->is_query || !job->on_over || c->is_reserved || job->n_repeats == REPEATS_MAX)
        job->repeats = false;
}

void postgres_judge(struct postgres_conn *c, struct postgres_job *job, const PGresult *result)
{
    if (PQresultStatus(result) == PGRES_FATAL_ERROR) {
        const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
        judge_error(c, job, state ? state : "");
    } else if (job->doubted) { /* it is right, so what was prepared was not */
        job->doubted->is_dead = true;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* SQLSTATE: appendix A of PostgreSQL's manual. */
#include "retry.h"

#include "conn_use.h"

enum {
    REPEATS_MAX = 3,
    RETIRE_MS = 1000, /* minimum time between reconnects to a server that stays read-only */
};

static bool is_sqlstate_class(const char *state, const char *class)
{
    return strncmp(state, class, strlen(class)) == 0;
}

/* Returns whether a stale prepared statement can cause this error. Its types or its result no longer match if
 * its database objects have changed. */
static bool may_be_stale_statement(const char *state)
{
    return is_sqlstate_class(state, "42") || is_sqlstate_class(state, "0A") ||
           is_sqlstate_class(state, "22P0") || is_sqlstate_class(state, "XX");
}

static void on_prepared_lost(struct postgres_conn *c, const struct postgres_prepared *p)
{
    if (postgres_prepared_forget_all(&c->prepared, p, mk_worker_now_ms(c->base.worker)))
        mk_worker_log(c->base.worker, MK_LOG_WARN,
                      "[POSTGRES] %.*s: the server loses prepared statements, perhaps because of a pooler: "
                      "statements are no longer prepared (see the key Prepare)",
                      MK_STR_ARG(c->settings->name));
}

/* If the prepared statement may have caused the error, requests a retry without it. A failed transaction
 * allows no retry, but the statement is prepared again on its next use. */
static void check_prepared_error(struct postgres_conn *c, struct postgres_query *query, const char *state)
{
    struct postgres_prepared *p = query->prepared;
    if (query->prepare == POSTGRES_PREPARE_SENT) { /* the statement could not be prepared */
        p->is_dead = true;
        query->repeats = is_sqlstate_class(state, "42P05");
    } else if (is_sqlstate_class(state, "26")) {
        on_prepared_lost(c, p);
        query->repeats = true;
    } else if (query->prepare == POSTGRES_PREPARE_NONE && may_be_stale_statement(state)) {
        p->is_dead = p->is_dead || postgres_conn_is_reserved(c);
        query->repeats = true;
    }
}

/* Retires the connection, because its server was demoted: by now, its address may belong to another
 * server. */
static void retire_conn(struct postgres_conn *c)
{
    uint64_t now = mk_worker_now_ms(c->base.worker);
    if (c->retired_ms && now - c->retired_ms < RETIRE_MS)
        return;
    c->retired_ms = now;
    postgres_conn_retire(c);
}

/* Outside a transaction, a failed statement had no effect and can be retried. */
static void decide_retry_by_sqlstate(struct postgres_conn *c, struct postgres_query *query, const char *state)
{
    if (query->prepared)
        check_prepared_error(c, query, state);
    if (is_sqlstate_class(state, "57014") && (query->is_suspect || c->cancel))
        query->repeats = true;
    if (is_sqlstate_class(state, "25006") && !c->is_read_only)
        retire_conn(c);
    if (!query->is_query || !query->on_done || postgres_conn_is_reserved(c) ||
        query->n_repeats == REPEATS_MAX)
        query->repeats = false;
}

void postgres_retry_decide(struct postgres_conn *c, struct postgres_query *query, const PGresult *result)
{
    if (PQresultStatus(result) == PGRES_FATAL_ERROR) {
        const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
        decide_retry_by_sqlstate(c, query, state ? state : "");
    } else if (query->suspect_prepared) { /* the retry worked, so the prepared statement was stale */
        query->suspect_prepared->is_dead = true;
    }
}

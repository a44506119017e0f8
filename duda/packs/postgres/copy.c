/* SPDX-License-Identifier: Apache-2.0 */
/* COPY as straight-line calls: while it is under way, the handler itself waits for the socket. */
#include "copy.h"

#include <duda/asked.h>
#include <duda/memory.h>
#include <duda/wait.h>
#include <errno.h>
#include <monkey/mem.h>
#include <poll.h>

#include "sections.h"
#include "values.h"

/* libpq sends whenever it has a BLOCK of messages, each of which has a HEAD. */
enum { BLOCK = 8192, HEAD = 5, PIECE = BLOCK - HEAD, REST_MS = 500, WHY_SIZE = 600, ROW_MAX = 1 << 30 };

/* ---- Its end ---- */

static bool is_mine(const struct duda_postgres_copy *copy)
{
    return !copy->is_over && copy->conn && copy->conn->copying == copy;
}

static int explain(struct duda_postgres_copy *copy, int e, const char *why)
{
    mk_str text = mk_str_trim(mk_str_from_c(why));
    copy->result->problem = duda_print(copy->d, "[POSTGRES] %.*s: %.*s",
                                       MK_STR_ARG(copy->base->settings->name), MK_STR_ARG(text));
    return duda_reason(copy->d, e, "%.*s (%.100s)", MK_STR_ARG(mk_str_first(copy->result->problem, 350)),
                       copy->text);
}

static int over(struct duda_postgres_copy *copy, int e)
{
    copy->is_over = true;
    copy->error = e;
    pack_meter_end(copy->base->sql.meter, copy->begun, e);
    if (copy->conn && !copy->in_transaction)
        postgres_base_give(copy->base, copy->conn);
    return e;
}

/* The connection cannot be used any more. */
static int lose(struct duda_postgres_copy *copy, int e, const char *why)
{
    explain(copy, e, why);
    pack_link_fail(&copy->conn->link, e, why);
    return over(copy, e);
}

/* The server may be at work for long before it notices that nobody listens: another connection tells it, and
 * none but the session that runs this very COPY. */
static void stop(struct duda_postgres_copy *copy)
{
    const struct duda_sql_value values[] = {duda_sql_integer(PQbackendPID(copy->conn->pg)),
                                            duda_sql_text(mk_str_from_c(copy->text))};
    const struct duda_sql_query query = {"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                                         "pid = $1 AND left(query, 100) = left($2, 100)",
                                         values, MK_LEN(values)};
    pack_link_fail(&copy->conn->link, -ECANCELED, "a COPY was given up");
    over(copy, -ECANCELED);
    postgres_base_send(copy->base, NULL, &query);
}

static void forget(void *ctx)
{
    struct duda_postgres_copy *copy = ctx;
    if (is_mine(copy))
        stop(copy);
    else if (!copy->is_over) /* its transaction was ended, or its beginning was cancelled */
        over(copy, -ECANCELED);
    PQfreemem(copy->row);
    mk_buf_free(&copy->line);
    mk_mem_free(copy);
}

/* All results were taken, and the connection is as it was. */
static int finish(struct duda_postgres_copy *copy, int e)
{
    static const struct duda_sql_query loud = {"RESET client_min_messages", NULL, 0};
    struct duda_sql_result result;
    if (!postgres_conn_end_copy(copy->conn))
        return lose(copy, -ENOMEM, PQerrorMessage(copy->conn->pg));
    /* In a transaction that has failed they fail, and ROLLBACK does it. */
    postgres_base_send(copy->base, copy->conn, &loud);
    int reset = postgres_base_run(copy->d, copy->base, copy->conn, &result, "RESET statement_timeout");
    (void)reset;
    return over(copy, e);
}

/* ---- Waiting for the server ---- */

/* What the socket is ready for, or an error. */
static int wait_for(struct duda_postgres_copy *copy, unsigned events)
{
    uint32_t ms = copy->base->settings->timeout_ms;
    if (PQsocket(copy->conn->pg) < 0)
        return lose(copy, -ECONNRESET, PQerrorMessage(copy->conn->pg));
    int got = duda_ready(copy->d, PQsocket(copy->conn->pg), events, ms);
    if (got > 0 || duda_ended(copy->d))
        return got;
    return lose(copy, got, got == -ETIMEDOUT ? "no progress within Timeout" : strerror(-got));
}

static int consume(struct duda_postgres_copy *copy)
{
    if (PQconsumeInput(copy->conn->pg))
        return 0;
    return lose(copy, -ECONNRESET, PQerrorMessage(copy->conn->pg));
}

static int take_result(struct duda_postgres_copy *copy, PGresult **out)
{
    for (;;) {
        int left = PQflush(copy->conn->pg);
        if (left < 0)
            return lose(copy, -ECONNRESET, PQerrorMessage(copy->conn->pg));
        if (!left && !PQisBusy(copy->conn->pg))
            break;
        int e = wait_for(copy, left ? MK_READABLE | MK_WRITABLE : MK_READABLE);
        if (e < 0)
            return e;
        e = e & MK_READABLE ? consume(copy) : 0;
        if (e)
            return e;
    }
    *out = PQgetResult(copy->conn->pg);
    return 0;
}

static const char no_copy[] = "this is no COPY FROM STDIN or TO STDOUT";

/* 0, or what this result says went wrong. */
static int judge(struct duda_postgres_copy *copy, PGresult *result)
{
    char why[WHY_SIZE];
    uint64_t changed;
    ExecStatusType status = PQresultStatus(result);
    if (status == PGRES_FATAL_ERROR)
        return explain(copy, postgres_values_copy_error(result, why, sizeof why), why);
    if (status != PGRES_COMMAND_OK || !copy->is_begun)
        return explain(copy, -EINVAL, no_copy);
    if (mk_num_parse(mk_str_from_c(PQcmdTuples(result)), &changed))
        copy->result->changed = (int64_t)changed;
    return 0;
}

/* The results up to the last one, the first of which may be here already. */
static int take_rest(struct duda_postgres_copy *copy, PGresult *result)
{
    int error = 0, e = result ? 0 : take_result(copy, &result);
    while (!e && result) {
        error = error ? error : judge(copy, result);
        PQclear(result);
        e = take_result(copy, &result);
    }
    return e ? e : finish(copy, error);
}

/* ---- Its beginning ---- */

static void count_notice(void *ctx, const char *text)
{
    struct duda_postgres_copy *copy = ctx;
    (void)text;
    copy->n_notices++;
}

static int start(struct duda_postgres_copy *copy)
{
    PGresult *result = NULL;
    if (!postgres_conn_begin_copy(copy->conn, copy->text, copy))
        return lose(copy, -ECONNRESET, PQerrorMessage(copy->conn->pg));
    PQsetNoticeProcessor(copy->conn->pg, count_notice, copy);
    int e = take_result(copy, &result);
    if (e)
        return e;
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COPY_IN && status != PGRES_COPY_OUT)
        return take_rest(copy, result);
    copy->is_begun = true;
    copy->is_in = status == PGRES_COPY_IN;
    PQclear(result);
    return 0;
}

static struct duda_postgres_copy *make(struct duda *d, struct postgres_base *b,
                                       struct duda_sql_result *result, const char *text)
{
    struct duda_postgres_copy *copy = mk_mem_zalloc(1, sizeof *copy);
    mk_str kept = duda_copy(d, mk_str_from_c(text));
    if (!copy || !kept.p) {
        mk_mem_free(copy);
        return NULL;
    }
    copy->d = d;
    copy->base = b;
    copy->result = result;
    copy->text = kept.p;
    copy->line = mk_buf_growing(ROW_MAX);
    copy->begun = pack_meter_begin(b->sql.meter);
    return duda_defer(d, forget, copy) ? NULL : copy;
}

/* The server stops a statement by its time; a COPY goes on as long as both sides do. A notice would be of use
 * to nobody, and may hide an error behind it: see look(). */
static const char settings[] = "SELECT set_config('statement_timeout', '0', false), "
                               "set_config('client_min_messages', 'error', false)";

static int begin(struct duda_postgres_copy *copy)
{
    if (!postgres_statement_read(mk_str_from_c(copy->text)).copies) /* the server would run it */
        return over(copy, explain(copy, -EINVAL, no_copy));
    copy->conn = duda_sql_session(copy->d, &copy->base->sql);
    copy->in_transaction = copy->conn != NULL;
    int e = copy->conn ? 0 : postgres_base_take(copy->d, copy->base, &copy->conn);
    if (e)
        return over(copy, explain(copy, e, postgres_base_why(copy->base, e)));
    e = postgres_base_run(copy->d, copy->base, copy->conn, copy->result, settings);
    if (e && duda_ended(copy->d) &&
        !copy->in_transaction) /* may have been done: nobody else is to inherit it */
        pack_link_fail(&copy->conn->link, -ECANCELED, "a COPY was given up");
    return e ? over(copy, e) : start(copy);
}

/* It is counted from here to its end, not as the other calls are. */
static int open_copy(struct duda *d, struct postgres_base *b, struct duda_sql_result *result,
                     const char *text, struct duda_postgres_copy **out)
{
    if (!b)
        return -EOPNOTSUPP;
    if (strlen(text) > DUDA_SQL_TEXT_MAX)
        return -EMSGSIZE;
    struct duda_postgres_copy *copy = make(d, b, result, text);
    int e = copy ? begin(copy) : -ENOMEM;
    if (!e)
        *out = copy;
    return e;
}

int duda_postgres_copy(struct duda *d, struct duda_sql *db, struct duda_sql_result *result, const char *text,
                       struct duda_postgres_copy **out)
{
    if (!db) {
        *result = (struct duda_sql_result){.problem = MK_STR("there is no such [SQLITE] or [POSTGRES]")};
        *out = NULL;
        return -ENODEV;
    }
    struct pack_call call;
    *out = NULL;
    *result = (struct duda_sql_result){.problem = MK_STR("")};
    int e = pack_call_begin(&call, d, NULL);
    return pack_call_end(&call, e ? e : open_copy(d, postgres_base_of(db), result, text, out));
}

/* ---- FROM STDIN ---- */

/* What libpq reads now is a notice as a whole (1), or an error or the end of the connection (0). libpq tells
 * of notices only: an error is what nothing follows, while the rest of a long notice does. */
static int is_notice(struct duda_postgres_copy *copy)
{
    PGconn *pg = copy->conn->pg;
    unsigned before = copy->n_notices;
    int got = MK_READABLE;
    while (got > 0 && PQconsumeInput(pg) && PQputCopyData(pg, "", 0) > 0) { /* sends nothing, sees notices */
        if (copy->n_notices != before)
            return 1;
        got = duda_ready(copy->d, PQsocket(pg), MK_READABLE, REST_MS);
    }
    return duda_ended(copy->d); /* the time of this wait may be over, too, and that is no error */
}

/* Something came in the middle: an error, the end of the connection, or a notice (INFO has no setting that
 * keeps it off). Since PostgreSQL 14 parameters that change are reported behind the command. */
static int look(struct duda_postgres_copy *copy)
{
    int e = is_notice(copy);
    if (e)
        return e < 0 ? e : 0;
    if (PQputCopyEnd(copy->conn->pg, "the server has said something") < 0)
        return lose(copy, -ECONNRESET, PQerrorMessage(copy->conn->pg));
    e = take_rest(copy, NULL);
    return e ? e : -EREMOTEIO;
}

/* Waits until the socket takes a block. libpq must not find it full: it would read what the server says then,
 * an error too, and keep it until the end of the COPY. */
static int make_room(struct duda_postgres_copy *copy)
{
    struct pollfd ready = {.fd = PQsocket(copy->conn->pg), .events = POLLIN | POLLOUT};
    int e = 0;
    while (e >= 0 && (poll(&ready, 1, 0) <= 0 || ready.revents != POLLOUT))
        e = ready.revents & ~POLLOUT ? look(copy) : wait_for(copy, MK_READABLE | MK_WRITABLE);
    return e < 0 ? e : 0;
}

static int check(const struct duda_postgres_copy *copy, bool is_in)
{
    return is_mine(copy) && copy->is_in == is_in ? 0 : copy->error ? copy->error : -EINVAL;
}

static int put_piece(struct duda_postgres_copy *copy, mk_str piece)
{
    size_t len = copy->unsent + HEAD + piece.len;
    int e = len >= BLOCK ? make_room(copy) : 0;
    if (e)
        return e;
    if (PQputCopyData(copy->conn->pg, piece.p, (int)piece.len) != 1)
        return lose(copy, -ENOMEM, PQerrorMessage(copy->conn->pg));
    copy->unsent = len % BLOCK;
    return 0;
}

int duda_postgres_put(struct duda *d, struct duda_postgres_copy *copy, mk_str bytes)
{
    struct pack_call call;
    int e = pack_call_begin(&call, d, NULL);
    e = e ? e : check(copy, true);
    while (!e && bytes.len) {
        e = put_piece(copy, mk_str_first(bytes, PIECE));
        bytes = mk_str_skip(bytes, PIECE);
    }
    return pack_call_end(&call, e);
}

int duda_postgres_put_values(struct duda *d, struct duda_postgres_copy *copy,
                             const struct duda_sql_value *values, size_t n)
{
    mk_buf_clear(&copy->line);
    postgres_row_write(&copy->line, values, n);
    return copy->line.failed ? -ENOMEM : duda_postgres_put(d, copy, mk_buf_str(&copy->line));
}

/* ---- TO STDOUT ---- */

static int get(struct duda_postgres_copy *copy, mk_str *row)
{
    int e = check(copy, false), n = 0;
    PQfreemem(copy->row);
    copy->row = NULL;
    while (!e && (n = PQgetCopyData(copy->conn->pg, &copy->row, 1)) == 0) {
        e = wait_for(copy, MK_READABLE);
        e = e > 0 ? consume(copy) : e;
    }
    if (e)
        return e;
    if (n < 0)
        return take_rest(copy, NULL);
    *row = mk_str_of(copy->row, (size_t)n);
    return 0;
}

int duda_postgres_get(struct duda *d, struct duda_postgres_copy *copy, mk_str *row)
{
    struct pack_call call;
    *row = MK_ABSENT;
    int e = pack_call_begin(&call, d, NULL);
    return pack_call_end(&call, e ? e : get(copy, row));
}

/* ---- Both ---- */

static int end_copy(struct duda_postgres_copy *copy)
{
    if (!is_mine(copy))
        return over(copy, explain(copy, -EINVAL, "its transaction is over"));
    if (!copy->is_in) {
        stop(copy);
        copy->error = 0;
        return 0;
    }
    if (PQputCopyEnd(copy->conn->pg, NULL) != 1)
        return lose(copy, -ENOMEM, PQerrorMessage(copy->conn->pg));
    return take_rest(copy, NULL);
}

int duda_postgres_copy_end(struct duda *d, struct duda_postgres_copy *copy)
{
    struct pack_call call;
    if (copy->is_over)
        return copy->error;
    int e = pack_call_begin(&call, d, NULL);
    return pack_call_end(&call, e ? e : end_copy(copy));
}

mk_str duda_postgres_quote(struct duda *d, mk_str text)
{
    struct mk_buf out = mk_buf_growing(2 * text.len + 8);
    if (!text.p)
        return duda_copy(d, MK_STR("NULL"));
    postgres_text_quote(&out, text);
    mk_str quoted = out.failed ? MK_ABSENT : duda_copy(d, mk_buf_str(&out));
    mk_buf_free(&out);
    return quoted;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* COPY as sequential code: the handler itself waits for the socket. */
#include <duda/memory.h>
#include <duda/request.h>
#include <duda/wait.h>
#include <errno.h>
#include <monkey/mem.h>
#include <poll.h>

#include "common/package.h"
#include "pool.h"
#include "result.h"
#include "text_format.h"

/* libpq sends its messages, each with a header of HEAD bytes, in blocks of BLOCK bytes. */
enum { BLOCK = 8192, HEAD = 5, PIECE = BLOCK - HEAD, REST_MS = 500, WHY_SIZE = 600, ROW_MAX = 1 << 30 };

struct duda_postgres_copy {
    struct duda_ctx *d;
    struct postgres_pool *pool;
    struct postgres_conn *conn; /* valid only while conn->copying is this COPY */
    struct duda_sql_result *result;
    const char *text;
    uint64_t began_us;
    bool is_begun, is_in, in_transaction, is_over;
    int error;
    size_t unsent; /* bytes buffered in libpq to fill a block */
    unsigned n_notices;
    char *row;          /* allocated by libpq */
    struct mk_buf line; /* a row of values */
};

/* ---- End ---- */

static bool is_copy_active(const struct duda_postgres_copy *copy)
{
    return !copy->is_over && copy->conn && copy->conn->copying == copy;
}

static int set_copy_error(struct duda_postgres_copy *copy, int e, const char *message)
{
    mk_str text = mk_str_trim(mk_str_from_c(message));
    copy->result->error = duda_sprintf(copy->d, "[POSTGRES] %.*s: %.*s",
                                       MK_STR_ARG(copy->pool->settings->name), MK_STR_ARG(text));
    return duda_reason(copy->d, e, "%.*s (%.100s)", MK_STR_ARG(mk_str_first(copy->result->error, 350)),
                       copy->text);
}

static int close_copy(struct duda_postgres_copy *copy, int e)
{
    copy->is_over = true;
    copy->error = e;
    package_meter_end(copy->pool->sql.meter, copy->began_us, e);
    if (copy->conn && !copy->in_transaction)
        postgres_pool_release(copy->pool, copy->conn);
    return e;
}

/* Closes the connection, which is unusable after this error. */
static int fail_connection(struct duda_postgres_copy *copy, int e, const char *message)
{
    set_copy_error(copy, e, message);
    package_conn_fail(&copy->conn->base, e, message);
    return close_copy(copy, e);
}

/* Ends the COPY on the server, which might work for a long time before it notices the disconnect. A statement
 * on another connection terminates the session, but only if this session still runs the same COPY. */
static void cancel_on_server(struct duda_postgres_copy *copy)
{
    const struct duda_sql_value values[] = {duda_sql_integer(PQbackendPID(copy->conn->pg)),
                                            duda_sql_text(mk_str_from_c(copy->text))};
    const struct duda_sql_statement query = {"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                                             "pid = $1 AND left(query, 100) = left($2, 100)",
                                             values, MK_LEN(values)};
    package_conn_fail(&copy->conn->base, -ECANCELED, "a COPY was cancelled");
    close_copy(copy, -ECANCELED);
    postgres_pool_send_detached(copy->pool, NULL, &query);
}

static void free_copy(void *ctx)
{
    struct duda_postgres_copy *copy = ctx;
    if (is_copy_active(copy))
        cancel_on_server(copy);
    else if (!copy->is_over) /* the transaction of the COPY has ended, or its start was cancelled */
        close_copy(copy, -ECANCELED);
    PQfreemem(copy->row);
    mk_buf_free(&copy->line);
    mk_mem_free(copy);
}

/* Restores the session settings after all results have been read. */
static int finish_copy(struct duda_postgres_copy *copy, int e)
{
    static const struct duda_sql_statement reset_verbosity = {"RESET client_min_messages", NULL, 0};
    struct duda_sql_result result;
    if (!postgres_conn_end_copy(copy->conn))
        return fail_connection(copy, -ENOMEM, PQerrorMessage(copy->conn->pg));
    /* In a failed transaction these statements fail, but the ROLLBACK that follows also resets the
     * settings. */
    postgres_pool_send_detached(copy->pool, copy->conn, &reset_verbosity);
    int reset = postgres_pool_query(copy->d, copy->pool, copy->conn, &result, "RESET statement_timeout");
    (void)reset;
    return close_copy(copy, e);
}

/* ---- Waiting for the server ---- */

/* Returns the events for which the socket is ready, or an error. */
static int wait_socket(struct duda_postgres_copy *copy, unsigned events)
{
    uint32_t ms = copy->pool->settings->timeout_ms;
    if (PQsocket(copy->conn->pg) < 0)
        return fail_connection(copy, -ECONNRESET, PQerrorMessage(copy->conn->pg));
    int got = duda_wait_fd(copy->d, PQsocket(copy->conn->pg), events, ms);
    if (got > 0 || duda_cancelled(copy->d))
        return got;
    return got == -ETIME ? fail_connection(copy, -ETIMEDOUT, "no progress within Timeout")
                         : fail_connection(copy, got, strerror(-got));
}

static int consume_socket_input(struct duda_postgres_copy *copy)
{
    if (PQconsumeInput(copy->conn->pg))
        return 0;
    return fail_connection(copy, -ECONNRESET, PQerrorMessage(copy->conn->pg));
}

static int next_result(struct duda_postgres_copy *copy, PGresult **out)
{
    for (;;) {
        int left = PQflush(copy->conn->pg);
        if (left < 0)
            return fail_connection(copy, -ECONNRESET, PQerrorMessage(copy->conn->pg));
        if (!left && !PQisBusy(copy->conn->pg))
            break;
        int e = wait_socket(copy, left ? MK_READABLE | MK_WRITABLE : MK_READABLE);
        if (e < 0)
            return e;
        e = e & MK_READABLE ? consume_socket_input(copy) : 0;
        if (e)
            return e;
    }
    *out = PQgetResult(copy->conn->pg);
    return 0;
}

static const char no_copy[] = "this is not a COPY FROM STDIN or TO STDOUT";

/* Returns 0, or the error in the result. */
static int check_result(struct duda_postgres_copy *copy, PGresult *result)
{
    char message[WHY_SIZE];
    struct duda_sql_violation violation;
    uint64_t changed;
    ExecStatusType status = PQresultStatus(result);
    if (postgres_result_violation(result, &violation))
        duda_sql_set_violation(copy->d, copy->result, &violation);
    if (status == PGRES_FATAL_ERROR)
        return set_copy_error(copy, postgres_copy_result_errno(result, message, sizeof message), message);
    if (status != PGRES_COMMAND_OK || !copy->is_begun)
        return set_copy_error(copy, -EINVAL, no_copy);
    if (mk_num_parse(mk_str_from_c(PQcmdTuples(result)), &changed))
        copy->result->rows_affected = (int64_t)changed;
    return 0;
}

/* Reads all remaining results; `result`, unless NULL, is the first of them. */
static int drain_results(struct duda_postgres_copy *copy, PGresult *result)
{
    int error = 0, e = result ? 0 : next_result(copy, &result);
    while (!e && result) {
        error = error ? error : check_result(copy, result);
        PQclear(result);
        e = next_result(copy, &result);
    }
    return e ? e : finish_copy(copy, error);
}

/* ---- Start ---- */

static void count_notice(void *ctx, const char *text)
{
    struct duda_postgres_copy *copy = ctx;
    (void)text;
    copy->n_notices++;
}

static int start_copy(struct duda_postgres_copy *copy)
{
    PGresult *result = NULL;
    if (!postgres_conn_begin_copy(copy->conn, copy->text, copy))
        return fail_connection(copy, -ECONNRESET, PQerrorMessage(copy->conn->pg));
    PQsetNoticeProcessor(copy->conn->pg, count_notice, copy);
    int e = next_result(copy, &result);
    if (e)
        return e;
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COPY_IN && status != PGRES_COPY_OUT)
        return drain_results(copy, result);
    copy->is_begun = true;
    copy->is_in = status == PGRES_COPY_IN;
    PQclear(result);
    return 0;
}

static struct duda_postgres_copy *copy_new(struct duda_ctx *d, struct postgres_pool *b,
                                           struct duda_sql_result *result, const char *text)
{
    struct duda_postgres_copy *copy = mk_mem_zalloc(1, sizeof *copy);
    mk_str kept = duda_strdup(d, mk_str_from_c(text));
    if (!copy || !kept.p) {
        mk_mem_free(copy);
        return NULL;
    }
    copy->d = d;
    copy->pool = b;
    copy->result = result;
    copy->text = kept.p;
    copy->line = mk_buf_growing(ROW_MAX);
    copy->began_us = package_meter_begin(b->sql.meter);
    return duda_defer(d, free_copy, copy) ? NULL : copy;
}

/* Disables the statement timeout of the server, because a COPY may take as long as both sides make progress.
 * Suppresses notices, because no code reads them and they may hide a later error: see
 * handle_interruption(). */
static const char settings[] = "SELECT set_config('statement_timeout', '0', false), "
                               "set_config('client_min_messages', 'error', false)";

static int begin_copy(struct duda_postgres_copy *copy)
{
    /* Rejects all other statements here, because the server would execute them. */
    if (!postgres_statement_classify(mk_str_from_c(copy->text)).copies)
        return close_copy(copy, set_copy_error(copy, -EINVAL, no_copy));
    copy->conn = duda_sql_session(copy->d, &copy->pool->sql);
    copy->in_transaction = copy->conn != NULL;
    int e = copy->conn ? 0 : postgres_pool_acquire(copy->d, copy->pool, &copy->conn);
    if (e)
        return close_copy(copy, set_copy_error(copy, e, postgres_pool_error_text(copy->pool, e)));
    e = postgres_pool_query(copy->d, copy->pool, copy->conn, copy->result, settings);
    if (e && duda_cancelled(copy->d) &&
        !copy->in_transaction) /* the settings may have changed: the session must not be reused */
        package_conn_fail(&copy->conn->base, -ECANCELED, "a COPY was cancelled");
    return e ? close_copy(copy, e) : start_copy(copy);
}

/* The metrics measure the whole COPY from here to its end, not each call. */
static int open_copy(struct duda_ctx *d, struct postgres_pool *b, struct duda_sql_result *result,
                     const char *text, struct duda_postgres_copy **out)
{
    *result = (struct duda_sql_result){0};
    if (!b)
        return -EOPNOTSUPP;
    if (strlen(text) > DUDA_SQL_TEXT_MAX)
        return -EMSGSIZE;
    struct duda_postgres_copy *copy = copy_new(d, b, result, text);
    int e = copy ? begin_copy(copy) : -ENOMEM;
    if (!e)
        *out = copy;
    return e;
}

int duda_postgres_copy(struct duda_ctx *d, struct duda_sql_db *db, struct duda_sql_result *result,
                       const char *text, struct duda_postgres_copy **out)
{
    if (!db) {
        *result =
            (struct duda_sql_result){.error = MK_STR("there is no such section [SQLITE] or [POSTGRES]")};
        *out = NULL;
        return -ENODEV;
    }
    struct package_call call;
    *out = NULL;
    *result = (struct duda_sql_result){.error = MK_STR("")};
    int e = package_call_begin(&call, d, NULL);
    return package_call_end(&call, e ? e : open_copy(d, postgres_pool_from_sql(db), result, text, out));
}

/* ---- FROM STDIN ---- */

/* Returns 1 if the unexpected input is a notice, 0 if it is an error or the end of the connection, or the
 * error of a cancelled wait. libpq reports a notice as soon as it has read all of it, but does not report an
 * error. After an error no more data arrives, whereas the rest of a long notice does. */
static int check_for_notice(struct duda_postgres_copy *copy)
{
    PGconn *pg = copy->conn->pg;
    unsigned before = copy->n_notices;
    int got = MK_READABLE;
    while (got > 0 && PQconsumeInput(pg) && PQputCopyData(pg, "", 0) > 0) { /* only reads notices */
        if (copy->n_notices != before)
            return 1;
        got = duda_wait_fd(copy->d, PQsocket(pg), MK_READABLE, REST_MS);
    }
    return duda_cancelled(copy->d); /* the timeout of this wait may also expire, which is not an error */
}

/* Handles unexpected input: an error, the end of the connection, or a notice (no setting suppresses INFO).
 * Parameter changes cannot occur: since PostgreSQL 14, the server reports them after the command. */
static int handle_interruption(struct duda_postgres_copy *copy)
{
    int e = check_for_notice(copy);
    if (e)
        return e < 0 ? e : 0;
    if (PQputCopyEnd(copy->conn->pg, "the server has sent a message") < 0)
        return fail_connection(copy, -ECONNRESET, PQerrorMessage(copy->conn->pg));
    e = drain_results(copy, NULL);
    return e ? e : -EREMOTEIO;
}

/* Waits until the socket accepts a block. Otherwise, libpq would find the socket full, read the server's
 * messages, including errors, and keep them until the end of the COPY. */
static int wait_until_writable(struct duda_postgres_copy *copy)
{
    struct pollfd ready = {.fd = PQsocket(copy->conn->pg), .events = POLLIN | POLLOUT};
    int e = 0;
    while (e >= 0 && (poll(&ready, 1, 0) <= 0 || ready.revents != POLLOUT))
        e = ready.revents & ~POLLOUT ? handle_interruption(copy)
                                     : wait_socket(copy, MK_READABLE | MK_WRITABLE);
    return e < 0 ? e : 0;
}

static int check_copy_direction(const struct duda_postgres_copy *copy, bool is_in)
{
    return is_copy_active(copy) && copy->is_in == is_in ? 0 : copy->error ? copy->error : -EINVAL;
}

static int write_chunk(struct duda_postgres_copy *copy, mk_str piece)
{
    size_t len = copy->unsent + HEAD + piece.len;
    int e = len >= BLOCK ? wait_until_writable(copy) : 0;
    if (e)
        return e;
    if (PQputCopyData(copy->conn->pg, piece.p, (int)piece.len) != 1)
        return fail_connection(copy, -ENOMEM, PQerrorMessage(copy->conn->pg));
    copy->unsent = len % BLOCK;
    return 0;
}

int duda_postgres_copy_write(struct duda_ctx *d, struct duda_postgres_copy *copy, mk_str bytes)
{
    struct package_call call;
    int e = package_call_begin(&call, d, NULL);
    e = e ? e : check_copy_direction(copy, true);
    while (!e && bytes.len) {
        e = write_chunk(copy, mk_str_first(bytes, PIECE));
        bytes = mk_str_skip(bytes, PIECE);
    }
    return package_call_end(&call, e);
}

int duda_postgres_copy_write_values(struct duda_ctx *d, struct duda_postgres_copy *copy,
                                    const struct duda_sql_value *values, size_t n)
{
    mk_buf_clear(&copy->line);
    postgres_copy_row_format(&copy->line, values, n);
    return copy->line.failed ? -ENOMEM : duda_postgres_copy_write(d, copy, mk_buf_str(&copy->line));
}

/* ---- TO STDOUT ---- */

static int read_row(struct duda_postgres_copy *copy, mk_str *row)
{
    int e = check_copy_direction(copy, false), n = 0;
    PQfreemem(copy->row);
    copy->row = NULL;
    while (!e && (n = PQgetCopyData(copy->conn->pg, &copy->row, 1)) == 0) {
        e = wait_socket(copy, MK_READABLE);
        e = e > 0 ? consume_socket_input(copy) : e;
    }
    if (e)
        return e;
    if (n < 0)
        return drain_results(copy, NULL);
    *row = mk_str_of(copy->row, (size_t)n);
    return 0;
}

int duda_postgres_copy_read(struct duda_ctx *d, struct duda_postgres_copy *copy, mk_str *row)
{
    struct package_call call;
    *row = MK_STR_NULL;
    int e = package_call_begin(&call, d, NULL);
    return package_call_end(&call, e ? e : read_row(copy, row));
}

/* ---- Both directions ---- */

static int end_copy(struct duda_postgres_copy *copy)
{
    if (!is_copy_active(copy))
        return close_copy(copy, set_copy_error(copy, -EINVAL, "its transaction has ended"));
    if (!copy->is_in) {
        cancel_on_server(copy);
        copy->error = 0;
        return 0;
    }
    if (PQputCopyEnd(copy->conn->pg, NULL) != 1)
        return fail_connection(copy, -ENOMEM, PQerrorMessage(copy->conn->pg));
    return drain_results(copy, NULL);
}

int duda_postgres_copy_end(struct duda_ctx *d, struct duda_postgres_copy *copy)
{
    struct package_call call;
    if (copy->is_over)
        return copy->error;
    int e = package_call_begin(&call, d, NULL);
    return package_call_end(&call, e ? e : end_copy(copy));
}

mk_str duda_postgres_quote(struct duda_ctx *d, mk_str text)
{
    struct mk_buf out = mk_buf_growing(2 * text.len + 8);
    if (!text.p)
        return duda_strdup(d, MK_STR("NULL"));
    postgres_quote_literal(&out, text);
    mk_str quoted = out.failed ? MK_STR_NULL : duda_strdup(d, mk_buf_str(&out));
    mk_buf_free(&out);
    return quoted;
}

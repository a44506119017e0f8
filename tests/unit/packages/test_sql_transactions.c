/* SPDX-License-Identifier: Apache-2.0 */
/* Transactions of handlers, on a fake database that counts its sessions. */
#include "sql/transactions.h"

#include <duda/log.h>
#include <duda/memory.h>
#include <duda/response.h>
#include <errno.h>
#include <stdio.h>

#include "unit/test.h"

/* ---- Fake Duda ---- */

enum { HANDLERS = 3 };

static struct call {
    struct duda_ctx *d;
    void (*fn)(void *ctx);
    void *ctx;
} deferred[HANDLERS];
static size_t n_deferred, defers_left;
static char handlers[HANDLERS];

static struct duda_ctx *handler(size_t i)
{
    return (struct duda_ctx *)(void *)&handlers[i];
}

int duda_defer(struct duda_ctx *d, void (*fn)(void *ctx), void *ctx)
{
    if (!defers_left) {
        fn(ctx);
        return -ENOMEM;
    }
    assert_true(n_deferred < HANDLERS); /* each handler defers at most one function */
    defers_left--;
    deferred[n_deferred++] = (struct call){d, fn, ctx};
    return 0;
}

bool duda_undefer(struct duda_ctx *d, void (*fn)(void *ctx), void *ctx)
{
    for (size_t i = 0; i < n_deferred; i++)
        if (deferred[i].d == d && deferred[i].fn == fn && deferred[i].ctx == ctx) {
            deferred[i] = deferred[--n_deferred];
            return true;
        }
    return false;
}

static int handler_result;
static unsigned handler_status, n_logged;

int duda_result(struct duda_ctx *d)
{
    (void)d;
    return handler_result;
}

unsigned duda_response_status(struct duda_ctx *d)
{
    (void)d;
    return handler_status;
}

void duda_log_handler(struct duda_ctx *d, enum mk_log_level level, const char *fmt, ...)
{
    (void)d, (void)level, (void)fmt;
    n_logged++;
}

/* Ends the handler, which runs its deferred functions. */
static void end_handler(struct duda_ctx *d)
{
    for (size_t i = n_deferred; i--;) {
        struct call call = deferred[i];
        if (call.d == d && duda_undefer(d, call.fn, call.ctx))
            call.fn(call.ctx);
    }
}

/* ---- Fake database ---- */

static char sessions[HANDLERS * 1000];
static size_t n_begun, n_taken, n_committed, n_rolled_back;
static int begin_answers, finish_answers;

static char log_of_statements[1024];
static int statement_answers;

static int run_statement(struct duda_ctx *d, struct duda_sql_db *db, void *session,
                         struct duda_sql_result *out, const struct duda_sql_statement *query)
{
    (void)d, (void)db, (void)out;
    assert_non_null(session);
    size_t len = strlen(log_of_statements);
    snprintf(log_of_statements + len, sizeof log_of_statements - len, "%s;", query->text);
    return statement_answers;
}

static int begin(struct duda_ctx *d, struct duda_sql_db *db, struct duda_sql_result *result,
                 const struct duda_sql_transaction_options *options, void **session)
{
    (void)d, (void)db, (void)result, (void)options;
    if (begin_answers)
        return begin_answers;
    *session = &sessions[n_begun++ % sizeof sessions];
    n_taken++;
    return 0;
}

static int finish(struct duda_ctx *d, struct duda_sql_db *db, void *session, struct duda_sql_result *result,
                  bool commits)
{
    (void)d, (void)db, (void)result, (void)commits;
    assert_non_null(session);
    return finish_answers;
}

static void end(struct duda_sql_db *db, void *session, bool over)
{
    (void)db;
    assert_non_null(session);
    n_taken--;
    *(over ? &n_committed : &n_rolled_back) += 1;
}

static const struct duda_sql_ops ops = {
    .run_statement = run_statement, .begin = begin, .finish = finish, .release = end};
static struct duda_sql_db shop = {.ops = &ops}, bank = {.ops = &ops};
static struct sql_transactions all;
static struct duda_sql_result result;
static const struct duda_sql_transaction_options options = {0};

static void setup(void)
{
    log_of_statements[0] = '\0';
    statement_answers = 0;
    n_deferred = n_begun = n_taken = n_committed = n_rolled_back = 0;
    defers_left = SIZE_MAX;
    begin_answers = finish_answers = 0;
    handler_result = 0;
    handler_status = n_logged = 0;
}

static void teardown(void)
{
    assert_null(all.first);
    assert_int_equal(n_deferred, 0);
    assert_int_equal(n_taken, 0);
}

/* ---- Tests ---- */

static void transaction_handler_has_one_per_database(void **state)
{
    (void)state;
    assert_null(sql_transactions_session(&all, handler(0), &shop));
    assert_int_equal(sql_transactions_begin(&all, handler(0), &shop, &options, &result), 0);
    assert_int_equal(sql_transactions_begin(&all, handler(1), &shop, &options, &result), 0);
    assert_int_equal(sql_transactions_begin(&all, handler(0), &bank, &options, &result), 0);
    assert_ptr_equal(sql_transactions_session(&all, handler(0), &shop), &sessions[0]);
    assert_ptr_equal(sql_transactions_session(&all, handler(1), &shop), &sessions[1]);
    assert_ptr_equal(sql_transactions_session(&all, handler(0), &bank), &sessions[2]);
    assert_null(sql_transactions_session(&all, handler(1), &bank));
    assert_int_equal(sql_transactions_finish(&all, handler(0), &shop, &result, true), 0);
    assert_null(sql_transactions_session(&all, handler(0), &shop));
    assert_int_equal(sql_transactions_finish(&all, handler(0), &shop, &result, true), -EINVAL);
    assert_int_equal(n_committed, 1);
    end_handler(handler(0));
    assert_int_equal(n_rolled_back, 1);
    assert_null(sql_transactions_session(&all, handler(0), &bank));
    end_handler(handler(1));
    assert_int_equal(n_rolled_back, 2);
}

/* A WebSocket handler may run one transaction for each message. */
static void transaction_ended_leaves_no_memory_in_long_handler(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sessions; i++) {
        assert_int_equal(sql_transactions_begin(&all, handler(0), &shop, &options, &result), 0);
        assert_int_equal(n_deferred, 1);
        finish_answers = i % 3 ? 0 : -ECONNRESET;
        assert_int_equal(sql_transactions_finish(&all, handler(0), &shop, &result, i % 2), finish_answers);
        assert_int_equal(n_deferred, 0);
        assert_null(all.first);
    }
    assert_int_equal(n_committed, sizeof sessions / 3 * 2);
    assert_int_equal(n_rolled_back, sizeof sessions / 3);
}

static void transaction_nested_uses_savepoints(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(sql_transactions_begin(&all, handler(0), &shop, &options, &result), 0);
    assert_int_equal(n_taken, 1);
    assert_int_equal(sql_transactions_finish(&all, handler(0), &shop, &result, true), 0);
    assert_int_equal(sql_transactions_finish(&all, handler(0), &shop, &result, false), 0);
    assert_string_equal(log_of_statements, "SAVEPOINT duda_1;SAVEPOINT duda_2;RELEASE SAVEPOINT duda_2;"
                                           "ROLLBACK TO SAVEPOINT duda_1;RELEASE SAVEPOINT duda_1;");
    assert_int_equal(sql_transactions_finish(&all, handler(0), &shop, &result, true), 0);
    assert_int_equal(n_committed, 1);
    assert_int_equal(sql_transactions_finish(&all, handler(0), &shop, &result, true), -EINVAL);
}

static void transaction_failed_savepoint_is_undone(void **state)
{
    const struct duda_sql_transaction_options strict = {.isolation = DUDA_SQL_SERIALIZABLE};
    (void)state;
    assert_int_equal(sql_transactions_begin(&all, handler(0), &shop, &strict, &result), 0);
    assert_int_equal(sql_transactions_begin(&all, handler(0), &shop, &strict, &result), -EINVAL);
    statement_answers = -EREMOTEIO;
    assert_int_equal(sql_transactions_begin(&all, handler(0), &shop, &options, &result), -EREMOTEIO);
    statement_answers = 0;
    assert_int_equal(sql_transactions_begin(&all, handler(0), &shop, &options, &result), 0);
    statement_answers = -EREMOTEIO;
    assert_int_equal(sql_transactions_finish(&all, handler(0), &shop, &result, true), -EREMOTEIO);
    assert_string_equal(log_of_statements, "SAVEPOINT duda_1;SAVEPOINT duda_1;RELEASE SAVEPOINT duda_1;"
                                           "ROLLBACK TO SAVEPOINT duda_1;");
    assert_int_equal(sql_transactions_finish(&all, handler(0), &shop, &result, true), 0);
    assert_int_equal(n_committed, 1);
}

static void transaction_failed_begin_leaves_nothing(void **state)
{
    (void)state;
    begin_answers = -ETIMEDOUT;
    assert_int_equal(sql_transactions_begin(&all, handler(0), &shop, &options, &result), -ETIMEDOUT);
    assert_int_equal(n_deferred, 0);
    begin_answers = 0;
    defers_left = 0;
    assert_int_equal(sql_transactions_begin(&all, handler(0), &shop, &options, &result), -ENOMEM);
    assert_int_equal(n_rolled_back, 1);
    assert_null(sql_transactions_session(&all, handler(0), &shop));
}

static unsigned count_reports(const struct duda_sql_transaction_options *how, int handler_returns,
                              unsigned status)
{
    n_logged = 0;
    handler_result = handler_returns;
    handler_status = status;
    assert_int_equal(sql_transactions_begin(&all, handler(0), &shop, how, &result), 0);
    end_handler(handler(0));
    return n_logged;
}

static void transaction_abandoned_by_success_is_reported(void **state)
{
    const struct duda_sql_transaction_options read_only = {.read_only = true};
    (void)state;
    assert_int_equal(count_reports(&options, 0, 200), 1);
    assert_int_equal(count_reports(&options, 303, 303), 1);
    assert_int_equal(count_reports(&options, 0, 0), 1); /* a task */
    assert_int_equal(count_reports(&read_only, 0, 200), 0);
    assert_int_equal(count_reports(&options, 404, 404), 0);
    assert_int_equal(count_reports(&options, -EIO, 500), 0);
    assert_int_equal(count_reports(&options, 1, 422), 0); /* DUDA_HANDLED */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(transaction_handler_has_one_per_database, setup, teardown),
        fixture_test(transaction_ended_leaves_no_memory_in_long_handler, setup, teardown),
        fixture_test(transaction_nested_uses_savepoints, setup, teardown),
        fixture_test(transaction_failed_savepoint_is_undone, setup, teardown),
        fixture_test(transaction_failed_begin_leaves_nothing, setup, teardown),
        fixture_test(transaction_abandoned_by_success_is_reported, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

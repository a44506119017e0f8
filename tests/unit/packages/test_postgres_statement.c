/* SPDX-License-Identifier: Apache-2.0 */
/* The parser recognizes, in any spelling, what a statement does to the connection that all handlers share. */
#include <postgres/statement.h>

#include "unit/test.h"

static const char *statement_text(const char *text)
{
    static char buffer[8];
    struct postgres_statement s = postgres_statement_classify(mk_str_from_c(text));
    char *at = buffer;
    const struct {
        bool is;
        char letter;
    } all[] = {{s.is_empty, '-'}, {s.is_query, 'q'},        {s.controls_transaction, 't'},
               {s.copies, 'c'},   {s.changes_session, 's'}, {s.reads_session, 'r'}};
    for (size_t i = 0; i < MK_LEN(all); i++)
        if (all[i].is)
            *at++ = all[i].letter;
    *at = 0;
    return buffer;
}

struct pair {
    const char *text, *is;
};

static void check(const struct pair *all, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(statement_text(all[i].text), all[i].is) != 0)
            fail_msg("`%s` is `%s`, not `%s`", all[i].text, statement_text(all[i].text), all[i].is);
}

static void statement_queries_can_be_prepared(void **state)
{
    static const struct pair all[] = {
        {"SELECT 1", "q"},
        {"select * from t where a = $1", "q"},
        {" \t\r\n\f\v-- BEGIN\n/* COMMIT /* nested */ */ (SELECT 1)", "q"},
        {"INSERT INTO t VALUES ($1)", "q"},
        {"UPDATE t SET a = 1", "q"},
        {"DELETE FROM t", "q"},
        {"MERGE INTO t USING u ON TRUE WHEN MATCHED THEN DELETE", "q"},
        {"WITH x AS (SELECT 1) SELECT * FROM x", "q"},
        {"VALUES (1)", "q"},
        {"TABLE t", "q"},
        {"CALL p()", ""},
        {"DO $$ BEGIN COMMIT; END $$", ""},
        {"VACUUM", ""},
        {"CREATE TABLE t (a int)", ""},
        {"EXPLAIN SELECT 1", ""},
        {"SELECTED", ""},
    };
    (void)state;
    check(all, MK_LEN(all));
}

static void statement_empty_is_recognized(void **state)
{
    static const struct pair all[] = {{"", "-"},        {"  -- x", "-"}, {"/* x */\n", "-"},
                                      {"/* open", "-"}, {";", ""},       {"'x'", ""}};
    (void)state;
    check(all, MK_LEN(all));
}

static void statement_transactions_are_recognized(void **state)
{
    static const struct pair all[] = {
        {"BEGIN", "t"},
        {"begin;", "t"},
        {"/**/BEGIN", "t"},
        {"--\nBegin Isolation Level Serializable", "t"},
        {"START TRANSACTION", "t"},
        {"COMMIT", "t"},
        {"COMMIT AND CHAIN", "t"},
        {"END", "t"},
        {"ABORT", "t"},
        {"ROLLBACK", "t"},
        {"ROLLBACK WORK", "t"},
        {"PREPARE TRANSACTION 'x'", "ts"},
        {"ROLLBACK TO x", ""},
        {"ROLLBACK WORK TO SAVEPOINT x", ""},
        {"SAVEPOINT x", ""},
        {"RELEASE x", ""},
        {"COMMIT PREPARED 'x'", ""},
        {"ROLLBACK PREPARED 'x'", ""},
        {"SELECT 'x' AS begin", "q"},
        {"\"BEGIN\"", ""},
    };
    (void)state;
    check(all, MK_LEN(all));
}

static void statement_copy_over_connection_is_recognized(void **state)
{
    static const struct pair all[] = {
        {"COPY t TO STDOUT", "c"},
        {"copy t (a, b) from stdin with (format csv)", "c"},
        {"/* x */ COPY (SELECT 'stdin') TO stdout", "c"},
        {"COPY t FROM '/tmp/stdin'", ""},
        {"COPY t TO PROGRAM 'cat >STDOUT'", ""},
        {"COPY \"STDIN\" FROM '/x'", ""},
        {"COPY $a$ STDIN $a$", ""},
        {"SELECT stdin FROM stdout", "q"},
    };
    (void)state;
    check(all, MK_LEN(all));
}

static void statement_session_changes_are_recognized(void **state)
{
    static const struct pair all[] = {
        {"SET search_path = x", "s"},
        {"set SESSION statement_timeout = 0", "s"},
        {"SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", "s"},
        {"SET LOCAL search_path = x", ""},
        {"SET TRANSACTION READ ONLY", ""},
        {"SET /* SESSION */ CONSTRAINTS ALL DEFERRED", ""},
        {"RESET ALL", "s"},
        {"DISCARD ALL", "s"},
        {"LISTEN x", "s"},
        {"UNLISTEN *", "s"},
        {"PREPARE x AS SELECT 1", "s"},
        {"EXECUTE x", "s"},
        {"DEALLOCATE ALL -- 1", "s"},
        {"LOAD 'x'", "s"},
        {"DECLARE x CURSOR WITH HOLD FOR SELECT 1", "s"},
        {"DECLARE x CURSOR WITHOUT HOLD FOR SELECT 1", ""},
        {"CREATE TEMP TABLE t (a int)", "s"},
        {"CREATE TEMPORARY VIEW v AS SELECT 1", "s"},
        {"CREATE LOCAL TEMPORARY TABLE t (a int)", "s"},
        {"CREATE OR REPLACE TEMP VIEW v AS SELECT 1", "s"},
        {"CREATE TEMP TABLE t (a int) ON COMMIT DROP", ""},
        {"CREATE TABLE pg_temp.t (a int)", "s"},
        {"CREATE TABLE t (temp int)", ""},
        {"SELECT temp FROM t", "q"},
        {"SELECT 1 INTO TEMP t", "qs"},
        {"SELECT set_config('a', 'true', false)", "qs"},
        {"SELECT set_config('a', $1, true)", "q"},
        {"SELECT 'set_config'", "q"},
        {"SELECT E'\\' set_config('", "q"},
        {"SELECT '\\', set_config('a', 'b', false)", "qs"},
        {"SELECT 'it''s', set_config('a', 'b', false)", "qs"},
        {"SELECT $x$ set_config $y$ $x$, $1", "q"},
        {"SELECT $1$2, set_config('a', 'b', false)", "qs"},
        {"SELECT a$b, set_config('a', 'b', false) -- $b", "qs"},
        {"SELECT 1e5, pg_advisory_lock(1)", "qs"},
        {"SELECT pg_try_advisory_lock_shared(1)", "qs"},
        {"SELECT pg_advisory_unlock_all()", "qs"},
        {"SELECT pg_advisory_xact_lock(1)", "q"},
        {"SELECT \"pg_advisory_lock\"", "q"},
    };
    (void)state;
    check(all, MK_LEN(all));
}

static void statement_session_reads_are_recognized(void **state)
{
    static const struct pair all[] = {{"SELECT lastval()", "qr"},
                                      {"SELECT CURRVAL('t_id_seq')", "qr"},
                                      {"SELECT nextval('t_id_seq')", "q"}};
    (void)state;
    check(all, MK_LEN(all));
}

static void statement_unterminated_tokens_end_with_text(void **state)
{
    static const struct pair all[] = {
        {"SELECT 'x", "q"},     {"SELECT \"x", "q"},  {"SELECT $x$ a", "q"}, {"SELECT $", "q"},
        {"SELECT E'\\", "q"},   {"SELECT /* x", "q"}, {"SELECT -", "q"},     {"SELECT /", "q"},
        {"SELECT $x", "q"},     {"/*", "-"},          {"/*/", "-"},          {"--", "-"},
        {"/* x /* y */ z", "-"}};
    (void)state;
    check(all, MK_LEN(all));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statement_queries_can_be_prepared),
        cmocka_unit_test(statement_empty_is_recognized),
        cmocka_unit_test(statement_transactions_are_recognized),
        cmocka_unit_test(statement_copy_over_connection_is_recognized),
        cmocka_unit_test(statement_session_changes_are_recognized),
        cmocka_unit_test(statement_session_reads_are_recognized),
        cmocka_unit_test(statement_unterminated_tokens_end_with_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

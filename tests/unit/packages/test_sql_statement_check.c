/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/statement_check.h"

#include <errno.h>

#include "unit/test.h"

static struct duda_sql_value parameters[DUDA_SQL_PARAMETERS_MAX + 1];

static int check(mk_str statement, size_t n, const char *error)
{
    struct duda_sql_result result = {.error = MK_STR_NULL};
    int e = sql_statement_check(&result, statement, parameters, n);
    if (error)
        assert_str(result.error, error);
    else
        assert_null(result.error.p);
    return e;
}

static void statement_is_limited_in_length(void **state)
{
    static const char text[DUDA_SQL_TEXT_MAX + 1];
    (void)state;
    assert_int_equal(check(MK_STR(""), 0, NULL), 0);
    assert_int_equal(check(mk_str_of(text, DUDA_SQL_TEXT_MAX), 0, NULL), 0);
    assert_int_equal(check(mk_str_of(text, sizeof text), 0, "the statement is too long"), -EMSGSIZE);
}

static void statement_has_limited_parameters(void **state)
{
    (void)state;
    assert_int_equal(check(MK_STR("x"), DUDA_SQL_PARAMETERS_MAX, NULL), 0);
    assert_int_equal(check(MK_STR("x"), DUDA_SQL_PARAMETERS_MAX + 1, "the statement has too many parameters"),
                     -EMSGSIZE);
}

static void statement_parameters_contain_no_nul(void **state)
{
    (void)state;
    parameters[0] = (struct duda_sql_value){.type = DUDA_SQL_TEXT, .text = MK_STR("")};
    parameters[1] = (struct duda_sql_value){.type = DUDA_SQL_BLOB, .text = MK_STR("a\0b")};
    parameters[2] = (struct duda_sql_value){.type = DUDA_SQL_TEXT, .text = MK_STR("a\0b")};
    assert_int_equal(check(MK_STR("x"), 2, NULL), 0);
    assert_int_equal(check(MK_STR("x"), 3, "a string contains NUL"), -EBADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statement_is_limited_in_length),
        cmocka_unit_test(statement_has_limited_parameters),
        cmocka_unit_test(statement_parameters_contain_no_nul),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

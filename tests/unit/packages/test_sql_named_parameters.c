/* SPDX-License-Identifier: Apache-2.0 */
/* Named parameters become numbered ones, and arrays of PostgreSQL become JSON. */
#include "sql/named_parameters.h"

#include <errno.h>

#include "sql/array_text.h"
#include "unit/test.h"

enum { NAMES_MAX = 4 };

static char buffer[4096];
static mk_str at[NAMES_MAX];
static struct sql_names names = {.at = at, .max = NAMES_MAX};

static int replace(const char *text)
{
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer - 1);
    int e = sql_named_parameters_replace(&out, mk_str_from_c(text), &names);
    buffer[out.len] = '\0';
    return e;
}

static void expect(const char *text, const char *numbered, size_t n)
{
    assert_int_equal(replace(text), 0);
    assert_string_equal(buffer, numbered);
    assert_int_equal(names.n, n);
}

static void names_are_replaced_by_numbers(void **state)
{
    (void)state;
    expect("SELECT :a", "SELECT $1", 1);
    expect(":a,:b,:a", "$1,$2,$1", 2);
    assert_str(names.at[1], "b");
    expect("f(:home.street, :a.b.c.)", "f($1, $2.)", 2);
    assert_str(names.at[0], "home.street");
    expect("a=:_x1 AND b=:B", "a=$1 AND b=$2", 2);
    expect("SELECT 1", "SELECT 1", 0);
    expect("", "", 0);
    expect(":a::text[]", "$1::text[]", 1);
}

static void names_in_literals_and_comments_are_left_alone(void **state)
{
    static const char *const all[] = {"':a'",
                                      "'it''s :a'",
                                      "E'\\':a'",
                                      "e'\\\\' || ':a'",
                                      "'\\'",
                                      "\":a\"",
                                      "\"x\"\":a\"",
                                      "-- :a",
                                      "/* :a /* :b */ :c */",
                                      "$$ :a $$",
                                      "$t$ $$ :a $t$",
                                      "a::text",
                                      "x[1:2]",
                                      "a$b :: c",
                                      "1::int",
                                      "U&':a'",
                                      "\xc3\xa4:",
                                      ":",
                                      ": a",
                                      "' :a",
                                      "/* :a",
                                      "$t$ :a",
                                      "a:=1"};
    (void)state;
    for (size_t i = 0; i < MK_LEN(all); i++) {
        assert_int_equal(replace(all[i]), 0);
        assert_string_equal(buffer, all[i]);
        assert_int_equal(names.n, 0);
    }
    expect("-- x\n:a", "-- x\n$1", 1);
    expect("'x':a", "'x'$1", 1);
    expect("/* x */:a", "/* x */$1", 1);
}

static void names_beyond_the_limit_or_with_numbers_are_errors(void **state)
{
    (void)state;
    assert_int_equal(replace(":a :b :c :d"), 0);
    assert_int_equal(replace(":a :b :c :d :e"), -E2BIG);
    assert_int_equal(replace(":a $1"), -EINVAL);
    assert_int_equal(replace("$1"), -EINVAL);
    assert_int_equal(replace("a$1"), 0);
    assert_int_equal(replace("$1$ x $1$"), -EINVAL);
}

static bool convert(const char *text, enum sql_array_elements elements)
{
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer - 1);
    bool good = sql_array_to_json(&out, mk_str_from_c(text), elements);
    buffer[out.len] = '\0';
    return good;
}

static void array_becomes_json(void **state)
{
    static const char *const wrong[] = {"",          "{",    "}",     "{1",     "{1,}", "{,1}",
                                        "{{1},{2}}", "{1}x", "{\"a}", "{a\"b}", "[1]",  "{1 2"};
    (void)state;
    assert_true(convert("{}", SQL_ARRAY_OF_STRINGS));
    assert_string_equal(buffer, "[]");
    assert_true(convert("{1,-2,NULL}", SQL_ARRAY_OF_NUMBERS));
    assert_string_equal(buffer, "[1,-2,null]");
    assert_true(convert("{t,f}", SQL_ARRAY_OF_BOOLS));
    assert_string_equal(buffer, "[true,false]");
    assert_true(convert("{a b,\"c,\\\"\\\\d\",\"\",\"NULL\"}", SQL_ARRAY_OF_STRINGS));
    assert_string_equal(buffer, "[\"a b\",\"c,\\\"\\\\d\",\"\",\"NULL\"]");
    for (size_t i = 0; i < MK_LEN(wrong); i++)
        if (convert(wrong[i], SQL_ARRAY_OF_STRINGS))
            fail_msg("%s is accepted", wrong[i]);
}

static void array_elements_are_quoted(void **state)
{
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    (void)state;
    sql_array_write_element(&out, MK_STR("a\"\\,"), true);
    sql_array_write_element(&out, MK_STR_NULL, false);
    sql_array_write_element(&out, MK_STR(""), false);
    assert_str(mk_buf_str(&out), "\"a\\\"\\\\,\",NULL,\"\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_replaced_by_numbers),
        cmocka_unit_test(names_in_literals_and_comments_are_left_alone),
        cmocka_unit_test(names_beyond_the_limit_or_with_numbers_are_errors),
        cmocka_unit_test(array_becomes_json),
        cmocka_unit_test(array_elements_are_quoted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

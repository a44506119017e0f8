/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as values: parsed with the position of each error, found by name, index and path, and written. */
#include <errno.h>
#include <monkey/buf.h>
#include <monkey/json_reader.h>
#include <monkey/json_value.h>

#include "unit/readers/test_allocator.h"
#include "unit/test.h"

static struct mk_json_value v;
static struct mk_json_error error;

static int parse(const char *text)
{
    return mk_json_parse(mk_str_from_c(text), &pool, NULL, &v, &error);
}

static void json_is_parsed_into_values(void **state)
{
    (void)state;
    int64_t integer;
    double number;
    bool truth;
    assert_int_equal(
        parse(" {\"a\": [1, -2.5, 1e2, \"x\\u00e4\\n\", true, false, null], \"b\": {}, \"\": []} "), 0);
    assert_int_equal(v.kind, MK_JSON_OBJECT);
    assert_int_equal(v.n, 3);
    const struct mk_json_value *a = mk_json_get(&v, "a");
    assert_int_equal(a->n, 7);
    assert_true(mk_json_as_int(mk_json_at(a, 0), &integer) && integer == 1);
    assert_true(mk_json_as_double(mk_json_at(a, 0), &number) && number == 1);
    assert_false(mk_json_as_int(mk_json_at(a, 1), &integer));
    assert_true(mk_json_as_double(mk_json_at(a, 1), &number) && number == -2.5);
    assert_true(mk_json_as_double(mk_json_at(a, 2), &number) && number == 100);
    assert_str(mk_json_as_string(mk_json_at(a, 3)), "x\xc3\xa4\n");
    assert_int_equal(mk_json_as_string(mk_json_at(a, 3)).p[4], '\0');
    assert_true(mk_json_as_bool(mk_json_at(a, 4), &truth) && truth);
    assert_true(mk_json_as_bool(mk_json_at(a, 5), &truth) && !truth);
    assert_true(mk_json_is_null(mk_json_at(a, 6)) && mk_json_at(a, 6));
    assert_null(mk_json_at(a, 7));
    assert_true(mk_json_is_null(mk_json_at(a, 7)));
    assert_int_equal(mk_json_get(&v, "b")->n, 0);
    assert_int_equal(mk_json_get(&v, "")->kind, MK_JSON_ARRAY);
    assert_int_equal(mk_json_at(a, 1)->offset, 11);
    assert_int_equal(v.of.members[1].offset, 55);
    assert_int_equal(parse("9223372036854775807"), 0);
    assert_true(mk_json_as_int(&v, &integer) && integer == INT64_MAX);
    assert_int_equal(parse("-9223372036854775808"), 0);
    assert_true(mk_json_as_int(&v, &integer) && integer == INT64_MIN);
    assert_int_equal(parse("9223372036854775808"), 0);
    assert_int_equal(v.kind, MK_JSON_NUMBER);
}

static void json_values_of_other_types_are_absent(void **state)
{
    (void)state;
    int64_t integer;
    double number;
    bool truth;
    assert_int_equal(parse("\"text\""), 0);
    assert_null(mk_json_get(&v, "a"));
    assert_null(mk_json_at(&v, 0));
    assert_false(mk_json_as_int(&v, &integer) || mk_json_as_double(&v, &number) ||
                 mk_json_as_bool(&v, &truth));
    assert_int_equal(parse("1"), 0);
    assert_null(mk_json_as_string(&v).p);
    assert_null(mk_json_as_string(NULL).p);
    assert_false(mk_json_as_int(NULL, &integer) || mk_json_as_double(NULL, &number) ||
                 mk_json_as_bool(NULL, &truth));
    assert_null(mk_json_get(NULL, "a"));
    assert_null(mk_json_at(NULL, 0));
    assert_null(mk_json_find(NULL, ""));
}

static void json_values_are_found_by_path(void **state)
{
    (void)state;
    static const struct {
        const char *path, *found; /* NULL: nothing */
    } cases[] = {{"/foo/0", "bar"},  {"/foo/1", "baz"},  {"/foo/2", NULL},   {"/foo/00", NULL},
                 {"/foo/01", NULL},  {"/foo/-", NULL},   {"/foo/", NULL},    {"/", "empty"},
                 {"/a~1b", "slash"}, {"/m~0n", "tilde"}, {"/x/y/z", "deep"}, {"/x/y/z/0", NULL},
                 {"/x//z", NULL},    {"foo", NULL},      {"/m~01", "both"},  {"/fo", NULL},
                 {"/foo0", NULL}};
    assert_int_equal(parse("{\"foo\":[\"bar\",\"baz\"],\"\":\"empty\",\"a/b\":\"slash\",\"m~n\":\"tilde\","
                           "\"x\":{\"y\":{\"z\":\"deep\"}},\"m~1\":\"both\"}"),
                     0);
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        const struct mk_json_value *found = mk_json_find(&v, cases[i].path);
        if (cases[i].found)
            assert_str(mk_json_as_string(found), cases[i].found);
        else
            assert_null(found);
    }
    assert_ptr_equal(mk_json_find(&v, ""), &v);
}

static void json_errors_have_a_position(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int result;
        size_t line, column;
        const char *message;
    } cases[] = {
        {"", -EBADMSG, 1, 1, "expected a value, but the text ends"},
        {"{\"a\": 1,\n \"b\" 2}", -EBADMSG, 2, 6, "expected `:`, not `2`"},
        {"[1, 2", -EBADMSG, 1, 6, "expected `,` or `]`, but the text ends"},
        {"\"\xc3\xa4\x01\"", -EBADMSG, 1, 3,
         "a string must not contain control characters: use an escape sequence"},
        {"1 2", -EBADMSG, 1, 3, "expected the end of the text, not `2`"},
        {"{\"a\":1,\"b\":2,\"a\":3}", -EINVAL, 1, 14, "`a` occurs more than once"},
        {"[1e999]", -EINVAL, 1, 2, "the number is too large, or has too many digits"},
        {"tru", -EBADMSG, 1, 1, "expected a value, not `t`"},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        assert_int_equal(parse(cases[i].text), cases[i].result);
        assert_string_equal(error.message, cases[i].message);
        assert_int_equal(error.line, cases[i].line);
        assert_int_equal(error.column, cases[i].column);
        assert_int_equal(v.kind, MK_JSON_NULL);
    }
}

static void json_limits_of_values_are_enforced(void **state)
{
    (void)state;
    static const struct mk_json_limits limits = {.size = 20, .depth = 2, .items = 3};
    static const struct {
        const char *text;
        int result;
    } cases[] = {{"[1,2,3]", 0},
                 {"[1,2,3,4]", -EMSGSIZE},
                 {"[[1]]", 0},
                 {"[[[]]]", -EMSGSIZE},
                 {"\"12345678901234567890\"", -EMSGSIZE}};
    for (size_t i = 0; i < MK_LEN(cases); i++)
        assert_int_equal(mk_json_parse(mk_str_from_c(cases[i].text), &pool, &limits, &v, &error),
                         cases[i].result);
    for (size_t n = 0; n < 7; n++) {
        pool_left = n;
        assert_int_equal(parse("{\"a\":[\"b\"],\"c\":1}"), -ENOMEM);
        assert_string_equal(error.message, "");
    }
}

static void json_values_are_written_back(void **state)
{
    (void)state;
    static const char text[] = "{\"a\":[1,-2.5,\"x\\\"\",true,false,null],\"b\":{\"c\":[]}}";
    char room[256];
    struct mk_buf out = mk_buf_fixed(room, sizeof room);
    struct mk_json_writer w = mk_json_writer_to(&out);
    assert_int_equal(parse(text), 0);
    mk_json_value_write(&w, &v);
    assert_str(mk_buf_str(&out), text);
    mk_buf_clear(&out);
    w = mk_json_writer_to(&out);
    mk_json_value_write(&w, NULL);
    assert_str(mk_buf_str(&out), "null");
}

static void json_reader_skips_white_space_before_tokens(void **state)
{
    (void)state;
    struct mk_json_reader r;
    mk_str number;
    bool is_integer;
    const mk_str text = MK_STR("[ 12,\n\ttrue, x ]");
    assert_true(mk_json_reader_init(&r, text, &pool, NULL, &error));
    assert_true(mk_json_reader_expect(&r, '[', "an array"));
    assert_true(mk_json_reader_number(&r, &number, &is_integer) && is_integer);
    assert_str(number, "12");
    assert_true(mk_json_reader_next_element(&r, ']'));
    assert_false(mk_json_reader_literal(&r, MK_STR("false")));
    assert_true(mk_json_reader_literal(&r, MK_STR("true")));
    assert_true(mk_json_reader_next_element(&r, ']'));
    assert_false(mk_json_reader_number(&r, &number, &is_integer));
    assert_int_equal(r.info->offset, 13);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(json_is_parsed_into_values, NULL, pool_free),
        fixture_test(json_values_of_other_types_are_absent, NULL, pool_free),
        fixture_test(json_values_are_found_by_path, NULL, pool_free),
        fixture_test(json_errors_have_a_position, NULL, pool_free),
        fixture_test(json_limits_of_values_are_enforced, NULL, pool_free),
        fixture_test(json_values_are_written_back, NULL, pool_free),
        fixture_test(json_reader_skips_white_space_before_tokens, NULL, pool_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

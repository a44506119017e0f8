/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/json.h"

#include "unit/test.h"

static bool is_json(const char *text)
{
    mk_str object, s = mk_str_from_c(text);
    return wr_json_find_object(s, &object) && object.p == s.p && object.len == s.len;
}

static void json_only_valid_objects_are_accepted(void **state)
{
    (void)state;
    static const char *const right[] = {
        "{}",
        "{ }",
        "{\"a\":1}",
        "{ \"a\" : -0.5e+10 , \"b\":[ ] }",
        "{\"a\":[1,[2,{\"b\":null}],true,false]}",
        "{\"\":\"\\u00e9\\n\\\"\\\\\\/\"}",
        "{\"a\":0,\n\t\"b\":10.25E3\r\n}",
        "{\"%\":\"\xc3\xa9\"}",
    };
    static const char *const wrong[] = {
        "{",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{\"a\":01}",
        "{\"a\":1.}",
        "{\"a\":.5}",
        "{\"a\":+1}",
        "{\"a\":1e}",
        "{\"a\":NaN}",
        "{\"a\":-nan}",
        "{\"a\":inf}",
        "{\"a\":\"\n\"}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u12\"}",
        "{\"a\":[1,]}",
        "{\"a\":tru}",
        "{\"a\":\"",
        "{\"a\":\"\\",
        "{\"a\" 1}",
        "{\"a\":1 2}",
        "{\"a\":--1}",
        "{,}",
    };
    for (size_t i = 0; i < MK_LEN(right); i++)
        if (!is_json(right[i]))
            fail_msg("%s is JSON", right[i]);
    for (size_t i = 0; i < MK_LEN(wrong); i++)
        if (is_json(wrong[i]))
            fail_msg("%s is not JSON", wrong[i]);
}

static void json_depth_is_limited(void **state)
{
    (void)state;
    char text[2 * WR_JSON_DEPTH + 16];
    for (size_t depth = 1; depth < WR_JSON_DEPTH + 3; depth++) {
        size_t len = 0;
        text[len++] = '{';
        text[len++] = '"', text[len++] = '"', text[len++] = ':';
        for (size_t i = 1; i < depth; i++)
            text[len++] = '[';
        text[len++] = '1';
        for (size_t i = 1; i < depth; i++)
            text[len++] = ']';
        text[len++] = '}';
        mk_str object;
        assert_int_equal(wr_json_find_object(mk_str_of(text, len), &object), depth < WR_JSON_DEPTH);
    }
}

static void json_object_is_found_among_lines(void **state)
{
    (void)state;
    mk_str object;
    assert_true(wr_json_find_object(MK_STR("error: {\"x\":1}\n{ not this\n\n{\"a\":2}{\"b\":3}\n{\"c\":4}"),
                                    &object));
    assert_str(object, "{\"a\":2}");
    assert_false(wr_json_find_object(MK_STR(""), &object));
    assert_false(wr_json_find_object(MK_STR("[1]\n {\"a\":1}\n"), &object));
}

static void json_hostile_lines_are_fast(void **state)
{
    (void)state;
    static char text[1 << 18];
    for (size_t i = 0; i < sizeof text; i += 2)
        text[i] = '{', text[i + 1] = '\n';
    mk_str object;
    assert_false(wr_json_find_object(mk_str_of(text, sizeof text), &object));
}

static void json_members_are_found_by_name(void **state)
{
    (void)state;
    mk_str value, object = MK_STR("{\"a\" : 1 ,\"b\":{\"a\":2,\"c\":[3]}, \"a\":4, \"d\":\"x\"}");
    assert_true(wr_json_member(object, MK_STR("a"), &value));
    assert_str(value, "1");
    assert_true(wr_json_member(object, MK_STR("b"), &value));
    assert_str(value, "{\"a\":2,\"c\":[3]}");
    assert_true(wr_json_member(object, MK_STR("d"), &value));
    assert_str(value, "\"x\"");
    assert_false(wr_json_member(object, MK_STR("c"), &value));
    assert_false(wr_json_member(MK_STR("[1]"), MK_STR("a"), &value));
    assert_false(wr_json_member(MK_STR("{}"), MK_STR("a"), &value));
}

static void json_numbers_are_found_by_path(void **state)
{
    (void)state;
    mk_str object =
        MK_STR("{\"a\":{\"b\":{\"c\":1.5e2}},\"n\":null,\"s\":\"1\",\"m\":-1,\"l\":1e400,\"e\":1e-3,"
               "\"w\":123456789012345678901234567890123456789012}");
    double value = 7;
    assert_true(wr_json_number(object, "a/b/c", &value) && value == 150);
    assert_true(wr_json_number(object, "e", &value) && value == 0.001);
    value = 7;
    static const char *const none[] = {"a", "a/b", "a/b/d", "a/b/c/d", "n", "s", "m", "l", "w", "x", ""};
    for (size_t i = 0; i < MK_LEN(none); i++)
        if (wr_json_number(object, none[i], &value) || value != 7)
            fail_msg("%s is a number", none[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_only_valid_objects_are_accepted),
        cmocka_unit_test(json_depth_is_limited),
        cmocka_unit_test(json_object_is_found_among_lines),
        cmocka_unit_test(json_hostile_lines_are_fast),
        cmocka_unit_test(json_members_are_found_by_name),
        cmocka_unit_test(json_numbers_are_found_by_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

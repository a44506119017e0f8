/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/words.h"

#include "unit/fixtures.h"
#include "unit/test.h"

static struct mk_arena arena;

static int setup(void **state)
{
    (void)state;
    arena_setup(&arena);
    return 0;
}

static void text_is(const char *in, const char *expected)
{
    mk_str out;
    assert_int_equal(mk_conf_words_unquote(&arena, mk_str_from_c(in), &out), 0);
    assert_non_null(out.p);
    assert_str(out, expected);
}

static void conf_words_text_is_plain_or_quoted(void **state)
{
    (void)state;
    mk_str out;
    text_is("plain text", "plain text");
    text_is("  plain \t", "plain");
    text_is("", "");
    text_is("a \"b\" c\\d", "a \"b\" c\\d");
    text_is("\"  quoted  \"", "  quoted  ");
    text_is("\"\"", "");
    text_is("\"a \\\"b\\\" \\\\ \\d\"", "a \"b\" \\ \\d");
    text_is("\"\\\\\"", "\\");
    assert_int_equal(mk_conf_words_unquote(&arena, MK_STR("\""), &out), -EINVAL);
    assert_int_equal(mk_conf_words_unquote(&arena, MK_STR("\"a"), &out), -EINVAL);
    assert_int_equal(mk_conf_words_unquote(&arena, MK_STR("\"a\" b"), &out), -EINVAL);
    assert_int_equal(mk_conf_words_unquote(&arena, MK_STR("\"a\\\""), &out), -EINVAL);
    assert_int_equal(mk_conf_words_unquote(&arena, MK_STR("\"a\"b\""), &out), -EINVAL);
    text_is("\\\"", "\\\"");
}

/* Returns the words, each followed by a bar. */
static const char *words_of(const char *in, mk_err expected)
{
    static char buffer[256];
    struct mk_buf b = mk_buf_fixed(buffer, sizeof buffer - 1);
    struct mk_conf_words words = {NULL, 0};
    mk_str bad = MK_STR("unset");
    assert_int_equal(mk_conf_words_append(&arena, mk_str_from_c(in), &words, &bad), expected);
    for (size_t i = 0; i < words.n; i++)
        mk_buf_addf(&b, "%.*s|", MK_STR_ARG(words.v[i]));
    if (expected)
        mk_buf_addf(&b, "!%.*s", MK_STR_ARG(bad));
    buffer[b.len] = '\0';
    return buffer;
}

static void conf_words_are_plain_or_quoted(void **state)
{
    (void)state;
    assert_string_equal(words_of("", 0), "");
    assert_string_equal(words_of("one", 0), "one|");
    assert_string_equal(words_of("  one\ttwo   three ", 0), "one|two|three|");
    assert_string_equal(words_of("\"a b\" c \"d\\\"e\\\\\"", 0), "a b|c|d\"e\\|");
    assert_string_equal(words_of("a \"\" b", 0), "a|b|");
    assert_string_equal(words_of("a\"b c\"", 0), "a\"b|c\"|");
    assert_string_equal(words_of("a \"b c", -EINVAL), "a|!\"b c");
    assert_string_equal(words_of("a \"b\"c d", -EINVAL), "a|!\"b\"c");
    assert_string_equal(words_of("\"", -EINVAL), "!\"");
    assert_string_equal(words_of("\"\\\"", -EINVAL), "!\"\\\"");
}

static void conf_words_list_grows(void **state)
{
    (void)state;
    struct mk_conf_words words = {NULL, 0};
    mk_str bad;
    for (size_t i = 0; i < 1000; i++) {
        char c = (char)('a' + i % 26);
        assert_int_equal(mk_conf_words_append(&arena, mk_arena_copy(&arena, mk_str_of(&c, 1)), &words, &bad),
                         0);
    }
    assert_int_equal(words.n, 1000);
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(words.v[i].p[0], 'a' + i % 26);
}

static void conf_words_output_can_be_read(void **state)
{
    (void)state;
    static const char *const texts[] = {"",      "a",    " a",   "a ",    "a b",     "\"",
                                        "\"a\"", "a\"b", "\\",   "\\\"",  "\"\\",    "a\\",
                                        "\ta\t", "\\\\", " \\ ", "\" \"", "x\\\" y", " \"\\\\\""};
    for (size_t i = 0; i < MK_LEN(texts); i++) {
        char buffer[64];
        struct mk_buf b = mk_buf_fixed(buffer, sizeof buffer);
        mk_str out;
        mk_conf_words_quote_text(&b, mk_str_from_c(texts[i]));
        assert_int_equal(mk_conf_words_unquote(&arena, mk_buf_str(&b), &out), 0);
        assert_str(out, texts[i]);
        mk_buf_clear(&b);
        mk_conf_words_quote_word(&b, mk_str_from_c(texts[i]));
        mk_buf_add(&b, MK_STR(" end"));
        mk_str rest = mk_buf_str(&b);
        assert_int_equal(mk_conf_words_next(&arena, &rest, &out), 0);
        assert_str(out, texts[i]);
        assert_int_equal(mk_conf_words_next(&arena, &rest, &out), 0);
        assert_str(out, "end");
        assert_int_equal(mk_conf_words_next(&arena, &rest, &out), 0);
        assert_null(out.p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conf_words_text_is_plain_or_quoted),
        cmocka_unit_test(conf_words_are_plain_or_quoted),
        cmocka_unit_test(conf_words_list_grows),
        cmocka_unit_test(conf_words_output_can_be_read),
    };
    return cmocka_run_group_tests(tests, setup, harness_teardown);
}

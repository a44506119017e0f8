/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include "unit/test.h"

static struct {
    char text[4096];
    size_t len;
    int n_lines;
    enum mk_log_level level;
} sink;

static void keep(struct mk_log *log, enum mk_log_level level, mk_str text)
{
    assert_ptr_equal(log->data, &sink);
    assert_true(text.len < sizeof sink.text);
    memcpy(sink.text, text.p, text.len);
    sink.text[text.len] = '\0';
    sink.len = text.len;
    sink.level = level;
    sink.n_lines++;
}

static struct mk_log sink_log;

static void setup(void)
{
    memset(&sink, 0, sizeof sink);
    sink_log = (struct mk_log){.level = MK_LOG_DEBUG, .write = keep, .data = &sink};
}

static void log_message_has_its_level(void **state)
{
    (void)state;
    struct mk_log *log = &sink_log;
    mk_log_warn(log, "%s is %d", "answer", 42);
    assert_string_equal(sink.text, "answer is 42");
    assert_int_equal(sink.level, MK_LOG_WARN);
    mk_log_error(log, "e");
    assert_int_equal(sink.level, MK_LOG_ERROR);
    mk_log_info(log, "i");
    assert_int_equal(sink.level, MK_LOG_INFO);
    mk_log_debug(log, "d");
    assert_int_equal(sink.level, MK_LOG_DEBUG);
    assert_int_equal(sink.n_lines, 4);
}

static void log_messages_above_the_level_are_dropped(void **state)
{
    (void)state;
    struct mk_log *log = &sink_log;
    for (int wanted = MK_LOG_ERROR; wanted < MK_LOG_LEVEL_COUNT; wanted++) {
        log->level = (enum mk_log_level)wanted;
        sink.n_lines = 0;
        for (int level = MK_LOG_ERROR; level < MK_LOG_LEVEL_COUNT; level++)
            mk_log(log, (enum mk_log_level)level, "x");
        assert_int_equal(sink.n_lines, wanted + 1);
    }
}

static void log_of_null_is_ignored(void **state)
{
    (void)state;
    mk_log_error(NULL, "%s", "without a log");
    assert_int_equal(sink.n_lines, 0);
}

static void log_levels_have_names(void **state)
{
    (void)state;
    for (int level = 0; level < MK_LOG_LEVEL_COUNT; level++)
        assert_true(mk_log_level_names[level] && *mk_log_level_names[level]);
    assert_string_equal(mk_log_level_names[MK_LOG_ERROR], "error");
}

static void log_controls_are_replaced(void **state)
{
    (void)state;
    struct mk_log *log = &sink_log;
    mk_log_info(log, "GET %s", "/a\r\n2026 error: forged\t\x1b[2J\x7f");
    assert_string_equal(sink.text, "GET /a??2026 error: forged??[2J?");
    for (int c = 1; c < 0x20; c++) {
        mk_log_info(log, "%c", c);
        assert_string_equal(sink.text, "?");
    }
    mk_log_info(log, "a%cb", 0);
    assert_int_equal(sink.len, 3);
    assert_string_equal(sink.text, "a?b");
}

/* U+0080 to U+009F are also control characters; U+009B starts an escape sequence in many terminals. */
static void log_controls_beyond_ascii_are_replaced(void **state)
{
    (void)state;
    struct mk_log *log = &sink_log;
    mk_log_info(log, "a\xc2\x9b"
                     "2Jb\xc2\x80\xc2\x9f");
    assert_string_equal(sink.text, "a??2Jb????");
    mk_log_info(log, "%s", "gr\xc3\xbc\xc3\x9f \xc2\xa0 \xe2\x82\xac \xf0\x9f\x90\x92");
    assert_string_equal(sink.text, "gr\xc3\xbc\xc3\x9f \xc2\xa0 \xe2\x82\xac \xf0\x9f\x90\x92");
}

static void log_long_message_is_truncated(void **state)
{
    (void)state;
    struct mk_log *log = &sink_log;
    mk_log_info(log, "%5000d", 1);
    assert_int_equal(sink.len, 1023);
    assert_int_equal(sink.text[0], ' ');
    mk_log_info(log, "%1023d", 1);
    assert_int_equal(sink.len, 1023);
    assert_int_equal(sink.text[1022], '1');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(log_message_has_its_level, setup),
        fixture_test(log_messages_above_the_level_are_dropped, setup),
        fixture_test(log_of_null_is_ignored, setup),
        fixture_test(log_levels_have_names, setup),
        fixture_test(log_controls_are_replaced, setup),
        fixture_test(log_controls_beyond_ascii_are_replaced, setup),
        fixture_test(log_long_message_is_truncated, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/text.h"

#include "unit/test.h"

static void text_next_line_returns_each_line(void **state)
{
    (void)state;
    mk_str line, rest = MK_STR("one\ntwo\r\n\n10%\r20%\rthree\nfo");
    static const char *const expected[] = {"one", "two", "", "three"};
    for (size_t i = 0; i < MK_LEN(expected); i++) {
        assert_true(wr_text_next_line(&rest, &line));
        assert_str(line, expected[i]);
    }
    assert_false(wr_text_next_line(&rest, &line)); /* the rest may be truncated */
    rest = MK_STR("only\n");
    assert_true(wr_text_next_line(&rest, &line));
    assert_false(wr_text_next_line(&rest, &line));
}

static void text_scan_extracts_numbers(void **state)
{
    (void)state;
    double v[3] = {0};
    assert_true(wr_text_scan(MK_STR("  12 of 3.5 and more"), " %d of %f", v));
    assert_true(v[0] == 12 && v[1] == 3.5);
    assert_true(wr_text_scan(MK_STR("a\t:  7%"), "a : %d%%", v) && v[0] == 7);
    assert_true(wr_text_scan(MK_STR(""), " ", v));
    assert_false(wr_text_scan(MK_STR(""), "a", v));
    assert_false(wr_text_scan(MK_STR("a 1"), "b %d", v));
    assert_false(wr_text_scan(MK_STR("a -1"), "a %d", v));
    assert_false(wr_text_scan(MK_STR("a 1.5 b"), "a %d b", v));
    assert_false(wr_text_scan(MK_STR("a ."), "a %f", v));
    assert_true(wr_text_scan(MK_STR("a 1."), "a %f.", v) && v[0] == 1);
}

static void text_units_become_microseconds_and_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double us;
    } times[] = {{"500ns", 0.5}, {"1us", 1}, {"1.50ms", 1500}, {"2s", 2e6}, {"1.5m", 90e6}, {"1h", 3600e6}};
    static const struct {
        const char *text;
        double bytes;
    } sizes[] = {{"0B", 0},        {"120.00B", 120}, {"1.5KB", 1536}, {"1K", 1024},
                 {"2MB", 2097152}, {"1GB", 0x1p30},  {"1TB", 0x1p40}, {"1M", 0x1p20}};
    double value;
    for (size_t i = 0; i < MK_LEN(times); i++)
        assert_true(wr_text_scan(mk_str_from_c(times[i].text), "%t", &value) && value == times[i].us);
    for (size_t i = 0; i < MK_LEN(sizes); i++)
        assert_true(wr_text_scan(mk_str_from_c(sizes[i].text), "%b", &value) && value == sizes[i].bytes);
    assert_false(wr_text_scan(MK_STR("1"), "%t", &value));
    assert_false(wr_text_scan(MK_STR("1 s"), "%t", &value));
    assert_false(wr_text_scan(MK_STR("ms"), "%t", &value));
    assert_false(wr_text_scan(MK_STR("9007199254740992TB"), "%b", &value));
    assert_false(wr_text_scan(MK_STR("9007199254740992h"), "%t", &value));
}

static void text_numbers_are_limited(void **state)
{
    (void)state;
    double value = 7;
    static const char *const none[] = {"",
                                       "x",
                                       "-1",
                                       "+1",
                                       "nan",
                                       "inf",
                                       "0x10",
                                       "1e",
                                       "1.",
                                       ".5",
                                       "1 ",
                                       "1e16",
                                       "1e999",
                                       "9007199254740994",
                                       "00000000000000000000000000000000000000001"};
    for (size_t i = 0; i < MK_LEN(none); i++)
        if (wr_text_parse_number(mk_str_from_c(none[i]), &value) || value != 7)
            fail_msg("\"%s\" is a number", none[i]);
    assert_true(wr_text_parse_number(MK_STR("9007199254740992"), &value) && value == WR_NUMBER_MAX);
    assert_true(wr_text_parse_number(MK_STR("1e-999"), &value) && value == 0);
    assert_true(wr_text_parse_number(MK_STR("2.5E+1"), &value) && value == 25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_next_line_returns_each_line),
        cmocka_unit_test(text_scan_extracts_numbers),
        cmocka_unit_test(text_units_become_microseconds_and_bytes),
        cmocka_unit_test(text_numbers_are_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "http/utf8.h"

#include "unit/test.h"

#define TEXT(bytes) mk_str_of(bytes, sizeof bytes - 1)

static bool check_cut(mk_str s, size_t cut)
{
    struct mk_utf8 u = {0, 0, 0};
    return mk_utf8_feed(&u, mk_str_first(s, cut)) && mk_utf8_feed(&u, mk_str_skip(s, cut)) &&
           mk_utf8_is_complete(&u);
}

/* Validates the text at once, and split in two at every offset. */
static bool is_utf8(mk_str s)
{
    bool whole = mk_utf8_is_valid(s);
    for (size_t cut = 0; cut <= s.len; cut++)
        assert_int_equal(check_cut(s, cut), whole);
    return whole;
}

static void utf8_valid_text_is_accepted(void **state)
{
    (void)state;
    assert_true(is_utf8(MK_STR("")));
    assert_true(is_utf8(MK_STR("0123456789 abcdefghijklmnopqrstuvwxyz")));
    assert_true(is_utf8(TEXT("a\0b")));
    assert_true(is_utf8(MK_STR("\u00e4 \u20ac \U0001f600 and some more text behind them")));
    assert_true(is_utf8(TEXT("\xc2\x80 \xdf\xbf \xe0\xa0\x80 \xed\x9f\xbf \xee\x80\x80 \xef\xbf\xbf")));
    assert_true(is_utf8(TEXT("\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf")));
}

static void utf8_invalid_text_is_rejected(void **state)
{
    (void)state;
    static const mk_str wrong[] = {
        MK_STR_INIT("\x80"),         MK_STR_INIT("\xc0\x80"),         MK_STR_INIT("\xc1\xbf"),
        MK_STR_INIT("\xe0\x9f\xbf"), MK_STR_INIT("\xed\xa0\x80"),     MK_STR_INIT("\xf0\x8f\xbf\xbf"),
        MK_STR_INIT("\xf4\x90"),     MK_STR_INIT("\xf5\x80\x80\x80"), MK_STR_INIT("\xff"),
        MK_STR_INIT("\xc3"),         MK_STR_INIT("\xe2\x82"),         MK_STR_INIT("\xc3("),
        MK_STR_INIT("\xe2\x28\xa1"), MK_STR_INIT("12345678\x80"),     MK_STR_INIT("1234567\xc3 12345678"),
    };
    for (size_t i = 0; i < MK_LEN(wrong); i++)
        assert_false(is_utf8(wrong[i]));
}

static void utf8_invalid_prefix_is_rejected_at_once(void **state)
{
    struct mk_utf8 u = {0, 0, 0};
    (void)state;
    assert_false(mk_utf8_feed(&u, TEXT("\xed\xa0")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(utf8_valid_text_is_accepted),
        cmocka_unit_test(utf8_invalid_text_is_rejected),
        cmocka_unit_test(utf8_invalid_prefix_is_rejected_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <monkey/utf8.h>

#include "unit/test.h"

#define TEXT(bytes) mk_str_of(bytes, sizeof bytes - 1)

static void utf8_each_code_point_is_decoded_as_encoded(void **state)
{
    (void)state;
    for (uint32_t c = 0; c <= 0x10ffff; c++) {
        char text[5] = "....x";
        uint32_t found;
        if (c >= 0xd800 && c < 0xe000)
            continue;
        size_t len = mk_utf8_encode(text, c);
        assert_int_equal(len, c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4);
        assert_int_equal(mk_utf8_decode(mk_str_of(text, sizeof text), &found), len);
        assert_int_equal(found, c);
        assert_int_equal(mk_utf8_char_len(mk_str_of(text, sizeof text)), len);
        for (size_t cut = 1; cut < len; cut++) {
            assert_int_equal(mk_utf8_decode(mk_str_of(text, cut), &found), 0);
            assert_int_equal(found, (unsigned char)text[0]);
        }
    }
}

static void utf8_malformed_characters_are_rejected(void **state)
{
    static const mk_str wrong[] = {
        MK_STR_INIT("\x80"),
        MK_STR_INIT("\xbf"), /* continuation bytes alone */
        MK_STR_INIT("\xc0\x80"),
        MK_STR_INIT("\xc1\xbf"), /* overlong */
        MK_STR_INIT("\xe0\x80\x80"),
        MK_STR_INIT("\xe0\x9f\xbf"), /* overlong */
        MK_STR_INIT("\xf0\x80\x80\x80"),
        MK_STR_INIT("\xf0\x8f\xbf\xbf"), /* overlong */
        MK_STR_INIT("\xed\xa0\x80"),
        MK_STR_INIT("\xed\xbf\xbf"), /* surrogates */
        MK_STR_INIT("\xf4\x90\x80\x80"),
        MK_STR_INIT("\xf5\x80\x80\x80"), /* beyond U+10FFFF */
        MK_STR_INIT("\xf8\x88\x80\x80"),
        MK_STR_INIT("\xfe"), /* five bytes; never a first byte */
        MK_STR_INIT("\xc3("),
        MK_STR_INIT("\xe2\x82("), /* cut off by another character */
        MK_STR_INIT("\xf0\x9f\x98("),
        MK_STR_INIT("\xf0\x9f\xc3\xa9"),
    };
    (void)state;
    for (size_t i = 0; i < MK_LEN(wrong); i++) {
        uint32_t c = 0;
        assert_int_equal(mk_utf8_decode(wrong[i], &c), 0);
        assert_int_equal(c, (unsigned char)wrong[i].p[0]);
        assert_int_equal(mk_utf8_char_len(wrong[i]), 0);
        assert_int_equal(mk_utf8_find_invalid(wrong[i]), 0);
    }
}

static void utf8_first_malformed_character_is_found(void **state)
{
    (void)state;
    assert_int_equal(mk_utf8_find_invalid(MK_STR("")), MK_STR_NONE);
    assert_int_equal(mk_utf8_find_invalid(TEXT("a\0\u00e4\u20ac\U0001f600")), MK_STR_NONE);
    assert_int_equal(mk_utf8_find_invalid(TEXT("a\u20ac\xff\xfe")), 4);
    assert_int_equal(mk_utf8_find_invalid(TEXT("\u00e4\xe2\x82")), 2);
}

static void utf8_characters_are_counted(void **state)
{
    (void)state;
    assert_int_equal(mk_utf8_count(MK_STR("")), 0);
    assert_int_equal(mk_utf8_count(TEXT("a\0\u00e4\u20ac\U0001f600")), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(utf8_each_code_point_is_decoded_as_encoded),
        cmocka_unit_test(utf8_malformed_characters_are_rejected),
        cmocka_unit_test(utf8_first_malformed_character_is_found),
        cmocka_unit_test(utf8_characters_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

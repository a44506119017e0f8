/* SPDX-License-Identifier: Apache-2.0 */
#include <locale.h>
#include <string.h>

#include "base/str.h"
#include "unit/test.h"

static void num_double_reads_json_numbers(void **state)
{
    static const struct {
        const char *text;
        double n;
    } good[] = {{"0", 0}, {"-1.5e3", -1500}, {"1E-2", 0.01}, {"12.25", 12.25}, {"1e+2", 100}, {"-0.5", -0.5}};
    (void)state;
    for (size_t i = 0; i < MK_LEN(good); i++) {
        double n = 7;
        if (!mk_num_parse_double(mk_str_from_c(good[i].text), &n) || n != good[i].n)
            fail_msg("\"%s\" became %g", good[i].text, n);
    }
}

static void num_double_rejects_other_text_and_sets_nothing(void **state)
{
    static const char *const bad[] = {"",   "-",   "+1",   " 1",  "1 ",  ".5",  "1.",  "01",    "-01",
                                      "1e", "1e+", "1.e1", "0x1", "inf", "nan", "1,5", "1e999", "1\n"};
    char digits[300];
    double n = 7;
    (void)state;
    for (size_t i = 0; i < MK_LEN(bad); i++)
        if (mk_num_parse_double(mk_str_from_c(bad[i]), &n) || n != 7)
            fail_msg("\"%s\" was accepted as a number", bad[i]);
    assert_false(mk_num_parse_double(MK_STR_NULL, &n));
    memset(digits, '1', sizeof digits);
    assert_false(mk_num_parse_double(mk_str_of(digits, 257), &n));
    assert_true(mk_num_parse_double(mk_str_of(digits, 256), &n));
}

static void num_double_ignores_the_locale(void **state)
{
    double n = 0;
    (void)state;
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8"))
        skip();
    assert_true(mk_num_parse_double(MK_STR("1.5"), &n));
    setlocale(LC_NUMERIC, "C");
    assert_true(n == 1.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(num_double_reads_json_numbers),
        cmocka_unit_test(num_double_rejects_other_text_and_sets_nothing),
        cmocka_unit_test(num_double_ignores_the_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

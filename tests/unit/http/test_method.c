/* SPDX-License-Identifier: Apache-2.0 */
#include "http/method.h"

#include "unit/test.h"

static void names_and_methods_agree(void **state)
{
    (void)state;
    for (unsigned m = MK_METHOD_UNKNOWN + 1; m < MK_METHODS; m++) {
        mk_str name = mk_method_name((enum mk_method)m);
        assert_true(name.len > 0);
        assert_int_equal(mk_method_find(name), m);
    }
    assert_str(mk_method_name(MK_METHOD_OPTIONS), "OPTIONS");
    assert_int_equal(mk_method_find(MK_STR("PATCH")), MK_METHOD_PATCH);
}

static void other_texts_are_unknown(void **state)
{
    (void)state;
    static const char *const texts[] = {"",      "get",    "Get",       "GETT",    "GE",
                                        "PURGE", "OPTION", "CONNECTED", "M-SEARCH"};
    for (size_t i = 0; i < MK_LEN(texts); i++)
        assert_int_equal(mk_method_find(mk_str_from_c(texts[i])), MK_METHOD_UNKNOWN);
    assert_int_equal(mk_method_find(MK_ABSENT), MK_METHOD_UNKNOWN);
    assert_str(mk_method_name(MK_METHOD_UNKNOWN), "");
    assert_str(mk_method_name(MK_METHODS), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_methods_agree),
        cmocka_unit_test(other_texts_are_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

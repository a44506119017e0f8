/* SPDX-License-Identifier: Apache-2.0 */
#include "http/method.h"

#include "unit/test.h"

static void method_names_round_trip(void **state)
{
    (void)state;
    for (unsigned m = MK_METHOD_UNKNOWN + 1; m < MK_METHOD_COUNT; m++) {
        mk_str name = mk_method_name((enum mk_method)m);
        assert_true(name.len > 0);
        assert_int_equal(mk_method_find(name), m);
    }
    assert_str(mk_method_name(MK_METHOD_OPTIONS), "OPTIONS");
    assert_int_equal(mk_method_find(MK_STR("PATCH")), MK_METHOD_PATCH);
}

static void method_other_names_are_unknown(void **state)
{
    (void)state;
    static const char *const texts[] = {"",      "get",    "Get",       "GETT",    "GE",
                                        "PURGE", "OPTION", "CONNECTED", "M-SEARCH"};
    for (size_t i = 0; i < MK_LEN(texts); i++)
        assert_int_equal(mk_method_find(mk_str_from_c(texts[i])), MK_METHOD_UNKNOWN);
    assert_int_equal(mk_method_find(MK_STR_NULL), MK_METHOD_UNKNOWN);
    assert_str(mk_method_name(MK_METHOD_UNKNOWN), "");
    assert_str(mk_method_name((enum mk_method)MK_METHOD_COUNT), "");
}

/* RFC 9110, section 9.2.2. */
static void method_idempotence(void **state)
{
    static const char *const idempotent[] = {"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"};
    static const char *const others[] = {"POST", "PATCH", "CONNECT", "PURGE"};
    (void)state;
    for (size_t i = 0; i < MK_LEN(idempotent); i++)
        assert_true(mk_method_is_idempotent(mk_method_find(mk_str_from_c(idempotent[i]))));
    for (size_t i = 0; i < MK_LEN(others); i++)
        assert_false(mk_method_is_idempotent(mk_method_find(mk_str_from_c(others[i]))));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(method_names_round_trip),
        cmocka_unit_test(method_other_names_are_unknown),
        cmocka_unit_test(method_idempotence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

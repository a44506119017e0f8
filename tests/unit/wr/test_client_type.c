/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/client_type.h"

#include "unit/test.h"

static void client_type_is_found_by_the_file_name(void **state)
{
    (void)state;
    static const char *const known[] = {"wrk",      "/usr/bin/wrk", "./wrk", "wrk2",          "h2load",
                                        "weighttp", "ab",           "siege", "build/dev/pace"};
    static const char *const unknown[] = {"", "/", "wrk/", "wrkx", "WRK", "a", "/usr/bin/", "curl"};
    for (size_t i = 0; i < MK_LEN(known); i++) {
        mk_str program = mk_str_from_c(known[i]);
        const struct wr_client_type *k = wr_client_type_find(program);
        if (!k)
            fail_msg("%s is not known", known[i]);
        assert_true(mk_str_ends(program, mk_str_from_c(k->name)));
    }
    for (size_t i = 0; i < MK_LEN(unknown); i++)
        if (wr_client_type_find(mk_str_from_c(unknown[i])))
            fail_msg("%s is known", unknown[i]);
}

static void client_types_are_complete(void **state)
{
    (void)state;
    size_t n = 0;
    for (const struct wr_client_type *k = wr_client_type_all(); k->name; k++, n++) {
        assert_ptr_equal(wr_client_type_find(mk_str_from_c(k->name)), k);
        assert_string_equal(k->concurrency, "-c");
        assert_non_null(k->read);
        assert_null(k->adds[MK_LEN(k->adds) - 1]);
        assert_null(k->has[MK_LEN(k->has) - 1]);
        if (k->adds[0]) /* wr recognizes the option in a command that already has it */
            assert_string_equal(k->adds[0], k->has[0]);
    }
    assert_int_equal(n, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(client_type_is_found_by_the_file_name),
        cmocka_unit_test(client_types_are_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

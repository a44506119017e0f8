/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <fcntl.h>

#include "unit/test.h"

static void errors_have_words(void **state)
{
    (void)state;
    assert_string_equal(mk_err_text(-ENOENT), "No such file or directory");
    assert_string_equal(mk_err_text(-EAGAIN), "Resource temporarily unavailable");
    assert_string_equal(mk_err_text(0), "Success");
    assert_non_null(strstr(mk_err_text(-99999), "rror")); /* each libc has words of its own */
    assert_true(strlen(mk_err_text(1)) > 0);
}

static void the_last_error_is_negated(void **state)
{
    (void)state;
    assert_int_equal(open("/no/such/file", O_RDONLY), -1);
    assert_int_equal(mk_err_last(), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_have_words),
        cmocka_unit_test(the_last_error_is_negated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

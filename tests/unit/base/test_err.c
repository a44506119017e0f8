/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <fcntl.h>

#include "unit/test.h"

static void err_text_describes_errors(void **state)
{
    (void)state;
    assert_string_equal(mk_err_text(-ENOENT), "No such file or directory");
    assert_string_equal(mk_err_text(-EAGAIN), "Resource temporarily unavailable");
    assert_string_equal(mk_err_text(0), "Success");
    assert_non_null(strstr(mk_err_text(-99999), "rror")); /* the text depends on the libc */
    assert_true(strlen(mk_err_text(1)) > 0);
}

static void err_last_is_negative_errno(void **state)
{
    (void)state;
    assert_int_equal(open("/no/such/file", O_RDONLY), -1);
    assert_int_equal(mk_err_last(), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(err_text_describes_errors),
        cmocka_unit_test(err_last_is_negative_errno),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

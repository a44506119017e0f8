/* SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"

#include "unit/child.h"

static void die(void *ctx)
{
    (void)ctx;
    int one = 1;
    MK_ASSERT(one == 2);
}

static void assert_true_condition_passes(void **state)
{
    (void)state;
    int n = 0;
    MK_ASSERT(++n == 1);
    assert_int_equal(n, 1);
}

static void assert_false_condition_aborts_with_its_location(void **state)
{
    (void)state;
    char output[512];
    int status = run_in_dying_child(die, NULL, output, sizeof output);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    assert_non_null(strstr(output, "monkey: bug: assertion failed: one == 2 ("));
    assert_non_null(strstr(output, "test_assert.c:"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(assert_true_condition_passes),
        cmocka_unit_test(assert_false_condition_aborts_with_its_location),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Names that get no certificate for some time. */
#include <stdio.h>

#include "unit/test.h"

#include "refusals.h"

static struct acme_refusals refusals;

static void refusals_end(void **state)
{
    (void)state;
    acme_refusals_init(&refusals);
    assert_int_equal(acme_refusals_get(&refusals, MK_STR("a.com"), 100), 0);
    acme_refusals_set(&refusals, MK_STR("a.com"), 200, 100);
    assert_int_equal(acme_refusals_get(&refusals, MK_STR("a.com"), 199), 200);
    assert_int_equal(acme_refusals_get(&refusals, MK_STR("b.com"), 199), 0);
    assert_int_equal(acme_refusals_get(&refusals, MK_STR("a.com"), 200), 0);
    acme_refusals_set(&refusals, MK_STR("a.com"), 400, 200);
    acme_refusals_set(&refusals, MK_STR("a.com"), 0, 300);
    assert_int_equal(acme_refusals_get(&refusals, MK_STR("a.com"), 300), 0);
}

static void refusals_full_table_forgets_the_earliest(void **state)
{
    char text[32];
    unsigned kept = 0;
    (void)state;
    acme_refusals_init(&refusals);
    acme_refusals_set(&refusals, MK_STR("late.com"), 1000000, 1);
    for (unsigned i = 0; i < 100000; i++) {
        snprintf(text, sizeof text, "n%u.com", i);
        acme_refusals_set(&refusals, mk_str_from_c(text), 1000 + i % 10, 1);
    }
    assert_int_equal(acme_refusals_get(&refusals, MK_STR("late.com"), 1), 1000000);
    for (unsigned i = 0; i < 100000; i++) {
        snprintf(text, sizeof text, "n%u.com", i);
        kept += acme_refusals_get(&refusals, mk_str_from_c(text), 1) > 0;
    }
    assert_int_equal(kept, ACME_REFUSALS_SETS * ACME_REFUSALS_WAYS - 1);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals_end),
        cmocka_unit_test(refusals_full_table_forgets_the_earliest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "stage.h"

#include "unit/test.h"

static void stage_begins_at_its_percentage(void **state)
{
    (void)state;
    assert_int_equal(memory_stage_next(MEMORY_ENOUGH, 849, 1000), MEMORY_ENOUGH);
    assert_int_equal(memory_stage_next(MEMORY_ENOUGH, 935 << 20, UINT64_C(1100) << 20), MEMORY_RELEASING);
    assert_int_equal(memory_stage_next(MEMORY_ENOUGH, UINT64_C(96) << 20, UINT64_C(100) << 20),
                     MEMORY_SHEDDING);
    assert_int_equal(memory_stage_next(MEMORY_ENOUGH, UINT64_C(101) << 20, UINT64_C(100) << 20),
                     MEMORY_PAUSED);
    assert_int_equal(memory_stage_next(MEMORY_ENOUGH, UINT64_MAX, UINT64_C(4) << 20), MEMORY_PAUSED);
}

static void stage_lasts_until_enough_memory_is_free(void **state)
{
    (void)state;
    assert_int_equal(memory_stage_next(MEMORY_SHEDDING, UINT64_C(81) << 20, UINT64_C(100) << 20),
                     MEMORY_SHEDDING);
    assert_int_equal(memory_stage_next(MEMORY_RELEASING, UINT64_C(81) << 20, UINT64_C(100) << 20),
                     MEMORY_RELEASING);
    assert_int_equal(memory_stage_next(MEMORY_SHEDDING, UINT64_C(79) << 20, UINT64_C(100) << 20),
                     MEMORY_ENOUGH);
    assert_int_equal(memory_stage_next(MEMORY_PAUSED, UINT64_C(79) << 20, UINT64_C(100) << 20),
                     MEMORY_ENOUGH);
}

static void stage_paused_becomes_shedding_first(void **state)
{
    (void)state;
    assert_int_equal(memory_stage_next(MEMORY_PAUSED, UINT64_C(97) << 20, UINT64_C(100) << 20),
                     MEMORY_PAUSED);
    assert_int_equal(memory_stage_next(MEMORY_PAUSED, UINT64_C(90) << 20, UINT64_C(100) << 20),
                     MEMORY_SHEDDING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stage_begins_at_its_percentage),
        cmocka_unit_test(stage_lasts_until_enough_memory_is_free),
        cmocka_unit_test(stage_paused_becomes_shedding_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

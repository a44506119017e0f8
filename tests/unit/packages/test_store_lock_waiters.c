/* SPDX-License-Identifier: Apache-2.0 */
#include <store/lock_waiters.h>

#include "unit/test.h"

static struct store_lock_waiters waiting;

static void setup(void)
{
    memset(&waiting, 0, sizeof waiting);
}

static void lock_waiters_count_until_their_next_poll(void **state)
{
    uint32_t g = store_lock_waiters_new_generation(&waiting), mine = store_lock_waiters_slot(g, 0),
             other = store_lock_waiters_slot(g, 127);
    (void)state;
    assert_false(store_lock_waiters_has_others(&waiting, mine, 1000));
    store_lock_waiters_mark(&waiting, other, 1250);
    assert_true(store_lock_waiters_has_others(&waiting, mine, 1249));
    assert_false(store_lock_waiters_has_others(&waiting, mine, 1250));
    /* the worker's own slot does not count */
    assert_false(store_lock_waiters_has_others(&waiting, other, 1000));
}

static void lock_waiters_latest_deadline_of_worker_counts(void **state)
{
    uint32_t g = store_lock_waiters_new_generation(&waiting), mine = store_lock_waiters_slot(g, 0),
             other = store_lock_waiters_slot(g, 1);
    (void)state;
    store_lock_waiters_mark(&waiting, other, 1250);
    store_lock_waiters_mark(&waiting, other, 1100);
    assert_true(store_lock_waiters_has_others(&waiting, mine, 1200));
}

static void lock_waiters_generations_have_separate_slots(void **state)
{
    uint32_t old = store_lock_waiters_slot(store_lock_waiters_new_generation(&waiting), 5);
    (void)state;
    store_lock_waiters_mark(&waiting, old, 1250);
    for (unsigned i = 1; i < STORE_GENERATIONS; i++) {
        uint32_t fresh = store_lock_waiters_slot(store_lock_waiters_new_generation(&waiting), 5);
        assert_int_not_equal(fresh, old);
        store_lock_waiters_mark(&waiting, fresh, 1001);
        assert_true(
            store_lock_waiters_has_others(&waiting, fresh, 1200)); /* the draining worker is still waiting */
    }
}

static void lock_waiters_out_of_range_numbers_have_slots(void **state)
{
    (void)state;
    assert_in_range(store_lock_waiters_slot(UINT32_MAX, 1000), 0, STORE_WORKERS_MAX * STORE_GENERATIONS - 1);
    assert_int_equal(store_lock_waiters_slot(STORE_GENERATIONS - 1, STORE_WORKERS_MAX - 1),
                     STORE_WORKERS_MAX * STORE_GENERATIONS - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(lock_waiters_count_until_their_next_poll, setup),
        fixture_test(lock_waiters_latest_deadline_of_worker_counts, setup),
        fixture_test(lock_waiters_generations_have_separate_slots, setup),
        fixture_test(lock_waiters_out_of_range_numbers_have_slots, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

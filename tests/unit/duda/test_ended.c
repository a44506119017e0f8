/* SPDX-License-Identifier: Apache-2.0 */
#include "text/ended.h"

#include <stdlib.h>

#include "unit/test.h"

enum { NOW = 1795600000, HOUR = 3600 };

static struct duda_ended *table;

static int start(void **state)
{
    (void)state;
    table = calloc(1, sizeof *table);
    duda_ended_begin(table);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    free(table);
    return 0;
}

static const unsigned char *number(unsigned i)
{
    static unsigned char n[DUDA_ENDED_NUMBER];
    memcpy(n, &i, sizeof i);
    return n;
}

static void number_that_was_added_is_found_until_its_time_is_over(void **state)
{
    (void)state;
    assert_false(duda_ended_has(table, number(1), NOW));
    duda_ended_add(table, number(1), NOW, NOW + HOUR);
    assert_true(duda_ended_has(table, number(1), NOW));
    assert_true(duda_ended_has(table, number(1), NOW + HOUR));
    assert_false(duda_ended_has(table, number(1), NOW + HOUR + 60));
    assert_false(duda_ended_has(table, number(2), NOW));
    duda_ended_add(table, number(3), NOW, NOW); /* it is over already */
    assert_false(duda_ended_has(table, number(3), NOW));
}

static void number_that_is_added_again_has_one_entry_and_the_later_time(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 100; i++)
        duda_ended_add(table, number(1), NOW, NOW + HOUR + i * 60);
    assert_true(duda_ended_has(table, number(1), NOW + 2 * HOUR));
    unsigned n = 0;
    for (size_t i = 0; i < DUDA_ENDED_LINES; i++)
        for (size_t k = 0; k < DUDA_ENDED_SLOTS; k++)
            n += table->lines[i].slots[k] != 0;
    assert_int_equal(n, 1);
}

static void full_table_drops_what_is_over_first(void **state)
{
    unsigned lost = 0;
    (void)state;
    for (unsigned i = 0; i < 1000; i++)
        duda_ended_add(table, number(i), NOW, NOW + 10 * HOUR);
    for (unsigned i = 1000; i < 400000; i++)
        duda_ended_add(table, number(i), NOW, NOW + HOUR);
    for (unsigned i = 0; i < 1000; i++)
        lost += !duda_ended_has(table, number(i), NOW);
    assert_int_equal(lost, 0);
    assert_true(duda_ended_has(table, number(399999), NOW));
}

/* Minutes have 24 bits: they wrap in 2033. */
static void entry_is_found_beyond_the_wrap_of_minutes(void **state)
{
    const int64_t wrap = INT64_C(2) * (1 << 24) * 60;
    (void)state;
    duda_ended_add(table, number(1), wrap - HOUR, wrap + HOUR);
    assert_true(duda_ended_has(table, number(1), wrap - HOUR));
    assert_true(duda_ended_has(table, number(1), wrap + HOUR));
    assert_false(duda_ended_has(table, number(1), wrap + 2 * HOUR));
}

static void key_is_kept_by_who_begins_again(void **state)
{
    (void)state;
    duda_ended_add(table, number(1), NOW, NOW + HOUR);
    duda_ended_begin(table);
    assert_true(duda_ended_has(table, number(1), NOW));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(number_that_was_added_is_found_until_its_time_is_over, start, stop),
        cmocka_unit_test_setup_teardown(number_that_is_added_again_has_one_entry_and_the_later_time, start,
                                        stop),
        cmocka_unit_test_setup_teardown(full_table_drops_what_is_over_first, start, stop),
        cmocka_unit_test_setup_teardown(entry_is_found_beyond_the_wrap_of_minutes, start, stop),
        cmocka_unit_test_setup_teardown(key_is_kept_by_who_begins_again, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "text/session_rate.h"

#include <stdlib.h>

#include "unit/test.h"

static struct duda_session_rate *table;

static int start(void **state)
{
    (void)state;
    table = calloc(1, sizeof *table);
    duda_session_rate_init(table);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    free(table);
    return 0;
}

static struct mk_addr client(unsigned i)
{
    struct mk_addr p = {0};
    memcpy(p.ip, &i, sizeof i);
    return p;
}

static bool begin(unsigned who, uint64_t window, uint64_t max)
{
    struct mk_addr p = client(who);
    return duda_session_rate_allow(table, &p, window, max);
}

static void client_begins_as_many_as_it_may_in_each_window(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(begin(1, 7, 3), i < 3);
    assert_true(begin(2, 7, 3));
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(begin(1, 8, 3), i < 3);
    assert_false(begin(1, 8, 0));
    assert_true(begin(1, 8 + 65536, 4)); /* windows wrap: then one is counted as another */
}

static void full_table_drops_the_client_with_the_fewest(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 100; i++)
        assert_true(begin(1, 1, 100));
    for (unsigned i = 1000; i < 300000; i++)
        (void)begin(i, 1, 100);
    assert_false(begin(1, 1, 100));
}

static void client_of_an_old_window_gives_way(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 300000; i++)
        (void)begin(i, 1, 100);
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(begin(5, 2, 3), i < 3);
}

static void key_is_kept_by_the_next_start(void **state)
{
    (void)state;
    assert_true(begin(1, 1, 1));
    duda_session_rate_init(table);
    assert_false(begin(1, 1, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(client_begins_as_many_as_it_may_in_each_window, start, stop),
        cmocka_unit_test_setup_teardown(full_table_drops_the_client_with_the_fewest, start, stop),
        cmocka_unit_test_setup_teardown(client_of_an_old_window_gives_way, start, stop),
        cmocka_unit_test_setup_teardown(key_is_kept_by_the_next_start, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "service/session_rate.h"

#include "unit/fixtures.h"
#include "unit/test.h"

static struct duda_session_rate *table;

static void setup(void)
{
    table = heap_setup(sizeof *table);
    duda_session_rate_init(table);
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

static void session_rate_limits_client_per_window(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(begin(1, 7, 3), i < 3);
    assert_true(begin(2, 7, 3));
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(begin(1, 8, 3), i < 3);
    assert_false(begin(1, 8, 0));
    assert_true(begin(1, 8 + 65536, 4)); /* the window number has wrapped around to an earlier one */
}

static void session_rate_full_table_evicts_fewest(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 100; i++)
        assert_true(begin(1, 1, 100));
    for (unsigned i = 1000; i < 300000; i++)
        (void)begin(i, 1, 100);
    assert_false(begin(1, 1, 100));
}

static void session_rate_old_window_is_evicted(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 300000; i++)
        (void)begin(i, 1, 100);
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(begin(5, 2, 3), i < 3);
}

static void session_rate_init_keeps_key(void **state)
{
    (void)state;
    assert_true(begin(1, 1, 1));
    duda_session_rate_init(table);
    assert_false(begin(1, 1, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(session_rate_limits_client_per_window, setup),
        fixture_test(session_rate_full_table_evicts_fewest, setup),
        fixture_test(session_rate_old_window_is_evicted, setup),
        fixture_test(session_rate_init_keeps_key, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Rates of all clients and of each client network. */
#include <stdio.h>

#include "unit/test.h"

#include "rate.h"

enum { NOW = 1000000, HOUR_MS = 3600 * 1000 };

static struct acme_rates rates;

static struct mk_addr network_of(const char *text)
{
    struct mk_addr a = {0};
    assert_true(mk_addr_parse(mk_str_from_c(text), &a));
    return acme_rate_network(&a);
}

static unsigned take_all(enum acme_rate_of what, const char *client, uint64_t now)
{
    const struct mk_addr network = network_of(client);
    unsigned n = 0;
    while (n < 100000 && acme_rates_take(&rates, what, &network, now))
        n++;
    return n;
}

static void rate_client_gets_a_tenth(void **state)
{
    (void)state;
    acme_rates_init(&rates, (struct acme_rate){HOUR_MS / 100, 100});
    assert_int_equal(take_all(ACME_RATE_ISSUES, "192.0.2.1", NOW), 10);
    assert_int_equal(take_all(ACME_RATE_ISSUES, "192.0.2.254", NOW), 0); /* the same network */
    assert_int_equal(take_all(ACME_RATE_ISSUES, "192.0.3.1", NOW), 10);
    assert_int_equal(take_all(ACME_RATE_ISSUES, "2001:db8:0:1::1", NOW), 10);
    assert_int_equal(take_all(ACME_RATE_ISSUES, "2001:db8:0:ff::1", NOW), 0); /* the same /56 */
    assert_int_equal(take_all(ACME_RATE_ISSUES, "2001:db8:0:100::1", NOW), 10);
    assert_int_equal(take_all(ACME_RATE_ASKS, "192.0.2.1", NOW), 10); /* counted separately */
    assert_int_equal(take_all(ACME_RATE_ISSUES, "192.0.2.1", NOW + HOUR_MS / 2), 5);
    assert_int_equal(take_all(ACME_RATE_ISSUES, "192.0.2.1", NOW + 10 * HOUR_MS), 10);
}

static void rate_of_all_clients_is_limited(void **state)
{
    unsigned n = 0;
    (void)state;
    acme_rates_init(&rates, (struct acme_rate){HOUR_MS / 100, 100});
    for (unsigned i = 0; i < 250; i++) {
        char text[32];
        snprintf(text, sizeof text, "10.%u.0.1", i);
        n += take_all(ACME_RATE_ISSUES, text, NOW);
    }
    assert_int_equal(n, 100);
}

static void rate_below_ten_leaves_one_for_each_client(void **state)
{
    (void)state;
    acme_rates_init(&rates, (struct acme_rate){HOUR_MS / 2, 2});
    assert_int_equal(take_all(ACME_RATE_ISSUES, "192.0.2.1", NOW), 1);
    assert_int_equal(take_all(ACME_RATE_ISSUES, "192.0.3.1", NOW), 1);
    assert_int_equal(take_all(ACME_RATE_ISSUES, "192.0.4.1", NOW), 0);
}

/* Networks that crowd a client out of the table give it no more than a new burst. */
static void rate_table_is_bounded(void **state)
{
    (void)state;
    acme_rates_init(&rates, (struct acme_rate){1, 100000});
    for (unsigned i = 0; i < 20000; i++) {
        char text[32];
        snprintf(text, sizeof text, "%u.%u.%u.1", 1 + i % 200, i / 200, i % 7);
        const struct mk_addr network = network_of(text);
        assert_true(acme_rates_take(&rates, ACME_RATE_ISSUES, &network, NOW));
    }
    assert_true(take_all(ACME_RATE_ISSUES, "10.0.0.1", NOW) <= 10000);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(rate_client_gets_a_tenth),
        cmocka_unit_test(rate_of_all_clients_is_limited),
        cmocka_unit_test(rate_below_ten_leaves_one_for_each_client),
        cmocka_unit_test(rate_table_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* How many wrong passwords an address may send. */
#include "unit/test.h"

#include <string.h>

#include "attempts.h"

enum { NOW = 1800000000, LIMIT = 3, SPAN = 60 };

static struct auth_shared shared;

static int begin(void **state)
{
    (void)state;
    memset(&shared, 0, sizeof shared);
    return 0;
}

static struct auth_attempt_key of(const char *address)
{
    struct mk_addr peer;
    assert_true(mk_addr_parse(mk_str_from_c(address), &peer));
    return auth_attempts_key(&shared, &peer, LIMIT, SPAN);
}

static void charge(const struct auth_attempt_key *c, int n)
{
    while (n--)
        assert_int_equal(auth_attempts_charge(&shared, c, NOW), 0);
}

static void as_many_as_the_limit_are_free(void **state)
{
    struct auth_attempt_key c = of("192.0.2.7");
    (void)state;
    assert_int_equal(auth_attempts_blocked_s(&shared, &c, NOW), 0);
    charge(&c, LIMIT - 1);
    assert_int_equal(auth_attempts_blocked_s(&shared, &c, NOW), 0);
    charge(&c, 1);
    assert_int_equal(auth_attempts_blocked_s(&shared, &c, NOW), SPAN);
    assert_int_equal(auth_attempts_charge(&shared, &c, NOW), SPAN);
    assert_int_equal(auth_attempts_blocked_s(&shared, &c, NOW + 20), SPAN - 20);
    assert_int_equal(auth_attempts_charge(&shared, &c, NOW + 20), SPAN - 20);
}

static void the_span_begins_with_the_first_attempt(void **state)
{
    struct auth_attempt_key c = of("192.0.2.7");
    (void)state;
    charge(&c, 1);
    assert_int_equal(auth_attempts_charge(&shared, &c, NOW + 50), 0);
    assert_int_equal(auth_attempts_charge(&shared, &c, NOW + 50), 0);
    assert_int_equal(auth_attempts_blocked_s(&shared, &c, NOW + SPAN - 1), 1);
    assert_int_equal(auth_attempts_blocked_s(&shared, &c, NOW + SPAN), 0);
    assert_int_equal(auth_attempts_charge(&shared, &c, NOW + SPAN), 0);
    assert_int_equal(auth_attempts_blocked_s(&shared, &c, NOW + SPAN), 0); /* one again */
}

static void a_clock_that_was_set_back_blocks_nobody(void **state)
{
    struct auth_attempt_key c = of("192.0.2.7");
    (void)state;
    charge(&c, LIMIT);
    assert_int_equal(auth_attempts_blocked_s(&shared, &c, NOW - 2 * AUTH_SPAN_MAX_S), 0);
}

static void right_passwords_are_given_back(void **state)
{
    struct auth_attempt_key c = of("192.0.2.7"), other = of("192.0.2.8");
    (void)state;
    charge(&c, LIMIT);
    auth_attempts_refund(&shared, &c, NOW);
    assert_int_equal(auth_attempts_blocked_s(&shared, &c, NOW), 0);
    charge(&c, 1);
    assert_int_equal(auth_attempts_blocked_s(&shared, &c, NOW), SPAN);
    for (int i = 0; i < 2 * LIMIT; i++)
        auth_attempts_refund(&shared, &c, NOW);
    auth_attempts_refund(&shared, &other, NOW); /* of whom nothing is known */
    charge(&c, LIMIT);
    assert_int_equal(auth_attempts_blocked_s(&shared, &c, NOW), SPAN);
    charge(&other, LIMIT);
    assert_int_equal(auth_attempts_blocked_s(&shared, &other, NOW), SPAN);
}

static void no_limit_blocks_nobody(void **state)
{
    struct auth_attempt_key c = of("192.0.2.7");
    (void)state;
    c.limit = 0;
    charge(&c, 2000);
    assert_int_equal(auth_attempts_blocked_s(&shared, &c, NOW), 0);
    auth_attempts_refund(&shared, &c, NOW);
    for (int i = 0; i < AUTH_BUCKETS; i++)
        for (int k = 0; k < AUTH_WAYS; k++)
            assert_int_equal(atomic_load(&shared.attempts[i].way[k]), 0);
}

/* A subscriber has a whole network of IPv6; another rule has a count of its own. */
static void clients_and_rules_are_told_apart(void **state)
{
    struct mk_addr a, unix_peer = {.is_unix = 1};
    (void)state;
    assert_int_equal(of("2001:db8:1:2::1").hash, of("2001:db8:1:2:ffff::9").hash);
    assert_int_not_equal(of("2001:db8:1:2::1").hash, of("2001:db8:1:3::1").hash);
    assert_int_equal(of("192.0.2.7:80").hash, of("192.0.2.7:81").hash);
    assert_int_not_equal(of("192.0.2.7").hash, of("192.0.2.8").hash);
    assert_true(mk_addr_parse(MK_STR("192.0.2.7"), &a));
    assert_int_not_equal(auth_attempts_key(&shared, &a, LIMIT + 1, SPAN).hash, of("192.0.2.7").hash);
    assert_int_not_equal(auth_attempts_key(&shared, &a, LIMIT, SPAN + 1).hash, of("192.0.2.7").hash);
    assert_int_not_equal(auth_attempts_key(&shared, &unix_peer, LIMIT, SPAN).hash, of("::").hash);
    assert_int_equal(auth_attempts_key(&shared, &a, LIMIT, SPAN).limit, LIMIT);
    assert_int_equal(auth_attempts_key(&shared, &a, LIMIT, SPAN).span_s, SPAN);
    uint64_t before = of("192.0.2.7").hash;
    shared.secret[0] = 1;
    assert_int_not_equal(of("192.0.2.7").hash, before); /* clients cannot choose their bucket */
}

/* ---- A bucket that is full ---- */

static struct auth_attempt_key in_bucket(uint64_t client)
{
    return (struct auth_attempt_key){.hash = client << 32 | 5, .limit = LIMIT, .span_s = SPAN};
}

static bool is_counted(uint64_t client, int64_t now)
{
    struct auth_attempt_key c = in_bucket(client);
    c.limit = 1;
    return auth_attempts_blocked_s(&shared, &c, now) > 0;
}

static void the_client_with_the_fewest_attempts_gives_way(void **state)
{
    struct auth_attempt_key ninth = in_bucket(9);
    (void)state;
    for (uint64_t i = 1; i <= AUTH_WAYS; i++) {
        struct auth_attempt_key c = in_bucket(i);
        charge(&c, i == 4 ? 1 : 2);
    }
    for (uint64_t i = 1; i <= AUTH_WAYS; i++)
        assert_true(is_counted(i, NOW));
    charge(&ninth, 1);
    for (uint64_t i = 1; i <= AUTH_WAYS; i++)
        assert_int_equal(is_counted(i, NOW), i != 4);
    assert_true(is_counted(9, NOW));
}

static void of_equal_ones_the_first_to_end_gives_way(void **state)
{
    struct auth_attempt_key ninth = in_bucket(9);
    (void)state;
    for (uint64_t i = 1; i <= AUTH_WAYS; i++) {
        struct auth_attempt_key c = in_bucket(i);
        c.span_s = i == 6 ? SPAN - 1 : SPAN;
        charge(&c, 1);
    }
    charge(&ninth, 1);
    for (uint64_t i = 1; i <= AUTH_WAYS; i++)
        assert_int_equal(is_counted(i, NOW), i != 6);
}

static void a_client_whose_time_is_over_gives_way_first(void **state)
{
    struct auth_attempt_key ninth = in_bucket(9);
    (void)state;
    for (uint64_t i = 1; i <= AUTH_WAYS; i++) {
        struct auth_attempt_key c = in_bucket(i);
        c.span_s = i == 7 ? 10 : SPAN;
        charge(&c, i == 7 ? LIMIT : 1);
    }
    assert_int_equal(auth_attempts_charge(&shared, &ninth, NOW + 10), 0);
    for (uint64_t i = 1; i <= AUTH_WAYS; i++)
        assert_int_equal(is_counted(i, NOW + 10), i != 7);
}

#define TEST(f) cmocka_unit_test_setup(f, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(as_many_as_the_limit_are_free),
                                       TEST(the_span_begins_with_the_first_attempt),
                                       TEST(a_clock_that_was_set_back_blocks_nobody),
                                       TEST(right_passwords_are_given_back),
                                       TEST(no_limit_blocks_nobody),
                                       TEST(clients_and_rules_are_told_apart),
                                       TEST(the_client_with_the_fewest_attempts_gives_way),
                                       TEST(of_equal_ones_the_first_to_end_gives_way),
                                       TEST(a_client_whose_time_is_over_gives_way_first)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

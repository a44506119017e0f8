/* SPDX-License-Identifier: Apache-2.0 */
/* The limit on wrong passwords from one client address. */
#include "unit/test.h"

#include <string.h>

#include "attempts.h"

enum { NOW = 1800000000, LIMIT = 3, SPAN = 60 };

static struct auth_shared shared;

static void setup(void)
{
    memset(&shared, 0, sizeof shared);
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

static void attempts_within_limit_are_not_blocked(void **state)
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

static void attempts_span_begins_with_first_attempt(void **state)
{
    struct auth_attempt_key c = of("192.0.2.7");
    (void)state;
    charge(&c, 1);
    assert_int_equal(auth_attempts_charge(&shared, &c, NOW + 50), 0);
    assert_int_equal(auth_attempts_charge(&shared, &c, NOW + 50), 0);
    assert_int_equal(auth_attempts_blocked_s(&shared, &c, NOW + SPAN - 1), 1);
    assert_int_equal(auth_attempts_blocked_s(&shared, &c, NOW + SPAN), 0);
    assert_int_equal(auth_attempts_charge(&shared, &c, NOW + SPAN), 0);
    assert_int_equal(auth_attempts_blocked_s(&shared, &c, NOW + SPAN), 0); /* the count restarts at one */
}

static void attempts_clock_set_back_blocks_no_client(void **state)
{
    struct auth_attempt_key c = of("192.0.2.7");
    (void)state;
    charge(&c, LIMIT);
    assert_int_equal(auth_attempts_blocked_s(&shared, &c, NOW - 2 * AUTH_SPAN_MAX_S), 0);
}

static void attempts_correct_password_is_refunded(void **state)
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
    auth_attempts_refund(&shared, &other, NOW); /* an unknown client */
    charge(&c, LIMIT);
    assert_int_equal(auth_attempts_blocked_s(&shared, &c, NOW), SPAN);
    charge(&other, LIMIT);
    assert_int_equal(auth_attempts_blocked_s(&shared, &other, NOW), SPAN);
}

static void attempts_without_limit_are_never_blocked(void **state)
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

/* An IPv6 subscriber has a whole network, which counts as one client; each rule has its own counts. */
static void attempts_keys_differ_by_client_and_rule(void **state)
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
    /* The hash is keyed, so that clients cannot choose their bucket. */
    assert_int_not_equal(of("192.0.2.7").hash, before);
}

/* ---- Full bucket ---- */

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

static void attempts_full_bucket_evicts_fewest_attempts(void **state)
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

static void attempts_full_bucket_evicts_first_to_expire(void **state)
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

static void attempts_full_bucket_evicts_expired_first(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {fixture_test(attempts_within_limit_are_not_blocked, setup),
                                       fixture_test(attempts_span_begins_with_first_attempt, setup),
                                       fixture_test(attempts_clock_set_back_blocks_no_client, setup),
                                       fixture_test(attempts_correct_password_is_refunded, setup),
                                       fixture_test(attempts_without_limit_are_never_blocked, setup),
                                       fixture_test(attempts_keys_differ_by_client_and_rule, setup),
                                       fixture_test(attempts_full_bucket_evicts_fewest_attempts, setup),
                                       fixture_test(attempts_full_bucket_evicts_first_to_expire, setup),
                                       fixture_test(attempts_full_bucket_evicts_expired_first, setup)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

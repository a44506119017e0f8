/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of verified passwords. */
#include "unit/test.h"

#include "cache.h"

enum { SPAN = 1000, WAYS = 4 };

static struct auth_cache *cache;

static void setup(void)
{
    cache = auth_cache_new();
    assert_non_null(cache);
}

static void teardown(void)
{
    auth_cache_free(cache);
}

/* Returns one of the MACs that map to the same set. */
static const uint8_t *mac(uint8_t number)
{
    static uint8_t macs[256][AUTH_MAC_LEN];
    macs[number][AUTH_MAC_LEN - 1] = number;
    return macs[number];
}

static bool has(uint8_t number, uint64_t now)
{
    return auth_cache_has(cache, mac(number), now, SPAN);
}

static void auth_cache_entry_expires(void **state)
{
    (void)state;
    assert_false(has(0, 5000)); /* an empty slot does not match a MAC of zeros */
    auth_cache_add(cache, mac(1), 5000);
    assert_true(has(1, 5000));
    assert_true(has(1, 5999));
    assert_false(has(1, 6000));
    assert_false(has(2, 5000));
}

static void auth_cache_same_password_renews_entry(void **state)
{
    (void)state;
    for (uint8_t i = 1; i <= WAYS; i++)
        auth_cache_add(cache, mac(i), 5000);
    auth_cache_add(cache, mac(2), 5500);
    assert_true(has(2, 6400));
    for (uint8_t i = 1; i <= WAYS; i++)
        assert_true(has(i, 5500));
}

static void auth_cache_full_set_evicts_oldest(void **state)
{
    (void)state;
    for (uint8_t i = 1; i <= WAYS; i++)
        auth_cache_add(cache, mac(i), i == 3 ? 4999 : 5000);
    auth_cache_add(cache, mac(9), 5001);
    for (uint8_t i = 1; i <= WAYS; i++)
        assert_int_equal(has(i, 5001), i != 3);
    assert_true(has(9, 5001));
}

static void auth_cache_sets_are_independent(void **state)
{
    uint8_t other[AUTH_MAC_LEN] = {7};
    (void)state;
    auth_cache_add(cache, other, 1);
    for (uint8_t i = 1; i <= 2 * WAYS; i++)
        auth_cache_add(cache, mac(i), 2);
    assert_true(auth_cache_has(cache, other, 2, SPAN));
}

int main(void)
{
    const struct CMUnitTest tests[] = {fixture_test(auth_cache_entry_expires, setup, teardown),
                                       fixture_test(auth_cache_same_password_renews_entry, setup, teardown),
                                       fixture_test(auth_cache_full_set_evicts_oldest, setup, teardown),
                                       fixture_test(auth_cache_sets_are_independent, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

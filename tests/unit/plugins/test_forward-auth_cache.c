/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of permissions. */
#include "unit/test.h"

#include "cache.h"

enum { TTL = 1000 };

static struct forward_auth_cache cache;
static struct forward_auth_answer answers[FORWARD_AUTH_CACHE_WAYS + 2];

/* Here an answer is not on the heap: only its count matters. */
void forward_auth_answer_unref(struct forward_auth_answer *a)
{
    if (a)
        a->refs--;
}

static void setup(void)
{
    memset(&cache, 0, sizeof cache);
    for (size_t i = 0; i < MK_LEN(answers); i++)
        answers[i] = (struct forward_auth_answer){.refs = 1, .status = 200, .size = 100};
}

static void teardown(void)
{
    forward_auth_cache_clear(&cache);
    for (size_t i = 0; i < MK_LEN(answers); i++)
        assert_int_equal(answers[i].refs, 1);
}

/* Returns one of the keys of a set. */
static const char *key(char number)
{
    static char keys[128][FORWARD_AUTH_KEY_LEN];
    char *k = keys[(unsigned char)number];
    k[0] = '\x7f';
    k[FORWARD_AUTH_KEY_LEN - 1] = number;
    return k;
}

static void forward_auth_cache_entry_expires(void **state)
{
    (void)state;
    static const char zeros[FORWARD_AUTH_KEY_LEN];
    assert_null(forward_auth_cache_find(&cache, zeros, 0));
    forward_auth_cache_store(&cache, key(1), &answers[0], 5000, TTL);
    assert_ptr_equal(forward_auth_cache_find(&cache, key(1), 5000), &answers[0]);
    assert_ptr_equal(forward_auth_cache_find(&cache, key(1), 5999), &answers[0]);
    assert_null(forward_auth_cache_find(&cache, key(1), 6000));
    assert_null(forward_auth_cache_find(&cache, key(2), 5000));
}

static void forward_auth_cache_same_key_replaces_entry(void **state)
{
    (void)state;
    forward_auth_cache_store(&cache, key(1), &answers[0], 5000, TTL);
    forward_auth_cache_store(&cache, key(1), &answers[1], 5500, TTL);
    assert_ptr_equal(forward_auth_cache_find(&cache, key(1), 6400), &answers[1]);
    assert_int_equal(answers[0].refs, 1);
}

static void forward_auth_cache_full_set_evicts_first_to_expire(void **state)
{
    (void)state;
    for (char i = 0; i <= FORWARD_AUTH_CACHE_WAYS; i++)
        forward_auth_cache_store(&cache, key(i), &answers[(size_t)i], 5000 + (i == 1 ? 0 : 10 + (uint64_t)i),
                                 TTL);
    assert_null(forward_auth_cache_find(&cache, key(1), 5100));
    for (char i = 0; i <= FORWARD_AUTH_CACHE_WAYS; i++)
        if (i != 1)
            assert_ptr_equal(forward_auth_cache_find(&cache, key(i), 5100), &answers[(size_t)i]);
}

static void forward_auth_cache_stores_only_small_permissions_without_cookies(void **state)
{
    (void)state;
    answers[0].status = 401;
    answers[1].sets_cookies = true;
    answers[2].size = FORWARD_AUTH_CACHED_MAX + 1;
    answers[3].status = 504;
    for (char i = 0; i < 4; i++) {
        forward_auth_cache_store(&cache, key(i), &answers[(size_t)i], 5000, TTL);
        assert_null(forward_auth_cache_find(&cache, key(i), 5000));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(forward_auth_cache_entry_expires, setup, teardown),
        fixture_test(forward_auth_cache_same_key_replaces_entry, setup, teardown),
        fixture_test(forward_auth_cache_full_set_evicts_first_to_expire, setup, teardown),
        fixture_test(forward_auth_cache_stores_only_small_permissions_without_cookies, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

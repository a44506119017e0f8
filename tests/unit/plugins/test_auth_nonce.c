/* SPDX-License-Identifier: Apache-2.0 */
/* Digest nonces: the server recognizes its own nonces, and accepts each nonce count once. */
#include "unit/test.h"

#include <string.h>

#include "nonce.h"

enum { NOW = 1800000000, SPAN = 300, SLACK = 4 };

static struct auth_shared shared;

static void setup(void)
{
    memset(&shared, 0, sizeof shared);
}

/* ---- Authenticity ---- */

static bool parse(const char *realm, const char text[AUTH_NONCE_LEN], struct auth_nonce *out)
{
    return auth_nonce_parse(&shared, mk_str_from_c(realm), mk_str_of(text, AUTH_NONCE_LEN), out);
}

static void nonce_of_this_server_is_accepted(void **state)
{
    char text[AUTH_NONCE_LEN], other[AUTH_NONCE_LEN];
    struct auth_nonce n;
    (void)state;
    auth_nonce_generate(&shared, MK_STR("realm"), NOW, text);
    assert_true(parse("realm", text, &n));
    assert_int_equal(n.time, NOW);
    auth_nonce_generate(&shared, MK_STR("realm"), NOW, other);
    assert_memory_not_equal(text, other, sizeof text);
    assert_false(parse("other", text, &n));
    assert_false(auth_nonce_parse(&shared, MK_STR("realm"), mk_str_of(text, AUTH_NONCE_LEN - 2), &n));
    shared.secret[3] ^= 1;
    assert_false(parse("realm", text, &n));
}

static void nonce_modified_is_rejected(void **state)
{
    char text[AUTH_NONCE_LEN];
    struct auth_nonce n;
    (void)state;
    auth_nonce_generate(&shared, MK_STR("realm"), NOW, text);
    for (size_t i = 0; i < sizeof text; i++) {
        char before = text[i];
        text[i] = before == '0' ? '1' : '0';
        assert_false(parse("realm", text, &n));
        text[i] = 'x';
        assert_false(parse("realm", text, &n));
        text[i] = before;
    }
    assert_true(parse("realm", text, &n));
}

/* ---- Nonce counts ---- */

static bool use(uint64_t id, uint32_t count)
{
    const struct auth_nonce n = {.time = NOW, .id = id << 32};
    return auth_nonce_consume(&shared, &n, count, NOW, SPAN);
}

static void nonce_count_is_accepted_once(void **state)
{
    (void)state;
    assert_true(use(1, 1));
    assert_false(use(1, 1));
    assert_true(use(1, 2));
    assert_false(use(1, 1));
    assert_false(use(1, 2));
    assert_true(use(2, 1)); /* another nonce */
    assert_false(use(1, 0));
    assert_true(use(1, (1 << 17) - 1));
    assert_false(use(1, 1 << 17));
    assert_false(use(3, 0));
    assert_false(use(3, 1 << 17));
}

/* Clients send requests in parallel, so the counts may arrive in any order. */
static void nonce_counts_may_arrive_out_of_order(void **state)
{
    (void)state;
    assert_true(use(1, 20));
    for (uint32_t count = 19; count >= 4; count--)
        assert_true(use(1, count));
    for (uint32_t count = 20; count >= 4; count--)
        assert_false(use(1, count));
    assert_false(use(1, 3)); /* this count is older than the replay window */
    assert_true(use(1, 23));
    assert_true(use(1, 22));
    assert_false(use(1, 20));
    assert_false(use(1, 7));
    assert_true(use(1, 21));
    assert_false(use(1, 21));
}

static void nonce_count_jump_keeps_replay_protection(void **state)
{
    (void)state;
    assert_true(use(1, 1));
    assert_true(use(1, 17)); /* the last count within the replay window */
    assert_false(use(1, 1));
    assert_true(use(1, 2));
    assert_true(use(1, 34));
    assert_false(use(1, 17)); /* beyond the replay window */
    assert_true(use(1, 18));
    assert_true(use(1, 100));
    assert_true(use(1, 99));
    assert_false(use(1, 100));
}

/* ---- Lifetime ---- */

static void nonce_expires_after_span(void **state)
{
    const struct auth_nonce n = {.time = NOW, .id = 1};
    (void)state;
    assert_true(auth_nonce_consume(&shared, &n, 1, NOW + SPAN, SPAN));
    assert_false(auth_nonce_consume(&shared, &n, 2, NOW + SPAN + 1, SPAN));
    /* A worker whose clock is ahead has issued this nonce. */
    assert_true(auth_nonce_consume(&shared, &n, 3, NOW - SLACK, SPAN));
    assert_false(auth_nonce_consume(&shared, &n, 4, NOW - SLACK - 1, SPAN));
}

/* ---- Full bucket ---- */

static bool use_at(int64_t time, uint64_t id, uint32_t count, int64_t now)
{
    const struct auth_nonce n = {.time = (uint64_t)time, .id = id << 32 | 5};
    return auth_nonce_consume(&shared, &n, count, now, SPAN);
}

static void nonce_full_bucket_evicts_and_invalidates_oldest(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= AUTH_WAYS; i++)
        assert_true(use_at(i == 3 ? NOW : NOW + 2, i, 1, NOW + 2));
    assert_true(use_at(NOW + 3, 9, 1, NOW + 3));
    assert_false(use_at(NOW, 3, 1, NOW + 3)); /* this nonce may have been used before its eviction */
    assert_false(use_at(NOW, 3, 2, NOW + 3));
    assert_false(use_at(NOW, 10, 1, NOW + 3)); /* this nonce, too, may have been used and evicted */
    for (uint64_t i = 1; i <= AUTH_WAYS; i++)
        if (i != 3)
            assert_true(use_at(NOW + 2, i, 2, NOW + 3));
    assert_true(use_at(NOW + 3, 9, 2, NOW + 3));
}

static void nonce_full_bucket_accepts_newer_nonces(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= 50; i++) {
        assert_true(use_at(NOW + (int64_t)i, i, 1, NOW + (int64_t)i));
        assert_false(use_at(NOW + (int64_t)i, i, 1, NOW + (int64_t)i));
    }
}

/* The table stores the low 17 bits of the time in seconds: the order must survive the wraparound. */
static void nonce_full_bucket_finds_oldest_across_wraparound(void **state)
{
    const int64_t wrap = (int64_t)NOW / (1 << 17) * (1 << 17);
    (void)state;
    for (uint64_t i = 1; i <= AUTH_WAYS; i++)
        assert_true(use_at(i == 2 ? wrap - 1 : wrap + 1, i, 1, wrap + 1));
    assert_true(use_at(wrap + 2, 9, 1, wrap + 2));
    assert_true(use_at(wrap + 1, 1, 2, wrap + 2));
    assert_false(use_at(wrap - 1, 2, 2, wrap + 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {fixture_test(nonce_of_this_server_is_accepted, setup),
                                       fixture_test(nonce_modified_is_rejected, setup),
                                       fixture_test(nonce_count_is_accepted_once, setup),
                                       fixture_test(nonce_counts_may_arrive_out_of_order, setup),
                                       fixture_test(nonce_count_jump_keeps_replay_protection, setup),
                                       fixture_test(nonce_expires_after_span, setup),
                                       fixture_test(nonce_full_bucket_evicts_and_invalidates_oldest, setup),
                                       fixture_test(nonce_full_bucket_accepts_newer_nonces, setup),
                                       fixture_test(nonce_full_bucket_finds_oldest_across_wraparound, setup)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

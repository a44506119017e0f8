/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of verified passes. */
#include "unit/test.h"

#include "cache.h"

static struct challenge_cache cache;
static const char key[] = "0123456789abcdef0123456789abcdef", other_key[] = "x";
static const struct challenge_token pass = {.bits = 16, .time = 1790000000};

static struct challenge_scope scope(const char *secret, const char *host, const char *address)
{
    struct challenge_scope s = {.key = mk_str_from_c(secret), .host = mk_str_from_c(host)};
    assert_true(mk_addr_parse(mk_str_from_c(address), &s.client));
    return s;
}

static mk_str text(const struct challenge_scope *s, char buf[CHALLENGE_TOKEN_LEN])
{
    assert_true(challenge_token_write(s, CHALLENGE_PASS, &pass, buf));
    return mk_str_of(buf, CHALLENGE_TOKEN_LEN);
}

static void setup(void)
{
    cache = (struct challenge_cache){0};
}

static void teardown(void)
{
}

static void cache_finds_a_pass_only_in_its_scope(void **state)
{
    char buf[CHALLENGE_TOKEN_LEN];
    struct challenge_scope own = scope(key, "site.example", "2001:db8::1");
    mk_str t = text(&own, buf);
    (void)state;
    assert_null(challenge_cache_find(&cache, &own, t));
    challenge_cache_store(&cache, &own, t, &pass);
    const struct challenge_token *found = challenge_cache_find(&cache, &own, t);
    assert_non_null(found);
    assert_int_equal(found->bits, pass.bits);
    assert_int_equal(found->time, pass.time);
    const struct challenge_scope same = scope(key, "site.example", "[2001:db8::2]:80");
    assert_non_null(challenge_cache_find(&cache, &same, t));
    const struct challenge_scope others[] = {
        scope(key, "site.example", "2001:db8:0:1::1"), scope(key, "other.example", "2001:db8::1"),
        scope(key, "", "2001:db8::1"), scope(other_key, "site.example", "2001:db8::1")};
    for (size_t i = 0; i < MK_LEN(others); i++)
        assert_null(challenge_cache_find(&cache, &others[i], t));
    own.client.is_unix = 1;
    assert_null(challenge_cache_find(&cache, &own, t));
}

static void cache_compares_the_whole_text(void **state)
{
    char buf[CHALLENGE_TOKEN_LEN];
    const struct challenge_scope own = scope(key, "site.example", "192.0.2.1");
    mk_str t = text(&own, buf);
    (void)state;
    challenge_cache_store(&cache, &own, t, &pass);
    for (size_t i = 0; i < sizeof buf; i++) {
        buf[i] ^= 1;
        assert_null(challenge_cache_find(&cache, &own, t));
        buf[i] = (char)0x80;
        assert_null(challenge_cache_find(&cache, &own, t));
        (void)text(&own, buf);
    }
    assert_null(challenge_cache_find(&cache, &own, mk_str_first(t, t.len - 1)));
    assert_null(challenge_cache_find(&cache, &own, MK_STR("")));
    assert_null(challenge_cache_find(&cache, &own, MK_STR_NULL));
    assert_non_null(challenge_cache_find(&cache, &own, t));
}

static void cache_skips_long_host_names(void **state)
{
    char host[CHALLENGE_CACHE_HOST_MAX + 2] = {0}, buf[CHALLENGE_TOKEN_LEN];
    (void)state;
    memset(host, 'a', CHALLENGE_CACHE_HOST_MAX);
    struct challenge_scope s = scope(key, host, "192.0.2.1");
    mk_str t = text(&s, buf);
    challenge_cache_store(&cache, &s, t, &pass);
    assert_non_null(challenge_cache_find(&cache, &s, t));
    host[CHALLENGE_CACHE_HOST_MAX] = 'a';
    s = scope(key, host, "192.0.2.1");
    t = text(&s, buf);
    challenge_cache_store(&cache, &s, t, &pass);
    assert_null(challenge_cache_find(&cache, &s, t));
}

int main(void)
{
    const struct CMUnitTest tests[] = {fixture_test(cache_finds_a_pass_only_in_its_scope, setup, teardown),
                                       fixture_test(cache_compares_the_whole_text, setup, teardown),
                                       fixture_test(cache_skips_long_host_names, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

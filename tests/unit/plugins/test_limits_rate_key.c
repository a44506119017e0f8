/* SPDX-License-Identifier: Apache-2.0 */
/* Rate limit keys decide which requests count together. */
#include "unit/test.h"

#include <string.h>

#include "rate_key.h"

static struct limits_table table = {.key = {.k0 = 1, .k1 = 2}};
static struct mk_addr peer;
static mk_str field, host;
static bool has_host;

/* ---- Fake server ---- */

mk_str mk_request_header(const struct mk_request *r, mk_str name)
{
    (void)r;
    return mk_str_eq(name, MK_STR("Key")) ? field : mk_str_of(NULL, 0);
}

const struct mk_addr *mk_request_client_addr(const struct mk_request *r)
{
    (void)r;
    return &peer;
}

const struct mk_vhost *mk_request_vhost(const struct mk_request *r)
{
    (void)r;
    return has_host ? (const struct mk_vhost *)(const void *)&host : NULL;
}

mk_str mk_vhost_name(const struct mk_vhost *h)
{
    (void)h;
    return host;
}

/* ---- Keys ---- */

static uint64_t subject(unsigned by, const char *address, const char *value, const char *path)
{
    const struct limits_rule rule = {.id = 7, .by = by, .header = MK_STR("Key")};
    assert_true(mk_addr_parse(mk_str_from_c(address), &peer));
    field = mk_str_from_c(value);
    return limits_rate_key_hash(&rule, &table, NULL, mk_str_from_c(path));
}

static void rate_key_empty_counts_all_requests_together(void **state)
{
    (void)state;
    assert_int_equal(subject(0, "192.0.2.1", "a", "/x"), subject(0, "192.0.2.2", "b", "/y"));
}

static void rate_key_address_is_ipv4_or_ipv6_network(void **state)
{
    const unsigned by = LIMITS_BY_ADDRESS;
    (void)state;
    assert_int_equal(subject(by, "192.0.2.1:1", "a", "/x"), subject(by, "192.0.2.1:2", "b", "/y"));
    assert_int_not_equal(subject(by, "192.0.2.1", "", "/"), subject(by, "192.0.2.2", "", "/"));
    assert_int_equal(subject(by, "2001:db8:1:2::1", "", "/"), subject(by, "2001:db8:1:2:ffff::", "", "/"));
    assert_int_not_equal(subject(by, "2001:db8:1:2::1", "", "/"), subject(by, "2001:db8:1:3::1", "", "/"));
    uint64_t none = subject(by, "::", "", "/");
    const struct limits_rule rule = {.id = 7, .by = by};
    peer = (struct mk_addr){.is_unix = 1};
    assert_int_not_equal(limits_rate_key_hash(&rule, &table, NULL, MK_STR("/")), none);
}

static void rate_key_path_is_separate_for_each_vhost(void **state)
{
    const unsigned by = LIMITS_BY_PATH;
    (void)state;
    uint64_t without = subject(by, "192.0.2.1", "", "/x");
    assert_int_equal(without, subject(by, "192.0.2.2", "", "/x"));
    assert_int_not_equal(without, subject(by, "192.0.2.1", "", "/y"));
    has_host = true;
    host = MK_STR("one");
    uint64_t of_one = subject(by, "192.0.2.1", "", "/x");
    host = MK_STR("two");
    assert_int_not_equal(of_one, subject(by, "192.0.2.1", "", "/x"));
    assert_int_not_equal(of_one, without);
    has_host = false;
}

static void rate_key_header_is_independent_of_address(void **state)
{
    const unsigned by = LIMITS_BY_HEADER;
    (void)state;
    assert_int_equal(subject(by, "192.0.2.1", "a", "/x"), subject(by, "192.0.2.2", "a", "/y"));
    assert_int_not_equal(subject(by, "192.0.2.1", "a", "/"), subject(by, "192.0.2.1", "b", "/"));
    assert_int_not_equal(subject(by | LIMITS_BY_ADDRESS, "192.0.2.1", "a", "/"),
                         subject(by | LIMITS_BY_ADDRESS, "192.0.2.2", "a", "/"));
}

static void rate_key_missing_header_falls_back_to_address(void **state)
{
    const unsigned by = LIMITS_BY_HEADER;
    (void)state;
    assert_int_equal(subject(by, "192.0.2.1", "", "/x"), subject(by, "192.0.2.1", "", "/y"));
    assert_int_not_equal(subject(by, "192.0.2.1", "", "/"), subject(by, "192.0.2.2", "", "/"));
}

static void rate_key_differs_by_rule_and_server(void **state)
{
    const struct limits_rule one = {.id = 1}, two = {.id = 2};
    (void)state;
    uint64_t of_one = limits_rate_key_hash(&one, &table, NULL, MK_STR("/"));
    assert_int_not_equal(of_one, limits_rate_key_hash(&two, &table, NULL, MK_STR("/")));
    table.key.k0++;
    assert_int_not_equal(of_one, limits_rate_key_hash(&one, &table, NULL, MK_STR("/")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rate_key_empty_counts_all_requests_together),
                                       cmocka_unit_test(rate_key_address_is_ipv4_or_ipv6_network),
                                       cmocka_unit_test(rate_key_path_is_separate_for_each_vhost),
                                       cmocka_unit_test(rate_key_header_is_independent_of_address),
                                       cmocka_unit_test(rate_key_missing_header_falls_back_to_address),
                                       cmocka_unit_test(rate_key_differs_by_rule_and_server)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "os/network_set.h"

#include <stdio.h>
#include <stdlib.h>

#include "unit/test.h"

enum { MANY = 10000 };

static void *memory;

static struct mk_network network_of(const char *text)
{
    struct mk_network n;
    if (!mk_network_parse(mk_str_from_c(text), &n))
        fail_msg("%s is no network", text);
    return n;
}

static struct mk_addr peer_of(const char *text)
{
    struct mk_addr p = {.is_unix = strcmp(text, "unix:") == 0};
    if (!p.is_unix && !mk_addr_parse(mk_str_from_c(text), &p))
        fail_msg("%s is no peer", text);
    return p;
}

static struct mk_network_set *make(const struct mk_network *v, const uint32_t *numbers, size_t n)
{
    free(memory);
    memory = malloc(mk_network_set_size(n)); /* the exact size, so that the sanitizer detects overruns */
    assert_non_null(memory);
    return mk_network_set_build(memory, v, numbers, n);
}

static void drop(void)
{
    free(memory);
    memory = NULL;
}

/* Expects that exactly the networks with these numbers ("0 2 5") contain the address. */
static void expect(const struct mk_network_set *s, const char *peer, const char *numbers)
{
    char buffer[256];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    struct mk_addr p = peer_of(peer);
    for (uint32_t i = 0; (i = mk_network_set_next(s, &p, i)) != MK_NETWORK_NONE; i++)
        mk_buf_addf(&out, "%s%u", out.len ? " " : "", i);
    assert_str(mk_buf_str(&out), numbers);
    assert_int_equal(mk_network_set_contains(s, &p), *numbers != 0);
}

static void network_set_empty_contains_nothing(void **state)
{
    (void)state;
    expect(NULL, "1.2.3.4", "");
    const struct mk_network_set *s = make(NULL, NULL, 0);
    expect(s, "1.2.3.4", "");
    expect(s, "unix:", "");
}

static void network_set_finds_all_enclosing_networks_in_order(void **state)
{
    (void)state;
    static const char *const texts[] = {"10.0.0.0/8", "10.1.0.0/16", "all",         "10.1.2.0/24",
                                        "0.0.0.0/0",  "10.1.2.3",    "::/0",        "2001:db8::/32",
                                        "unix:",      "10.1.0.0/16", "192.0.2.0/24"};
    struct mk_network v[MK_LEN(texts)];
    for (size_t i = 0; i < MK_LEN(texts); i++)
        v[i] = network_of(texts[i]);
    const struct mk_network_set *s = make(v, NULL, MK_LEN(texts));
    expect(s, "10.1.2.3", "0 1 2 3 4 5 9");
    expect(s, "10.1.2.4", "0 1 2 3 4 9");
    expect(s, "10.1.3.0", "0 1 2 4 9");
    expect(s, "10.2.0.0", "0 2 4");
    expect(s, "9.255.255.255", "2 4");
    expect(s, "11.0.0.0", "2 4");
    expect(s, "192.0.2.255", "2 4 10");
    expect(s, "2001:db8::1", "2 6 7");
    expect(s, "2001:db9::", "2 6");
    expect(s, "::", "2 6");
    expect(s, "unix:", "2 8");
}

static void network_set_values_may_be_given_and_shared(void **state)
{
    (void)state;
    const struct mk_network v[] = {network_of("10.0.0.0/8"), network_of("10.0.0.0/8"), network_of("10.0.0.1"),
                                   network_of("10.0.0.0/8")};
    const uint32_t numbers[] = {7, 3, 3, 4000000000u};
    const struct mk_network_set *s = make(v, numbers, MK_LEN(v));
    expect(s, "10.0.0.1", "3 7 4000000000");
    expect(s, "10.0.0.2", "3 7 4000000000");
    struct mk_addr p = peer_of("10.0.0.1");
    assert_int_equal(mk_network_set_next(s, &p, 4), 7);
    assert_int_equal(mk_network_set_next(s, &p, 8), 4000000000u);
}

static void network_set_finds_first_and_last_addresses(void **state)
{
    (void)state;
    const struct mk_network v[] = {network_of("::"), network_of("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
                                   network_of("0.0.0.0"), network_of("255.255.255.255"),
                                   network_of("8000::/1")};
    const struct mk_network_set *s = make(v, NULL, MK_LEN(v));
    expect(s, "::", "0");
    expect(s, "::1", "");
    expect(s, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "1 4");
    expect(s, "0.0.0.0", "2");
    expect(s, "255.255.255.255", "3");
    expect(s, "7fff::", "");
}

/* Compares with a linear search, for nested networks of all lengths. */
static void network_set_of_thousands_equals_linear_search(void **state)
{
    (void)state;
    static struct mk_network v[MANY];
    uint32_t seed = 4711;
    for (size_t i = 0; i < MANY; i++) {
        seed = seed * 1664525 + 1013904223;
        char text[64];
        unsigned bits = 8 + (seed >> 27) % 25;
        uint32_t ip = (seed ^ seed >> 13) & (bits == 32 ? UINT32_MAX : ~(UINT32_MAX >> bits));
        snprintf(text, sizeof text, "%u.%u.%u.%u/%u", ip >> 24, ip >> 16 & 255, ip >> 8 & 255, ip & 255,
                 bits);
        v[i] = network_of(text);
    }
    const struct mk_network_set *s = make(v, NULL, MANY);
    for (unsigned i = 0; i < 500; i++) {
        seed = seed * 1664525 + 1013904223;
        struct mk_addr p = peer_of("0.0.0.0");
        memcpy(p.ip + 12, &seed, 4);
        if (i % 2) /* nested in an earlier network */
            memcpy(p.ip, v[i].ip, sizeof p.ip);
        uint32_t next = mk_network_set_next(s, &p, 0);
        for (uint32_t j = 0; j < MANY; j++) {
            if (!mk_network_contains(&v[j], &p))
                continue;
            assert_int_equal(next, j);
            next = mk_network_set_next(s, &p, j + 1);
        }
        assert_int_equal(next, MK_NETWORK_NONE);
    }
}

/* Compares with a linear search, for networks of both families: inside and outside of 2000::/3. */
static void network_set_of_both_families_equals_linear_search(void **state)
{
    (void)state;
    enum { N = 2000 };
    static struct mk_network v[N];
    uint32_t seed = 42;
    for (size_t i = 0; i < N; i++) {
        struct mk_network *n = &v[i];
        for (size_t j = 0; j < sizeof n->ip; j++)
            n->ip[j] = (uint8_t)((seed = seed * 1664525 + 1013904223) >> 24);
        if (i % 3)
            n->ip[0] = (uint8_t)(0x20 | (n->ip[0] & 0x1f));
        n->bits = (uint8_t)(4 + (seed >> 8) % 60);
        if (i % 2) {
            memset(n->ip, 0, 10);
            memset(n->ip + 10, 0xff, 2);
            n->bits = (uint8_t)(96 + (seed >> 8) % 33);
        }
        for (unsigned bit = n->bits; bit < 128; bit++)
            n->ip[bit / 8] &= (uint8_t)(0xff7f >> bit % 8);
    }
    const struct mk_network_set *s = make(v, NULL, N);
    for (size_t i = 0; i < 3 * N; i++) {
        struct mk_addr p = {0};
        memcpy(p.ip, v[i % N].ip, sizeof p.ip);
        for (size_t j = 0; i >= N && j < 3; j++) /* near a network, or just before it */
            p.ip[15 - j] = (uint8_t)(p.ip[15 - j] + (i < 2 * N ? 255 : i));
        uint32_t first = MK_NETWORK_NONE;
        for (uint32_t j = N; j-- > 0;)
            if (mk_network_contains(&v[j], &p))
                first = j;
        assert_int_equal(mk_network_set_next(s, &p, 0), first);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(network_set_empty_contains_nothing, NULL, drop),
        fixture_test(network_set_finds_all_enclosing_networks_in_order, NULL, drop),
        fixture_test(network_set_values_may_be_given_and_shared, NULL, drop),
        fixture_test(network_set_finds_first_and_last_addresses, NULL, drop),
        fixture_test(network_set_of_thousands_equals_linear_search, NULL, drop),
        fixture_test(network_set_of_both_families_equals_linear_search, NULL, drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

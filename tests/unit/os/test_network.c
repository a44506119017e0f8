/* SPDX-License-Identifier: Apache-2.0 */
#include "os/sockaddr.h"
#include "unit/test.h"

static struct mk_addr peer_of(const char *text)
{
    struct mk_addr p = {.is_unix = 1};
    if (strcmp(text, "unix:") != 0 && !mk_addr_parse(mk_str_from_c(text), &p))
        fail_msg("%s is refused", text);
    return p;
}

static struct mk_network network_of(const char *text)
{
    struct mk_network n;
    if (!mk_network_parse(mk_str_from_c(text), &n))
        fail_msg("%s is refused", text);
    return n;
}

static void network_addresses_are_parsed(void **state)
{
    (void)state;
    static const struct {
        const char *text, *printed;
        unsigned port;
    } cases[] = {
        {"192.0.2.7", "192.0.2.7", 0},
        {"192.0.2.7:8080", "192.0.2.7", 8080},
        {"192.0.2.7:0", "192.0.2.7", 0},
        {"255.255.255.255:65535", "255.255.255.255", 65535},
        {"2001:db8::1", "2001:db8::1", 0},
        {"::", "::", 0},
        {"[2001:DB8::1]", "2001:db8::1", 0},
        {"[2001:db8::1]:443", "2001:db8::1", 443},
        {"::ffff:192.0.2.7", "192.0.2.7", 0},
        {"[::ffff:192.0.2.7]:9", "192.0.2.7", 9},
        {"1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8", 0},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        char buffer[MK_SOCKADDR_TEXT_MAX];
        struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
        struct mk_addr p = peer_of(cases[i].text);
        mk_addr_format(&p, &out);
        assert_str(mk_buf_str(&out), cases[i].printed);
        assert_int_equal(p.port, cases[i].port);
        assert_int_equal(p.is_unix, 0);
    }
}

static void network_rejects_malformed_addresses(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      " ",
                                      "unix:",
                                      "all",
                                      "localhost",
                                      "192.0.2",
                                      "192.0.2.256",
                                      "192.0.2.7 ",
                                      " 192.0.2.7",
                                      "192.0.2.7:",
                                      "192.0.2.7:65536",
                                      "192.0.2.7:-1",
                                      "192.0.2.7:x",
                                      "192.0.2.7:+1",
                                      "192.0.2.7/24",
                                      "01.2.3.4",
                                      "[",
                                      "[]",
                                      "[::1",
                                      "::1]",
                                      "[::1]x",
                                      "[::1]:",
                                      "[::1]:99999",
                                      "[192.0.2.7]",
                                      "[192.0.2.7]:1",
                                      "2001:db8::1::2",
                                      "fe80::1%eth0",
                                      "[fe80::1%1]",
                                      ":",
                                      "::1:",
                                      "12345::",
                                      "0x7f.1",
                                      "2130706433",
                                      "1111:2222:3333:4444:5555:6666:7777:8888:9999:0000:1111:2222:3333"};
    struct mk_addr p;
    for (size_t i = 0; i < MK_LEN(bad); i++)
        if (mk_addr_parse(mk_str_from_c(bad[i]), &p))
            fail_msg("\"%s\" is accepted", bad[i]);
    assert_false(mk_addr_parse(MK_STR_NULL, &p));
    assert_false(mk_addr_parse(MK_STR("192.0.2.7\0"), &p));
    assert_false(mk_addr_parse(MK_STR("::1\0"), &p));
}

static void network_prefix_lengths_are_parsed(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned bits;
    } cases[] = {
        {"192.0.2.7", 128},
        {"192.0.2.0/24", 120},
        {"192.0.2.7/32", 128},
        {"0.0.0.0/0", 96},
        {"128.0.0.0/1", 97},
        {"192.0.2.0/255.255.255.0", 120},
        {"0.0.0.0/0.0.0.0", 96},
        {"192.0.2.7/255.255.255.255", 128},
        {"10.0.0.0/255.240.0.0", 108},
        {"2001:db8::/32", 32},
        {"2001:db8::1", 128},
        {"::/0", 0},
        {"all", 0},
        {"::ffff:192.0.2.0/120", 120},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        struct mk_network n = network_of(cases[i].text);
        if (n.bits != cases[i].bits || n.is_unix)
            fail_msg("%s has %u bits", cases[i].text, n.bits);
    }
    assert_int_equal(network_of("unix:").is_unix, 1);
}

static void network_rejects_malformed_networks(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "/",
                                      "/24",
                                      "192.0.2.0/",
                                      "192.0.2.0/33",
                                      "192.0.2.1/24",
                                      "192.0.2.7/31",
                                      "192.0.2.0/-1",
                                      "192.0.2.0/ 24",
                                      "192.0.2.0/24 ",
                                      "192.0.2.0/24/24",
                                      "192.0.2/24",
                                      "192.0.2.0/255.0.255.0",
                                      "192.0.2.0/0.0.0.255",
                                      "192.0.2.1/255.255.255.0",
                                      "2001:db8::/129",
                                      "2001:db8::1/64",
                                      "2001:db8::/255.0.0.0",
                                      "[2001:db8::]/32",
                                      "192.0.2.7:80",
                                      "unix:/a",
                                      "unix",
                                      "ALL",
                                      "all/0",
                                      "*",
                                      "2001:db8::/999999999999999999999",
                                      "example.org"};
    struct mk_network n;
    for (size_t i = 0; i < MK_LEN(bad); i++)
        if (mk_network_parse(mk_str_from_c(bad[i]), &n))
            fail_msg("\"%s\" is accepted", bad[i]);
    assert_false(mk_network_parse(MK_STR_NULL, &n));
    assert_false(mk_network_parse(MK_STR("192.0.2.7\0/32"), &n));
}

static void network_contains_addresses(void **state)
{
    (void)state;
    static const struct {
        const char *network, *yes[4], *no[4];
    } cases[] = {
        {"192.0.2.0/24",
         {"192.0.2.0", "192.0.2.255", "[::ffff:192.0.2.9]:1"},
         {"192.0.3.0", "::192.0.2.1", "unix:"}},
        {"192.0.2.128/25", {"192.0.2.128", "192.0.2.255"}, {"192.0.2.127", "192.0.2.0"}},
        {"192.0.2.7", {"192.0.2.7", "192.0.2.7:99"}, {"192.0.2.6", "192.0.2.8"}},
        {"10.16.0.0/12", {"10.16.0.0", "10.31.255.255"}, {"10.32.0.0", "10.15.255.255"}},
        {"0.0.0.0/0", {"1.2.3.4", "255.1.1.1"}, {"::1", "2001:db8::1", "unix:"}},
        {"2001:db8::/33",
         {"2001:db8::1", "2001:db8:7fff::"},
         {"2001:db8:8000::", "2001:db7::", "32.1.13.184"}},
        {"::/0", {"::1", "2001:db8::1", "::fffe:1.2.3.4"}, {"1.2.3.4", "[::ffff:1.2.3.4]:1", "unix:"}},
        {"::/1", {"::1"}, {"8000::", "1.2.3.4"}},
        {"::ffff:0:0/96", {"1.2.3.4", "::ffff:1.2.3.4"}, {"::1", "unix:"}},
        {"::fffe:0:0/95", {"::fffe:1.2.3.4"}, {"1.2.3.4"}},
        {"all", {"2001:db8::1", "1.2.3.4", "unix:"}, {NULL}},
        {"unix:", {"unix:"}, {"::", "0.0.0.0"}},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        struct mk_network n = network_of(cases[i].network);
        for (size_t j = 0; j < 4 && cases[i].yes[j]; j++) {
            struct mk_addr p = peer_of(cases[i].yes[j]);
            if (!mk_network_contains(&n, &p))
                fail_msg("%s has not %s", cases[i].network, cases[i].yes[j]);
        }
        for (size_t j = 0; j < 4 && cases[i].no[j]; j++) {
            struct mk_addr p = peer_of(cases[i].no[j]);
            if (mk_network_contains(&n, &p))
                fail_msg("%s has %s", cases[i].network, cases[i].no[j]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(network_addresses_are_parsed),
        cmocka_unit_test(network_rejects_malformed_addresses),
        cmocka_unit_test(network_prefix_lengths_are_parsed),
        cmocka_unit_test(network_rejects_malformed_networks),
        cmocka_unit_test(network_contains_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

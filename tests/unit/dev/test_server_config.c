/* SPDX-License-Identifier: Apache-2.0 */
#include "server_config.h"

#include "unit/test.h"

static bool allows(const char *host, const char *names)
{
    return dev_server_config_allows_host(mk_str_from_c(names), mk_str_from_c(host));
}

static void allowed_hosts_include_this_machine(void **state)
{
    static const char *const hosts[] = {"localhost",      "LocalHost", "localhost.",
                                        "shop.localhost", "127.0.0.1", "192.168.1.7",
                                        "[::1]",          "::1",       "[fe80::1:2]"};
    (void)state;
    for (size_t i = 0; i < MK_LEN(hosts); i++)
        assert_true(allows(hosts[i], ""));
    /* a request without Host (HTTP/1.0) does not come from a browser */
    assert_true(dev_server_config_allows_host(MK_STR_NULL, MK_STR_NULL));
}

static void allowed_hosts_exclude_other_names(void **state)
{
    static const char *const hosts[] = {"evil.example", "localhost.evil.example", "notlocalhost",
                                        ".localhos",    "127.0.0.1.evil.example", "xn--localhost"};
    (void)state;
    for (size_t i = 0; i < MK_LEN(hosts); i++)
        assert_false(allows(hosts[i], ""));
}

static void allowed_hosts_can_be_added(void **state)
{
    (void)state;
    assert_true(allows("a.test", "a.test"));
    assert_true(allows("B.test", "a.test, b.test"));
    assert_true(allows("pi.local", "x pi pi.local"));
    assert_false(allows("a.tes", "a.test"));
    assert_false(allows("a.test.", "")); /* a trailing dot alone does not make a name allowed */
    assert_true(allows("a.test.", "a.test"));
    assert_false(allows("c.test", ",, ,a.test"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allowed_hosts_include_this_machine),
        cmocka_unit_test(allowed_hosts_exclude_other_names),
        cmocka_unit_test(allowed_hosts_can_be_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

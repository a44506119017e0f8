/* SPDX-License-Identifier: Apache-2.0 */
/* Which names may be certified for a stranger. */
#include "unit/test.h"

#include "hostname.h"

#define A60 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void hostname_public_names_are_accepted(void **state)
{
    static const char *const names[] = {
        "a.b",   "shop.customer.com", "xn--bcher-kva.example",          "1.2.3.example", "a-b.c-d.info",
        "4.com", A60 "aaa.com",       A60 "." A60 "." A60 "." A60 ".d", "locals.net",    "local.example",
        "a.b1"};
    (void)state;
    for (size_t i = 0; i < MK_LEN(names); i++)
        if (!acme_hostname_is_public(mk_str_from_c(names[i])))
            fail_msg("%s", names[i]);
}

static void hostname_other_names_are_rejected(void **state)
{
    static const char *const names[] = {"",
                                        ".",
                                        "a",
                                        "localhost",
                                        "a.",
                                        ".a",
                                        "a..b",
                                        "*.a.com",
                                        "a.*",
                                        "-a.com",
                                        "a-.com",
                                        "a_b.com",
                                        "a b.com",
                                        "a.com.",
                                        "A.com",
                                        "a.COM",
                                        "1.2.3.4",
                                        "a.1",
                                        "a.1b",
                                        "::1",
                                        "[::1]",
                                        "a.com:443",
                                        "a.com/",
                                        "../a.com",
                                        "a.com/..",
                                        "a%2e.com",
                                        "a.com?b",
                                        "a&b.com",
                                        "a.com\n",
                                        "a\t.com",
                                        "a\x7f.com",
                                        "\xc3\xa9.com",
                                        "x.local",
                                        "x.localhost",
                                        "x.onion",
                                        "x.internal",
                                        "x.y.arpa",
                                        "x.invalid",
                                        "x.alt",
                                        "$(id).com",
                                        A60 "aaaa.com",
                                        A60 "." A60 "." A60 "." A60 ".aa.d"};
    (void)state;
    for (size_t i = 0; i < MK_LEN(names); i++)
        if (acme_hostname_is_public(mk_str_from_c(names[i])))
            fail_msg("%s", names[i]);
    assert_false(acme_hostname_is_public(mk_str_of("a\0.com", 6)));
    assert_false(acme_hostname_is_public(mk_str_of(NULL, 0)));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostname_public_names_are_accepted),
        cmocka_unit_test(hostname_other_names_are_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

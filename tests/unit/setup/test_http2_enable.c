/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 in a program that was built without it, such as this one. */
#include "setup/http2_enable.h"

#include "connection/http2.h"
#include "unit/setup/fixture.h"

static struct config_fixture c;

static void setup(void)
{
    config_setup(&c);
}

static void http2_module_is_absent(void **state)
{
    (void)state;
    assert_null(mk_conn_manager_get_http2_module());
}

static void http2_only_address_is_an_error(void **state)
{
    (void)state;
    config_expect_rejected(
        &c, "[SERVER]\n    Listen 127.0.0.1:8080 http2\n[HOST]\n    DocumentRoot site\n",
        "monkey.conf:2: `Listen 127.0.0.1:8080 http2`: this server does not support HTTP/2: "
        "Monkey was built without nghttp2");
}

static void http2_absent_other_addresses_serve_http1(void **state)
{
    (void)state;
    config_expect(&c, "[SERVER]\n    Listen 127.0.0.1:8080\n[HOST]\n    DocumentRoot site\n");
    assert_null(c.g->http2);
    assert_null(c.g->sites->host.pack_head);
    assert_int_equal(c.report.n_warnings, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(http2_module_is_absent),
        fixture_test(http2_only_address_is_an_error, setup),
        fixture_test(http2_absent_other_addresses_serve_http1, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

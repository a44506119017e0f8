/* SPDX-License-Identifier: Apache-2.0 */
/* `explain` when memory runs out: it fails with an error. */
#include "unit/oom.h"
#include "unit/setup/fixture.h"

#include "server/explain.h"

static struct config_fixture c;

static void setup(void)
{
    config_setup(&c);
    folder_add(&c.folder, "monkey.conf",
               MK_STR("[SERVER]\n    Listen 127.0.0.1:8080\n    AccessLog access.log\n"
                      "[HOST]\n    ServerName one *.one\n    DocumentRoot site\n"
                      "[HOST]\n    ServerName two\n    DocumentRoot site\n    Fallback index.html\n"
                      "[HOST]\n    ServerName three\n    DocumentRoot site\n"
                      "[ROUTES]\n    When parameter q evil\n    /* status 403\n    /* static\n"));
}

static bool explain(void)
{
    static char buffer[65536];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    const struct mk_explain_request request = {
        .method = "GET", .url = "http://two/index.html", .headers = "X-A: 1\r\n", .from = "192.0.2.7"};
    return mk_explain(c.g, &request, &out) == 0 && oom.n_failed == 0;
}

static void explain_oom_fails_cleanly(void **state)
{
    (void)state;
    assert_true(config_load_file(&c, "monkey.conf"));
    oom_at_each_allocation(explain);
}

/* Explains a request that a condition on an encoded parameter denies. */
static bool explain_denied_parameter(void)
{
    static char buffer[65536];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    const struct mk_explain_request request = {.method = "GET", .url = "http://three/index.html?%71=e%76il"};
    bool ok = mk_explain(c.g, &request, &out) == 0;
    assert_null(memmem(buffer, out.len, "200 OK", 6));
    return ok && oom.n_failed == 0;
}

static void explain_oom_never_skips_a_parameter_condition(void **state)
{
    (void)state;
    folder_add(&c.folder, "site/index.html", MK_STR("index"));
    assert_true(config_load_file(&c, "monkey.conf"));
    oom_at_each_allocation(explain_denied_parameter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(explain_oom_fails_cleanly, setup),
        fixture_test(explain_oom_never_skips_a_parameter_condition, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/other_server.h"
#include "unit/test.h"

static void conf_other_server_is_recognized(void **state)
{
    (void)state;
    static const struct {
        const char *text, *server;
        unsigned line;
    } cases[] = {
        {"server {\n}\n", "nginx", 1},
        {"\r\nuser www;\r\n", "nginx", 2},
        {"[HOST]\n  location /a {\n", "nginx", 2},
        {"<IfModule x>\n", "Apache", 1},
        {"  <Directory /srv>\n", "Apache", 1},
        {"LoadModule a b", "Apache", 1},
        {"localhost {", "Caddy", 1},
        {"{\n", "Caddy", 1},
        {"# x {\n[A {\n@b {\n    k a{2}{\n", NULL, 0},
        {"[HOST]\n    ServerName a\n    root x\n", NULL, 0},
        {"", NULL, 0},
        {"\n\n", NULL, 0},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        struct mk_conf_other_server f = mk_conf_other_server_detect(mk_str_from_c(cases[i].text));
        assert_int_equal(f.name != NULL, cases[i].server != NULL);
        if (f.name)
            assert_string_equal(f.name, cases[i].server);
        assert_int_equal(f.line, cases[i].line);
    }
    assert_null(mk_conf_other_server_detect((mk_str){NULL, 0}).name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conf_other_server_is_recognized),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

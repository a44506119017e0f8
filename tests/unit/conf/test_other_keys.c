/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/other_keys.h"
#include "unit/test.h"

static void conf_other_keys_directive_has_a_hint(void **state)
{
    (void)state;
    static const struct {
        const char *key, *part;
    } cases[] = {
        {"root", "DocumentRoot"},          {"ROOT", "DocumentRoot"},        {"proxy_pass", "Load proxy"},
        {"ServerAlias", "ServerName"},     {"gzip_types", "Load compress"}, {"encode", "Load compress"},
        {"http-request", "Load security"}, {"mode", "remove the line"},     {"sendfile", "remove the line"},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        const char *hint = mk_conf_other_keys_hint(mk_str_from_c(cases[i].key));
        assert_non_null(hint);
        assert_non_null(strstr(hint, cases[i].part));
    }
}

static void conf_other_keys_part_of_a_directive_has_no_hint(void **state)
{
    (void)state;
    static const char *const unknown[] = {"", " ", "roo", "root ", "proxy", "gzip gzip_types", "Color"};
    for (size_t i = 0; i < MK_LEN(unknown); i++)
        assert_null(mk_conf_other_keys_hint(mk_str_from_c(unknown[i])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conf_other_keys_directive_has_a_hint),
        cmocka_unit_test(conf_other_keys_part_of_a_directive_has_no_hint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

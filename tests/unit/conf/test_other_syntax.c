/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/other_syntax.h"
#include "unit/test.h"

static void conf_other_syntax_comment_after_value_is_found(void **state)
{
    (void)state;
    static const struct {
        const char *text, *tail;
    } cases[] = {
        {"on # always", "# always"},
        {"on\t#", "#"},
        {"on ; always", "; always"},
        {"/srv/www;", ";"},
        {"\"a # b\" # c", "# c"},
        {"\"a\\\" # b\"", NULL},
        {"\"a;\"", NULL},
        {"http://x/#a", NULL},
        {"a;b", NULL},
        {"#a", NULL},
        {";", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        mk_str tail = mk_conf_other_syntax_tail(mk_str_from_c(cases[i].text));
        assert_int_equal(tail.p != NULL, cases[i].tail != NULL);
        if (tail.p)
            assert_str(tail, cases[i].tail);
        assert_int_equal(mk_conf_other_syntax_hint(tail) != NULL, cases[i].tail != NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conf_other_syntax_comment_after_value_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

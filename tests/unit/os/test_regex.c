/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions in a program built without PCRE2, such as this test. */
#include "os/regex.h"

#include <errno.h>

#include "unit/test.h"

static void regex_without_pcre2_reports_error(void **state)
{
    (void)state;
    struct mk_regex_error why = {.offset = 9};
    assert_null(mk_regex_new(MK_STR("^a"), false, &why));
    assert_int_equal(why.code, -ENOENT);
    assert_int_equal(why.offset, 0);
    assert_string_equal(why.text, "Monkey was built without PCRE2");
    mk_regex_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(regex_without_pcre2_reports_error)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

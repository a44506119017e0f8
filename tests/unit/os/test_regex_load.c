/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "os/regex.h"
#include "unit/test.h"

/* There is none beside this program; one may be installed. */
static void it_is_there_or_says_why_not(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct mk_regex_error why = {.at = 9};
        struct mk_regex *r = mk_regex_new(MK_STR("^a"), false, &why);
        if (!r) {
            assert_int_equal(why.code, -ENOENT);
            assert_int_equal(why.at, 0);
            assert_contains(mk_str_from_c(why.text), "monkey-regex.so");
            assert_non_null(memchr(why.text, '\0', sizeof why.text));
        }
        mk_regex_free(r);
    }
    mk_regex_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_is_there_or_says_why_not)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

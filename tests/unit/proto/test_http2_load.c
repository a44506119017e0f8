/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/http2.h"

#include "unit/test.h"

/* Beside this program there is none. One that is installed belongs to another build: this program shows it
 * nothing of itself. */
static void it_is_not_there_and_says_why(void **state)
{
    (void)state;
    const char *why = "";
    assert_null(mk_http2_load(&why));
    assert_contains(mk_str_from_c(why), "monkey-http2.so");
    assert_null(mk_http2_load(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_is_not_there_and_says_why)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "event/tls.h"

#include "unit/test.h"

/* No module is next to this program, but one may be installed. */
static void tls_load_returns_the_module_or_a_reason(void **state)
{
    (void)state;
    const char *why = "";
    const struct mk_tls_module *m = mk_tls_load(&why);
    if (m) {
        assert_null(why);
        assert_int_equal(m->abi, MK_TLS_ABI);
    } else {
        assert_contains(mk_str_from_c(why), "monkey-tls.so");
    }
    assert_ptr_equal(mk_tls_load(NULL), m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tls_load_returns_the_module_or_a_reason)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

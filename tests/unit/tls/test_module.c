/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/tls/fixture.h"

extern const struct mk_tls_module mk_tls_module;

/* The module is linked into this program. */
static void tls_module_linked_in_is_not_loaded(void **state)
{
    (void)state;
    const char *why = "";
    assert_ptr_equal(mk_tls_load(&why), &mk_tls_module);
    assert_null(why);
}

static void tls_module_has_all_functions(void **state)
{
    (void)state;
    const struct mk_tls_module *m = &mk_tls_module;
    assert_int_equal(m->abi, MK_TLS_ABI);
    assert_contains(mk_str_from_c(m->vendor), "OpenSSL 3");
    assert_true(m->context_new && m->context_free && m->context_expires && m->open && m->handshake &&
                m->facts && m->authority && m->use_send_file && m->client_new && m->client_free &&
                m->connect && m->session_free);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tls_module_linked_in_is_not_loaded),
                                       cmocka_unit_test(tls_module_has_all_functions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

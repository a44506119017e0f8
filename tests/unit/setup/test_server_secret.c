/* SPDX-License-Identifier: Apache-2.0 */
/* The server derives a key for each purpose from its secret. An upgrade does not change the keys. */
#include "setup/server_secret.h"

#include "unit/test.h"

static struct mk_hash_key key_of(struct mk_shared_state *s, const char *purpose)
{
    struct mk_hash_key key;
    assert_true(mk_server_secret_derive_key(s, mk_str_from_c(purpose), &key));
    return key;
}

static bool are_equal(struct mk_hash_key a, struct mk_hash_key b)
{
    return a.k0 == b.k0 && a.k1 == b.k1;
}

static void server_secret_key_depends_on_purpose_and_server(void **state)
{
    (void)state;
    struct mk_shared_state a = {0}, b = {0};
    assert_true(are_equal(key_of(&a, "x"), key_of(&a, "x")));
    assert_false(are_equal(key_of(&a, "x"), key_of(&a, "y")));
    assert_false(are_equal(key_of(&a, "x"), key_of(&b, "x")));
    mk_shared_state_fini(&a);
    mk_shared_state_fini(&b);
}

static void server_secret_import_gives_the_same_keys(void **state)
{
    (void)state;
    struct mk_shared_state a = {0}, b = {0};
    char text[MK_SERVER_SECRET_TEXT];
    struct mk_hash_key key = key_of(&a, "x");
    mk_server_secret_export(&a, text);
    assert_int_equal(strlen(text), MK_SERVER_SECRET_TEXT - 1);
    mk_server_secret_import(&b, mk_str_from_c(text));
    assert_true(are_equal(key_of(&b, "x"), key));
    mk_shared_state_fini(&a);
    mk_shared_state_fini(&b);
}

static void server_secret_invalid_text_is_ignored(void **state)
{
    (void)state;
    char text[MK_SERVER_SECRET_TEXT], upper[MK_SERVER_SECRET_TEXT] = "";
    struct mk_shared_state none = {0};
    mk_server_secret_export(&none, text);
    assert_string_equal(text, "");
    memset(upper, 'A', sizeof upper - 1);
    const mk_str texts[] = {MK_STR(""), MK_STR("00"), mk_str_of(upper, sizeof upper - 1), MK_STR_NULL};
    for (size_t i = 0; i < MK_LEN(texts); i++) {
        struct mk_shared_state a = {0}, b = {0};
        mk_server_secret_import(&a, texts[i]);
        mk_server_secret_import(&b, texts[i]);
        assert_false(are_equal(key_of(&a, "x"), key_of(&b, "x")));
        mk_shared_state_fini(&a);
        mk_shared_state_fini(&b);
    }
    mk_shared_state_fini(&none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(server_secret_key_depends_on_purpose_and_server),
        cmocka_unit_test(server_secret_import_gives_the_same_keys),
        cmocka_unit_test(server_secret_invalid_text_is_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Password hashes as stored in user files. */
#include "unit/test.h"

#include <crypt.h>
#include <stdio.h>
#include <string.h>

#include "hash.h"
#include "verify.h"

/* Hash of "secret". */
#define YESCRYPT "$y$j9T$F5Jx5fExrKuPp53xLKQ..1$X3DX6M94c7o.9agCG9G317fhZg9SqC.5i5rd.RhAtQ7"
#define SHA1     "5en6G6MezRroT3XKqkdPOmY/BfQ="

/* ---- Hash functions ---- */

static void expect_hash(enum auth_hash kind, const mk_str *parts, size_t n, const char *hex)
{
    uint8_t sum[AUTH_HASH_MAX];
    char text[2 * AUTH_HASH_MAX + 1] = "";
    auth_hash_joined(kind, parts, n, sum);
    for (size_t i = 0; i < auth_hash_len(kind); i++)
        (void)snprintf(text + 2 * i, 3, "%02x", sum[i]);
    assert_string_equal(text, hex);
}

static void verify_digest_joins_parts_with_colons(void **state)
{
    const mk_str parts[] = {MK_STR("a"), mk_str_of(NULL, 0), MK_STR("b")};
    (void)state;
    expect_hash(AUTH_MD5, parts, 1, "0cc175b9c0f1b6a831c399e269772661");
    expect_hash(AUTH_MD5, parts, 3, "bb0bcf9744a9101d171d607fdcc05134");
    expect_hash(AUTH_SHA1, parts, 1, "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8");
    expect_hash(AUTH_SHA256, parts, 1, "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb");
}

static void verify_mac_depends_on_part_boundaries(void **state)
{
    const mk_str one[] = {MK_STR("ab"), MK_STR("c")}, two[] = {MK_STR("a"), MK_STR("bc")},
                 three[] = {MK_STR("abc")};
    static const uint8_t key[AUTH_KEY_LEN] = {1}, other[AUTH_KEY_LEN] = {[AUTH_KEY_LEN - 1] = 1};
    uint8_t a[AUTH_MAC_LEN], b[AUTH_MAC_LEN];
    (void)state;
    auth_hash_mac(key, one, 2, a);
    auth_hash_mac(key, one, 2, b);
    assert_memory_equal(a, b, sizeof a);
    auth_hash_mac(key, two, 2, b);
    assert_memory_not_equal(a, b, sizeof a);
    auth_hash_mac(key, three, 1, b);
    assert_memory_not_equal(a, b, sizeof a);
    auth_hash_mac(other, one, 2, b);
    assert_memory_not_equal(a, b, sizeof a);
}

/* ---- Passwords ---- */

static void verify_fast_hashes_are_compared_directly(void **state)
{
    (void)state;
    assert_true(auth_hash_is_fast(MK_STR("{SHA1}" SHA1)));
    assert_true(auth_hash_is_fast(MK_STR("{SHA}" SHA1)));
    assert_false(auth_hash_is_fast(MK_STR(YESCRYPT)));
    assert_true(auth_verify_fast(MK_STR("{SHA1}" SHA1), MK_STR("secret")));
    assert_true(auth_verify_fast(MK_STR("{SHA}" SHA1), MK_STR("secret")));
    assert_false(auth_verify_fast(MK_STR("{SHA}" SHA1), MK_STR("secreT")));
    assert_false(auth_verify_fast(MK_STR("{SHA}" SHA1), MK_STR("")));
}

static void verify_crypt_hashes_are_computed(void **state)
{
    static struct crypt_data data;
    char hash[CRYPT_OUTPUT_SIZE];
    (void)state;
    const char *made = crypt_rn("secret", "$5$rounds=1000$salt", &data, (int)sizeof data);
    assert_non_null(made);
    (void)snprintf(hash, sizeof hash, "%s", made);
    assert_true(auth_verify(hash, "secret", &data));
    assert_false(auth_verify(hash, "secreT", &data));
    assert_false(auth_verify("$no$", "secret", &data));
}

static void verify_schemes_have_names(void **state)
{
    static const struct {
        const char *name, *prefix;
        size_t password;
    } kinds[] = {{"yescrypt", "$y$", SIZE_MAX},
                 {"BCRYPT", "$2b$", 72},
                 {"sha512", "$6$", SIZE_MAX},
                 {"sha256", "$5$", SIZE_MAX}};
    (void)state;
    for (size_t i = 0; i < MK_LEN(kinds); i++) {
        const struct auth_hash_scheme *k = auth_hash_scheme_find(mk_str_from_c(kinds[i].name));
        assert_non_null(k);
        assert_string_equal(k->prefix, kinds[i].prefix);
        assert_int_equal(k->password, kinds[i].password);
    }
    assert_null(auth_hash_scheme_find(MK_STR("scrypt")));
    assert_null(auth_hash_scheme_find(MK_STR("md5")));
    assert_null(auth_hash_scheme_find(MK_STR("")));
}

/* ---- Invalid hashes ---- */

static void verify_truncated_hash_is_invalid(void **state)
{
    static struct crypt_data data;
    char setting[CRYPT_GENSALT_OUTPUT_SIZE], hash[CRYPT_OUTPUT_SIZE + 1];
    (void)state;
    for (const struct auth_hash_scheme *k = auth_hash_schemes; k->name; k++) {
        if (!crypt_gensalt_rn(k->prefix,
                              k->tail == 86 || k->prefix[1] == '5' ? 1000
                              : strncmp(k->prefix, "$2", 2) == 0   ? 4
                                                                   : 0,
                              NULL, 0, setting, sizeof setting))
            continue; /* libcrypt verifies `$2a$` and some other hashes, but no longer generates them */
        const char *made = crypt_rn("secret", setting, &data, (int)sizeof data);
        assert_non_null(made);
        assert_null(auth_hash_error(mk_str_from_c(made)));
        (void)snprintf(hash, sizeof hash, "%sx", made);
        assert_string_equal(auth_hash_error(mk_str_from_c(hash)), "the hash is not complete");
        assert_string_equal(auth_hash_error(mk_str_first(mk_str_from_c(hash), strlen(made) - 1)),
                            "the hash is not complete");
    }
}

static void verify_invalid_hash_has_error_text(void **state)
{
    static char large[AUTH_HASH_TEXT_MAX + 2] = "$y$";
    (void)state;
    assert_null(auth_hash_error(MK_STR(YESCRYPT)));
    assert_null(auth_hash_error(MK_STR("{SHA1}" SHA1)));
    assert_string_equal(auth_hash_error(MK_STR("{SHA1}" SHA1 "=")),
                        "{SHA1} must be followed by 20 bytes in base64");
    assert_string_equal(auth_hash_error(MK_STR("{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ!")),
                        "{SHA1} must be followed by 20 bytes in base64");
    assert_string_equal(auth_hash_error(MK_STR("{SHA}5en6G6MezRroT3XKqkdPOmY/Bf==")),
                        "{SHA1} must be followed by 20 bytes in base64");
    assert_non_null(strstr(auth_hash_error(MK_STR("$1$salt$hash")), "unknown hash"));
    assert_non_null(strstr(auth_hash_error(MK_STR("secret")), "unknown hash"));
    assert_non_null(strstr(auth_hash_error(MK_STR("")), "unknown hash"));
    memset(large + 3, 'x', sizeof large - 4 - 44);
    large[sizeof large - 2 - 43] = '$';
    memset(large + sizeof large - 1 - 43, 'x', 43);
    assert_int_equal(strlen(large), AUTH_HASH_TEXT_MAX + 1);
    assert_string_equal(auth_hash_error(mk_str_from_c(large)), "the hash is not complete");
    assert_string_equal(auth_hash_error(MK_STR("$5$sa!t$0123456789012345678901234567890123456789012")),
                        "libcrypt does not support this hash");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(verify_digest_joins_parts_with_colons),
                                       cmocka_unit_test(verify_mac_depends_on_part_boundaries),
                                       cmocka_unit_test(verify_fast_hashes_are_compared_directly),
                                       cmocka_unit_test(verify_crypt_hashes_are_computed),
                                       cmocka_unit_test(verify_schemes_have_names),
                                       cmocka_unit_test(verify_truncated_hash_is_invalid),
                                       cmocka_unit_test(verify_invalid_hash_has_error_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

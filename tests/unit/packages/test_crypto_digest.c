/* SPDX-License-Identifier: Apache-2.0 */
/* Digests of the test vectors of FIPS 180-4, RFC 4231 and RFC 5869; base64url; passwords. */
#include <duda/crypto.h>
#include <errno.h>

#include "unit/test.h"

static mk_str hex(mk_str bytes)
{
    static char buffer[1024];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    mk_hex_encode(&out, bytes);
    return mk_buf_str(&out);
}

static mk_str bytes(const char *digits)
{
    static char sizes[4][256];
    static unsigned deferred;
    struct mk_buf out = mk_buf_fixed(sizes[deferred++ % 4], 256);
    assert_true(duda_hex_decode(&out, mk_str_from_c(digits)));
    return mk_buf_str(&out);
}

static void digest_matches_test_vectors(void **state)
{
    struct duda_hash hash;
    (void)state;
    assert_int_equal(duda_hash(DUDA_SHA256, MK_STR("abc"), &hash), 0);
    assert_str(hex(duda_hash_str(&hash)), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_int_equal(duda_hash(DUDA_SHA256, MK_STR_NULL, &hash), 0);
    assert_str(hex(duda_hash_str(&hash)), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_int_equal(duda_hash(DUDA_SHA1, MK_STR("abc"), &hash), 0);
    assert_str(hex(duda_hash_str(&hash)), "a9993e364706816aba3e25717850c26c9cd0d89d");
    struct duda_hasher *h = duda_hasher_new(DUDA_SHA256);
    assert_non_null(h);
    assert_int_equal(duda_hasher_update(h, MK_STR("a")), 0);
    assert_int_equal(duda_hasher_update(h, MK_STR("bc")), 0);
    assert_int_equal(duda_hasher_final(h, &hash), 0);
    duda_hasher_free(h);
    assert_str(mk_str_first(hex(duda_hash_str(&hash)), 8), "ba7816bf");
    assert_int_equal(duda_hash((enum duda_digest)99, MK_STR("abc"), &hash), -ENOMEM);
}

static void digest_hmac_and_hkdf_match_test_vectors(void **state)
{
    struct duda_hash hash;
    uint8_t out[42];
    (void)state;
    assert_int_equal(duda_hmac(DUDA_SHA256, MK_STR("Jefe"), MK_STR("what do ya want for nothing?"), &hash),
                     0);
    assert_str(hex(duda_hash_str(&hash)), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    assert_int_equal(duda_hkdf(DUDA_SHA256, bytes("0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b"),
                               bytes("000102030405060708090a0b0c"), bytes("f0f1f2f3f4f5f6f7f8f9"), out,
                               sizeof out),
                     0);
    assert_str(hex(mk_str_of((char *)out, sizeof out)),
               "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865");
    assert_int_equal(duda_hkdf(DUDA_SHA256, MK_STR("x"), MK_STR_NULL, MK_STR_NULL, out, 255 * 32 + 1),
                     -EINVAL);
}

static void base64url_round_trips(void **state)
{
    char buffer[64], back[64];
    (void)state;
    for (size_t n = 0; n <= 32; n++) {
        uint8_t random[32];
        struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer), again = mk_buf_fixed(back, sizeof back);
        mk_random(random, sizeof random);
        duda_base64url_encode(&out, mk_str_of((char *)random, n));
        assert_true(duda_base64url_decode(&again, mk_buf_str(&out)));
        assert_int_equal(again.len, n);
        assert_memory_equal(back, random, n);
    }
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    duda_base64url_encode(&out, MK_STR("\xfb\xff"));
    assert_str(mk_buf_str(&out), "-_8");
    assert_false(duda_base64url_decode(&out, MK_STR("-_9"))); /* the text has bits beyond the last byte */
    assert_false(duda_base64url_decode(&out, MK_STR("-_8=")));
    assert_false(duda_base64url_decode(&out, MK_STR("a")));
    assert_false(duda_base64url_decode(&out, MK_STR("+/8")));
    assert_false(duda_hex_decode(&out, MK_STR("abc")));
    assert_false(duda_hex_decode(&out, MK_STR("gg")));
    mk_buf_clear(&out);
    duda_random_text(&out, 32);
    assert_int_equal(out.len, 43);
}

static void uuid_has_version_and_variant(void **state)
{
    char a[DUDA_UUID_LEN], b[DUDA_UUID_LEN];
    (void)state;
    duda_uuid4(a);
    duda_uuid4(b);
    assert_memory_not_equal(a, b, sizeof a);
    assert_true(a[8] == '-' && a[13] == '-' && a[14] == '4' && a[18] == '-' && a[23] == '-');
    assert_non_null(strchr("89ab", a[19]));
    duda_uuid7(a, 0x017f22e279b0);
    assert_str(mk_str_of(a, 15), "017f22e2-79b0-7");
}

static void password_hash_is_salted_and_verified(void **state)
{
    char hash[DUDA_PASSWORD_SIZE], other[DUDA_PASSWORD_SIZE];
    (void)state;
    assert_int_equal(duda_password_hash_blocking(MK_STR("secret"), hash), 0);
    assert_int_equal(duda_password_hash_blocking(MK_STR("secret"), other), 0);
    assert_string_not_equal(hash, other);
    assert_true(duda_password_verify_blocking(MK_STR("secret"), mk_str_from_c(hash)));
    assert_false(duda_password_verify_blocking(MK_STR("Secret"), mk_str_from_c(hash)));
    assert_false(duda_password_verify_blocking(MK_STR("secret"), MK_STR_NULL));
    assert_false(duda_password_verify_blocking(MK_STR("secret"), MK_STR("*")));
    assert_false(duda_password_verify_blocking(MK_STR("secret"), MK_STR("")));
    assert_false(duda_password_verify_blocking(MK_STR(""), mk_str_from_c(hash)));
    assert_int_equal(duda_password_hash_blocking(MK_STR(""), hash), -EINVAL);
    assert_int_equal(duda_password_hash_blocking(MK_STR("a\0b"), hash), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digest_matches_test_vectors),
        cmocka_unit_test(digest_hmac_and_hkdf_match_test_vectors),
        cmocka_unit_test(base64url_round_trips),
        cmocka_unit_test(uuid_has_version_and_variant),
        cmocka_unit_test(password_hash_is_salted_and_verified),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

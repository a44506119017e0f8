/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of a JWK set verify the signatures of their key pairs; keys that are weak, malformed or for another
 * use are skipped, and no token can choose its algorithm. */
#include <duda/crypto.h>
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/pem.h>

#include "unit/test.h"

static char token_buf[65536], set_room[1 << 16];

static mk_str pem_of(EVP_PKEY *pair)
{
    static char buffer[8192];
    BIO *bio = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_PrivateKey(bio, pair, NULL, NULL, 0, NULL, NULL), 1);
    int n = BIO_read(bio, buffer, sizeof buffer);
    BIO_free(bio);
    return mk_str_of(buffer, (size_t)n);
}

static mk_str sign(EVP_PKEY *pair, enum duda_jwt_algorithm algorithm, const char *id)
{
    struct mk_buf out = mk_buf_fixed(token_buf, sizeof token_buf);
    struct duda_jwt_key *key = duda_jwt_key_new(algorithm, mk_str_from_c(id), pem_of(pair));
    assert_non_null(key);
    assert_int_equal(duda_jwt_sign(&out, key, MK_STR("{\"exp\":2000,\"aud\":\"me\"}")), 0);
    duda_jwt_key_free(key);
    return mk_buf_str(&out);
}

static int check(const struct duda_jwks *keys, mk_str token)
{
    char buffer[1024];
    struct mk_buf claims = mk_buf_fixed(buffer, sizeof buffer);
    const struct duda_jwt_rules rules = {.now = 1000, .audience = MK_STR("me")};
    int e = duda_jwt_verify_jwks(&claims, keys, token, &rules);
    assert_true(e ? claims.len == 0 : claims.len > 0);
    return e;
}

static void add_number(struct mk_buf *out, EVP_PKEY *pair, const char *param, const char *name, int size)
{
    unsigned char bytes[1024];
    BIGNUM *n = NULL;
    assert_int_equal(EVP_PKEY_get_bn_param(pair, param, &n), 1);
    int len = size ? BN_bn2binpad(n, bytes, size) : BN_bn2bin(n, bytes);
    assert_true(len > 0);
    mk_buf_addf(out, ",\"%s\":\"", name);
    duda_base64url_encode(out, mk_str_of((const char *)bytes, (size_t)len));
    mk_buf_add_char(out, '"');
    BN_free(n);
}

static void add_rsa(struct mk_buf *out, EVP_PKEY *pair, const char *more)
{
    mk_buf_addf(out, "{\"kty\":\"RSA\"%s", more);
    add_number(out, pair, OSSL_PKEY_PARAM_RSA_N, "n", 0);
    add_number(out, pair, OSSL_PKEY_PARAM_RSA_E, "e", 0);
    mk_buf_add(out, MK_STR("},"));
}

static void add_curve(struct mk_buf *out, EVP_PKEY *pair, const char *more)
{
    mk_buf_addf(out, "{\"kty\":\"EC\"%s", more);
    add_number(out, pair, OSSL_PKEY_PARAM_EC_PUB_X, "x", 32);
    add_number(out, pair, OSSL_PKEY_PARAM_EC_PUB_Y, "y", 32);
    mk_buf_add(out, MK_STR("},"));
}

static void add_edwards(struct mk_buf *out, EVP_PKEY *pair)
{
    unsigned char bytes[32];
    size_t len = sizeof bytes;
    assert_int_equal(EVP_PKEY_get_raw_public_key(pair, bytes, &len), 1);
    mk_buf_add(out, MK_STR("{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"ed\",\"x\":\""));
    duda_base64url_encode(out, mk_str_of((const char *)bytes, len));
    mk_buf_add(out, MK_STR("\"},"));
}

static struct mk_buf begin(void)
{
    struct mk_buf out = mk_buf_fixed(set_room, sizeof set_room);
    mk_buf_add(&out, MK_STR("{\"keys\":["));
    return out;
}

static struct duda_jwks *end(struct mk_buf *out)
{
    mk_buf_add(out, MK_STR("{}]}"));
    struct duda_jwks *keys = duda_jwks_new(mk_buf_str(out));
    assert_non_null(keys);
    return keys;
}

static EVP_PKEY *new_rsa(size_t bits)
{
    return EVP_PKEY_Q_keygen(NULL, NULL, "RSA", bits);
}

static void jwks_verifies_each_algorithm(void **state)
{
    EVP_PKEY *rsa = new_rsa(2048), *curve = EVP_EC_gen("P-256"), *other = EVP_EC_gen("P-256"),
             *edwards = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    struct mk_buf out = begin();
    (void)state;
    add_rsa(&out, rsa, ",\"kid\":\"r\",\"use\":\"sig\",\"alg\":\"RS256\"");
    add_curve(&out, curve, ",\"kid\":\"c\",\"crv\":\"P-256\",\"key_ops\":[\"verify\"]");
    add_curve(&out, other, ",\"kid\":\"d\",\"crv\":\"P-256\"");
    add_edwards(&out, edwards);
    struct duda_jwks *keys = end(&out);
    assert_int_equal(duda_jwks_count(keys), 4);
    assert_int_equal(check(keys, sign(rsa, DUDA_JWT_RS256, "r")), 0);
    assert_int_equal(check(keys, sign(rsa, DUDA_JWT_RS256, NULL)), 0);
    assert_int_equal(check(keys, sign(curve, DUDA_JWT_ES256, "c")), 0);
    assert_int_equal(check(keys, sign(other, DUDA_JWT_ES256, "d")), 0);
    assert_int_equal(check(keys, sign(edwards, DUDA_JWT_EDDSA, "ed")), 0);
    /* another key has signed this token */
    assert_int_equal(check(keys, sign(curve, DUDA_JWT_ES256, "d")), -EKEYREJECTED);
    /* two keys match, so the choice is ambiguous */
    assert_int_equal(check(keys, sign(curve, DUDA_JWT_ES256, NULL)), -EKEYREVOKED);
    /* "r" is the ID of an RSA key */
    assert_int_equal(check(keys, sign(curve, DUDA_JWT_ES256, "r")), -EKEYREVOKED);
    assert_int_equal(check(keys, sign(rsa, DUDA_JWT_RS256, "new")), -EKEYREVOKED);
    duda_jwks_free(keys);
    EVP_PKEY_free(rsa), EVP_PKEY_free(curve), EVP_PKEY_free(other), EVP_PKEY_free(edwards);
}

static void jwks_skips_unusable_keys(void **state)
{
    EVP_PKEY *rsa = new_rsa(2048), *weak = new_rsa(1024), *curve = EVP_EC_gen("P-256");
    struct mk_buf out = begin();
    (void)state;
    add_rsa(&out, rsa, ",\"use\":\"enc\"");
    add_rsa(&out, rsa, ",\"alg\":\"PS256\"");
    add_rsa(&out, rsa, ",\"key_ops\":[\"encrypt\"]");
    add_rsa(&out, weak, "");
    add_curve(&out, curve, ",\"crv\":\"P-384\"");
    mk_buf_add(&out, MK_STR("{\"kty\":\"oct\",\"k\":\"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY\"},"
                            "{\"kty\":\"RSA\",\"n\":\"!\",\"e\":\"AQAB\"},{\"kty\":\"RSA\",\"n\":\"AQAB\"},"
                            "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AQAB\",\"y\":\"AQAB\"},1,null,"
                            "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AQAB\"},{\"kty\":7},"));
    /* This point is not on the curve. */
    mk_buf_add(
        &out,
        MK_STR("{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\","
               "\"y\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\"},"));
    struct duda_jwks *keys = end(&out);
    assert_int_equal(duda_jwks_count(keys), 0);
    assert_int_equal(check(keys, sign(rsa, DUDA_JWT_RS256, NULL)), -EKEYREVOKED);
    duda_jwks_free(keys);
    EVP_PKEY_free(rsa), EVP_PKEY_free(weak), EVP_PKEY_free(curve);
}

static mk_str token_of(const char *head)
{
    struct mk_buf out = mk_buf_fixed(token_buf, sizeof token_buf);
    duda_base64url_encode(&out, mk_str_from_c(head));
    mk_buf_add(&out, MK_STR(".e30.AAAA"));
    return mk_buf_str(&out);
}

static void jwks_token_cannot_choose_algorithm(void **state)
{
    EVP_PKEY *rsa = new_rsa(2048);
    struct mk_buf out = begin(), forged = mk_buf_fixed(token_buf, sizeof token_buf);
    (void)state;
    add_rsa(&out, rsa, ",\"kid\":\"r\"");
    struct duda_jwks *keys = end(&out);
    /* An attacker makes an HMAC key from the published key. */
    struct duda_jwt_key *confused = duda_jwt_key_new(DUDA_JWT_HS256, MK_STR("r"), mk_buf_str(&out));
    assert_int_equal(duda_jwt_sign(&forged, confused, MK_STR("{\"exp\":2000,\"aud\":\"me\"}")), 0);
    assert_int_equal(check(keys, mk_buf_str(&forged)), -EKEYREJECTED);
    assert_int_equal(check(keys, token_of("{\"alg\":\"none\",\"kid\":\"r\"}")), -EKEYREJECTED);
    assert_int_equal(check(keys, token_of("{\"alg\":\"RS256\",\"kid\":\"r\"}")), -EKEYREJECTED);
    assert_int_equal(check(keys, token_of("{\"kid\":\"r\"}")), -EKEYREJECTED);
    assert_int_equal(check(keys, token_of("{\"alg\":7,\"kid\":\"r\"}")), -EKEYREJECTED);
    assert_int_equal(check(keys, token_of("[]")), -EBADMSG);
    assert_int_equal(check(keys, MK_STR("")), -EBADMSG);
    assert_int_equal(check(keys, MK_STR("e30")), -EBADMSG);
    duda_jwt_key_free(confused);
    duda_jwks_free(keys);
    EVP_PKEY_free(rsa);
}

static void jwks_rejects_malformed_sets(void **state)
{
    static const char *const texts[] = {
        "", "{}", "[]", "{\"keys\":{}}", "{\"keys\":[]", "{\"keys\":[],\"keys\":[]}"};
    struct mk_buf many = begin();
    (void)state;
    for (size_t i = 0; i < MK_LEN(texts); i++) {
        errno = 0;
        assert_null(duda_jwks_new(mk_str_from_c(texts[i])));
        assert_int_equal(errno, EINVAL);
    }
    for (int i = 0; i < DUDA_JWKS_MAX; i++)
        mk_buf_add(&many, MK_STR("{},"));
    mk_buf_add(&many, MK_STR("{}]}"));
    assert_null(duda_jwks_new(mk_buf_str(&many)));
    duda_jwks_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jwks_verifies_each_algorithm),
        cmocka_unit_test(jwks_skips_unusable_keys),
        cmocka_unit_test(jwks_token_cannot_choose_algorithm),
        cmocka_unit_test(jwks_rejects_malformed_sets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

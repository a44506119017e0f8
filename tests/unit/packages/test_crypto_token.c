/* SPDX-License-Identifier: Apache-2.0 */
/* A token of each algorithm is accepted with its own key only; known attacks are rejected. */
#include <duda/crypto.h>
#include <errno.h>
#include <openssl/ec.h>
#include <openssl/pem.h>

#include "unit/test.h"

static const char secret[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
static char buffer[65536];

struct pems {
    mk_str private, public;
};

static mk_str of_bio(BIO *bio)
{
    static char sizes[8][4096];
    static unsigned deferred;
    char *at = sizes[deferred++ % 8];
    int n = BIO_read(bio, at, 4096);
    BIO_free(bio);
    assert_true(n > 0);
    return mk_str_of(at, (size_t)n);
}

static struct pems make_pair(EVP_PKEY *pair)
{
    BIO *private = BIO_new(BIO_s_mem()), *public = BIO_new(BIO_s_mem());
    assert_non_null(pair);
    assert_int_equal(PEM_write_bio_PrivateKey(private, pair, NULL, NULL, 0, NULL, NULL), 1);
    assert_int_equal(PEM_write_bio_PUBKEY(public, pair), 1);
    EVP_PKEY_free(pair);
    return (struct pems){of_bio(private), of_bio(public)};
}

static struct duda_jwt_key *hmac_key(const char *id)
{
    struct duda_jwt_key *key = duda_jwt_key_new(DUDA_JWT_HS256, mk_str_from_c(id), mk_str_from_c(secret));
    assert_non_null(key);
    return key;
}

static mk_str sign(const struct duda_jwt_key *key, const char *claims)
{
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    assert_int_equal(duda_jwt_sign(&out, key, mk_str_from_c(claims)), 0);
    return mk_buf_str(&out);
}

static int check(const struct duda_jwt_key *key, mk_str token, struct duda_jwt_rules rules)
{
    static char space[32768];
    struct mk_buf claims = mk_buf_fixed(space, sizeof space);
    rules.now = rules.now ? rules.now : 1000;
    int e = duda_jwt_verify(&claims, key, token, &rules);
    assert_true(e ? claims.len == 0 : claims.len > 0);
    return e;
}

static void round_trip(enum duda_jwt_algorithm algorithm, struct pems pems)
{
    struct duda_jwt_key *private = duda_jwt_key_new(algorithm, MK_STR_NULL, pems.private);
    struct duda_jwt_key *public = duda_jwt_key_new(algorithm, MK_STR_NULL, pems.public);
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    struct duda_jwt_rules rules = {0};
    assert_non_null(private);
    assert_non_null(public);
    assert_int_equal(duda_jwt_sign(&out, public, MK_STR("{}")), -EINVAL);
    mk_str token = sign(private, "{\"exp\":2000}");
    assert_int_equal(check(public, token, rules), 0);
    assert_int_equal(check(private, token, rules), 0);
    buffer[token.len - 10] = buffer[token.len - 10] == 'A' ? 'B' : 'A';
    assert_int_equal(check(public, token, rules), -EKEYREJECTED);
    assert_true(check(public, mk_str_first(token, token.len - 12), rules) < 0);
    duda_jwt_key_free(private);
    duda_jwt_key_free(public);
}

/* ---- Arbitrary payloads ---- */

static int open_text(const struct duda_jwt_key *key, mk_str text, mk_str *payload)
{
    static char space[32768];
    struct mk_buf out = mk_buf_fixed(space, sizeof space);
    int e = duda_jws_verify(&out, key, text);
    assert_true(e == 0 || out.len == 0);
    *payload = mk_buf_str(&out);
    return e;
}

static void jws_signs_and_verifies_any_payload(void **state)
{
    static const mk_str texts[] = {MK_STR("order 17"), MK_STR(""), MK_STR("\0\xff.\n"),
                                   MK_STR("{\"exp\":1}")};
    struct duda_jwt_key *key = hmac_key("a"), *other = hmac_key("b");
    mk_str payload;
    (void)state;
    for (size_t i = 0; i < MK_LEN(texts); i++) {
        struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
        assert_int_equal(duda_jws_sign(&out, key, texts[i]), 0);
        assert_int_equal(open_text(key, mk_buf_str(&out), &payload), 0);
        assert_true(mk_str_eq(payload, texts[i]));
        assert_int_equal(open_text(other, mk_buf_str(&out), &payload), -EKEYREJECTED);
        buffer[out.len - 5] = buffer[out.len - 5] == 'A' ? 'B' : 'A';
        assert_int_equal(open_text(key, mk_buf_str(&out), &payload), -EKEYREJECTED);
        assert_int_equal(open_text(key, mk_str_first(mk_buf_str(&out), 20), &payload), -EBADMSG);
    }
    memset(buffer, 'x', sizeof buffer);
    struct mk_buf out = mk_buf_growing(1 << 16);
    assert_int_equal(duda_jws_sign(&out, key, mk_str_of(buffer, 16 * 1024 + 1)), -EMSGSIZE);
    assert_int_equal(duda_jws_sign(&out, key, mk_str_of(buffer, 16 * 1024)), 0);
    assert_int_equal(open_text(key, mk_buf_str(&out), &payload), 0);
    mk_buf_free(&out);
    duda_jwt_key_free(key);
    duda_jwt_key_free(other);
}

/* The example of RFC 8037, appendix A.4. */
static void jws_verifies_rfc_example(void **state)
{
    char bytes[32];
    struct mk_buf raw = mk_buf_fixed(bytes, sizeof bytes);
    mk_str payload,
        text = MK_STR("eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-"
                      "09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg");
    (void)state;
    assert_true(duda_base64url_decode(&raw, MK_STR("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")));
    EVP_PKEY *pair =
        EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, (const unsigned char *)bytes, sizeof bytes);
    BIO *pem = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_PUBKEY(pem, pair), 1);
    struct duda_jwt_key *key = duda_jwt_key_new(DUDA_JWT_EDDSA, MK_STR_NULL, of_bio(pem));
    assert_non_null(key);
    assert_int_equal(open_text(key, text, &payload), 0);
    assert_str(payload, "Example of Ed25519 signing");
    assert_true(open_text(key, mk_str_first(text, text.len - 2), &payload) < 0);
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    assert_int_equal(duda_jws_sign(&out, key, MK_STR("x")), -EINVAL);
    EVP_PKEY_free(pair);
    duda_jwt_key_free(key);
}

static void jwt_key_pairs_sign_and_verify(void **state)
{
    (void)state;
    round_trip(DUDA_JWT_RS256, make_pair(EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)2048)));
    round_trip(DUDA_JWT_EDDSA, make_pair(EVP_PKEY_Q_keygen(NULL, NULL, "ED25519")));
    for (int i = 0; i < 20; i++) /* some signatures contain a number that begins with zeros */
        round_trip(DUDA_JWT_ES256, make_pair(EVP_EC_gen("P-256")));
}

static void jwt_rejects_unsuitable_keys(void **state)
{
    struct pems curve = make_pair(EVP_EC_gen("P-384")),
                weak = make_pair(EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)1024));
    (void)state;
    assert_null(duda_jwt_key_new(DUDA_JWT_ES256, MK_STR_NULL, curve.private));
    assert_null(duda_jwt_key_new(DUDA_JWT_RS256, MK_STR_NULL, weak.private));
    assert_null(duda_jwt_key_new(DUDA_JWT_RS256, MK_STR_NULL, curve.public));
    assert_null(duda_jwt_key_new(DUDA_JWT_HS256, MK_STR_NULL, MK_STR("short")));
    assert_null(duda_jwt_key_new(DUDA_JWT_HS512, MK_STR_NULL, mk_str_of(secret, 63)));
    assert_null(duda_jwt_key_new(DUDA_JWT_EDDSA, MK_STR_NULL, mk_str_from_c(secret)));
}

static void jwt_expiry_is_checked(void **state)
{
    struct duda_jwt_key *key = hmac_key(NULL);
    (void)state;
    assert_int_equal(check(key, sign(key, "{\"exp\":1000}"), (struct duda_jwt_rules){0}), -EKEYEXPIRED);
    assert_int_equal(check(key, sign(key, "{\"exp\":1001}"), (struct duda_jwt_rules){0}), 0);
    assert_int_equal(check(key, sign(key, "{\"exp\":990}"), (struct duda_jwt_rules){.leeway_s = 30}), 0);
    assert_int_equal(check(key, sign(key, "{}"), (struct duda_jwt_rules){0}), -EKEYEXPIRED);
    assert_int_equal(check(key, sign(key, "{}"), (struct duda_jwt_rules){.allow_no_expiry = true}), 0);
    assert_int_equal(
        check(key, sign(key, "{\"exp\":\"2000\"}"), (struct duda_jwt_rules){.allow_no_expiry = true}),
        -EKEYEXPIRED);
    assert_int_equal(check(key, sign(key, "{\"exp\":2000,\"nbf\":1001}"), (struct duda_jwt_rules){0}),
                     -EKEYEXPIRED);
    assert_int_equal(
        check(key, sign(key, "{\"exp\":2000,\"nbf\":1001}"), (struct duda_jwt_rules){.leeway_s = 1}), 0);
    duda_jwt_key_free(key);
}

static void jwt_issuer_and_audience_are_checked(void **state)
{
    struct duda_jwt_key *key = hmac_key(NULL);
    const char *claims = "{\"exp\":2000,\"iss\":\"us\",\"aud\":[\"a\",\"b\"]}";
    (void)state;
    assert_int_equal(check(key, sign(key, claims),
                           (struct duda_jwt_rules){.issuer = MK_STR("us"), .audience = MK_STR("b")}),
                     0);
    assert_int_equal(check(key, sign(key, claims), (struct duda_jwt_rules){.issuer = MK_STR("them")}),
                     -EKEYREJECTED);
    assert_int_equal(check(key, sign(key, claims), (struct duda_jwt_rules){.audience = MK_STR("c")}),
                     -EKEYREJECTED);
    assert_int_equal(
        check(key, sign(key, "{\"exp\":2000}"), (struct duda_jwt_rules){.audience = MK_STR("c")}),
        -EKEYREJECTED);
    duda_jwt_key_free(key);
}

static mk_str token_of(const char *head, const char *claims, const char *signature)
{
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    duda_base64url_encode(&out, mk_str_from_c(head));
    mk_buf_add_char(&out, '.');
    duda_base64url_encode(&out, mk_str_from_c(claims));
    mk_buf_addf(&out, ".%s", signature);
    return mk_buf_str(&out);
}

static void jwt_rejects_known_attacks(void **state)
{
    struct duda_jwt_key *key = hmac_key("k1"), *other = hmac_key("k2");
    struct pems rsa = make_pair(EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)2048));
    struct duda_jwt_key *public = duda_jwt_key_new(DUDA_JWT_RS256, MK_STR_NULL, rsa.public);
    struct duda_jwt_key *confused = duda_jwt_key_new(DUDA_JWT_HS256, MK_STR_NULL, rsa.public);
    const char *claims = "{\"exp\":2000}";
    struct duda_jwt_rules none = {0};
    (void)state;
    assert_int_equal(check(key, token_of("{\"alg\":\"none\",\"kid\":\"k1\"}", claims, ""), none),
                     -EKEYREJECTED);
    assert_int_equal(check(key, token_of("{\"alg\":\"HS256\",\"kid\":\"k1\"}", claims, ""), none),
                     -EKEYREJECTED);
    assert_int_equal(check(key, token_of("{\"alg\":\"HS256\",\"alg\":\"none\"}", claims, ""), none),
                     -EBADMSG);
    assert_int_equal(
        check(key, token_of("{\"alg\":\"HS256\",\"kid\":\"k1\",\"crit\":[\"x\"]}", claims, ""), none),
        -EBADMSG);
    assert_int_equal(check(public, sign(confused, claims), none), -EKEYREJECTED);
    assert_int_equal(check(key, sign(other, claims), none), -EKEYREJECTED);
    assert_int_equal(check(key, MK_STR(""), none), -EBADMSG);
    assert_int_equal(check(key, MK_STR(".."), none), -EBADMSG);
    assert_int_equal(check(key, MK_STR("a.b"), none), -EBADMSG);
    assert_int_equal(check(key, token_of("[]", claims, ""), none), -EBADMSG);
    mk_str token = sign(key, claims);
    buffer[token.len] = '.';
    assert_int_equal(check(key, mk_str_of(buffer, token.len + 1), none), -EBADMSG);
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    assert_int_equal(duda_jwt_sign(&out, key, MK_STR("[1]")), -EINVAL);
    assert_int_equal(duda_jwt_sign(&out, key, MK_STR("{\"a\":1,\"a\":2}")), -EINVAL);
    duda_jwt_key_free(key);
    duda_jwt_key_free(other);
    duda_jwt_key_free(public);
    duda_jwt_key_free(confused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jwt_key_pairs_sign_and_verify),
        cmocka_unit_test(jwt_rejects_unsuitable_keys),
        cmocka_unit_test(jwt_expiry_is_checked),
        cmocka_unit_test(jwt_issuer_and_audience_are_checked),
        cmocka_unit_test(jwt_rejects_known_attacks),
        cmocka_unit_test(jws_signs_and_verifies_any_payload),
        cmocka_unit_test(jws_verifies_rfc_example),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

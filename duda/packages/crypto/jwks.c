/* SPDX-License-Identifier: Apache-2.0 */
/* JWK sets (RFC 7517): public keys that an identity provider publishes. The type of the key determines the
 * algorithm; the token never does. */
#include <duda/crypto.h>
#include <errno.h>
#include <jansson.h>
#include <monkey/mem.h>
#include <monkey/sized.h>
#include <openssl/core_names.h>
#include <openssl/param_build.h>

#include "digest.h"
#include "json.h"
#include "jwt_key.h"

enum { NUMBER_MAX = 1024, HEAD_MAX = 4096, P256_HALF = 32, ED25519_SIZE = 32 };

struct jwk_entry {
    struct duda_jwt_key *key;
    mk_str id; /* absent: none */
};

struct duda_jwks {
    json_t *json; /* owns the id strings */
    size_t n;
    struct jwk_entry keys[];
};

static mk_str jwk_member_text(const json_t *json, const char *name)
{
    return duda_json_string_value(json_object_get(json, name));
}

/* Decodes a base64url member into the buffer. Returns an absent string if it is malformed. */
static mk_str decode_jwk_member(const json_t *jwk, const char *name, char *buf, size_t cap)
{
    struct mk_buf out = mk_buf_fixed(buf, cap);
    mk_str text = jwk_member_text(jwk, name);
    return text.len && duda_base64url_decode(&out, text) ? mk_buf_str(&out) : MK_STR_NULL;
}

static EVP_PKEY *pkey_from_params(const char *type, OSSL_PARAM *params)
{
    EVP_PKEY *pair = NULL;
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    if (!params || !ctx || EVP_PKEY_fromdata_init(ctx) != 1 ||
        EVP_PKEY_fromdata(ctx, &pair, EVP_PKEY_PUBLIC_KEY, params) != 1)
        pair = NULL;
    EVP_PKEY_CTX_free(ctx);
    OSSL_PARAM_free(params);
    return pair;
}

static BIGNUM *bytes_to_bignum(mk_str bytes)
{
    return BN_bin2bn(duda_str_bytes(bytes), (int)bytes.len, NULL);
}

static EVP_PKEY *parse_rsa_jwk(const json_t *jwk)
{
    char n_buf[NUMBER_MAX + 1], e_buf[8];
    mk_str n = decode_jwk_member(jwk, "n", n_buf, sizeof n_buf),
           e = decode_jwk_member(jwk, "e", e_buf, sizeof e_buf);
    if (!n.p || !e.p)
        return NULL;
    OSSL_PARAM *params = NULL;
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    BIGNUM *modulus = bytes_to_bignum(n), *exponent = bytes_to_bignum(e);
    if (builder && modulus && exponent && BN_is_odd(modulus) && BN_is_odd(exponent) && !BN_is_one(exponent) &&
        OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, modulus) == 1 &&
        OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, exponent) == 1)
        params = OSSL_PARAM_BLD_to_param(builder);
    EVP_PKEY *pair = pkey_from_params("RSA", params);
    OSSL_PARAM_BLD_free(builder);
    BN_free(modulus);
    BN_free(exponent);
    return pair;
}

static EVP_PKEY *parse_ec_jwk(const json_t *jwk)
{
    char point[1 + 2 * P256_HALF] = {4}; /* 4: an uncompressed point */
    mk_str x = decode_jwk_member(jwk, "x", point + 1, P256_HALF),
           y = decode_jwk_member(jwk, "y", point + 1 + P256_HALF, P256_HALF);
    if (x.len != P256_HALF || y.len != P256_HALF || !mk_str_eq(jwk_member_text(jwk, "crv"), MK_STR("P-256")))
        return NULL;
    OSSL_PARAM *params = NULL;
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    if (builder &&
        OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) == 1 &&
        OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof point) == 1)
        params = OSSL_PARAM_BLD_to_param(builder);
    EVP_PKEY *pair = pkey_from_params("EC", params);
    OSSL_PARAM_BLD_free(builder);
    return pair;
}

static EVP_PKEY *parse_okp_jwk(const json_t *jwk)
{
    char buf[ED25519_SIZE];
    mk_str x = decode_jwk_member(jwk, "x", buf, sizeof buf);
    if (x.len != ED25519_SIZE || !mk_str_eq(jwk_member_text(jwk, "crv"), MK_STR("Ed25519")))
        return NULL;
    return EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, duda_str_bytes(x), x.len);
}

static const struct type {
    const char *type, *name;
    enum duda_jwt_algorithm algorithm;
    EVP_PKEY *(*read)(const json_t *jwk);
} types[] = {
    {"RSA", "RS256", DUDA_JWT_RS256, parse_rsa_jwk},
    {"EC", "ES256", DUDA_JWT_ES256, parse_ec_jwk},
    {"OKP", "EdDSA", DUDA_JWT_EDDSA, parse_okp_jwk},
};

static bool is_signature_key(const json_t *jwk, const char *algorithm)
{
    const json_t *use = json_object_get(jwk, "use"), *name = json_object_get(jwk, "alg"),
                 *uses = json_object_get(jwk, "key_ops");
    if (use && !mk_str_eq(duda_json_string_value(use), MK_STR("sig")))
        return false;
    if (uses && !duda_json_array_contains(uses, MK_STR("verify")))
        return false;
    return !name || mk_str_eq(duda_json_string_value(name), mk_str_from_c(algorithm));
}

static struct duda_jwt_key *parse_jwk(const json_t *jwk)
{
    for (size_t i = 0; i < MK_LEN(types); i++)
        if (mk_str_eq(jwk_member_text(jwk, "kty"), mk_str_from_c(types[i].type)))
            return is_signature_key(jwk, types[i].name)
                       ? duda_jwt_key_from_pkey(types[i].algorithm, types[i].read(jwk))
                       : NULL;
    return NULL;
}

struct duda_jwks *duda_jwks_new(mk_str text)
{
    json_t *json = text.len <= DUDA_JWKS_TEXT_MAX ? duda_json_parse_object(text) : NULL, *jwk;
    const json_t *list = json_object_get(json, "keys");
    size_t i;
    duda_digest_md(DUDA_SHA256); /* initializes OpenSSL */
    if (!json_is_array(list) || json_array_size(list) > DUDA_JWKS_MAX) {
        json_decref(json);
        errno = EINVAL;
        return NULL;
    }
    struct duda_jwks *keys = mk_mem_zalloc(1, sizeof *keys + json_array_size(list) * sizeof keys->keys[0]);
    if (!keys) {
        json_decref(json);
        errno = ENOMEM;
        return NULL;
    }
    keys->json = json;
    json_array_foreach(list, i, jwk)
    {
        struct duda_jwt_key *key = parse_jwk(jwk);
        if (key)
            keys->keys[keys->n++] = (struct jwk_entry){key, jwk_member_text(jwk, "kid")};
    }
    return keys;
}

void duda_jwks_free(struct duda_jwks *keys)
{
    if (!keys)
        return;
    for (size_t i = 0; i < keys->n; i++)
        duda_jwt_key_free(keys->keys[i].key);
    json_decref(keys->json);
    mk_mem_free(keys);
}

size_t duda_jwks_count(const struct duda_jwks *keys)
{
    return keys->n;
}

/* Returns the key with that algorithm and ID; if `id` is absent, the only key for that algorithm. */
static const struct duda_jwt_key *find_jwk(const struct duda_jwks *keys, mk_str algorithm, mk_str id)
{
    const struct duda_jwt_key *found = NULL;
    for (size_t i = 0; i < keys->n; i++) {
        const struct jwk_entry *jwk_entry = &keys->keys[i];
        if (!mk_str_eq(duda_jwt_key_algorithm(jwk_entry->key), algorithm))
            continue;
        if (id.p && jwk_entry->id.p && mk_str_eq(jwk_entry->id, id))
            return jwk_entry->key;
        if (!id.p && found)
            return NULL;
        if (!id.p)
            found = jwk_entry->key;
    }
    return found;
}

static bool is_supported_algorithm(mk_str algorithm)
{
    for (size_t i = 0; i < MK_LEN(types); i++)
        if (mk_str_eq(algorithm, mk_str_from_c(types[i].name)))
            return true;
    return false;
}

static void add_reason(const struct duda_jwt_rules *rules, const char *problem, mk_str value)
{
    enum { SHOWN_MAX = 100 };
    if (!rules->reason)
        return;
    mk_buf_clear(rules->reason); /* of the first attempt, before the keys were fetched again */
    mk_buf_addf(rules->reason, "%s", problem);
    if (value.p)
        mk_buf_addf(rules->reason, " \"%.*s\"", MK_STR_ARG(mk_str_first(value, SHOWN_MAX)));
}

int duda_jwt_verify_jwks_sized(struct mk_buf *claims, const struct duda_jwks *keys, mk_str token,
                               const struct duda_jwt_rules *rules, size_t rules_size)
{
    struct duda_jwt_rules full;
    rules = mk_sized_in(&full, sizeof full, rules, rules_size);
    struct mk_buf head = mk_buf_growing(HEAD_MAX);
    mk_str rest = token;
    json_t *json = duda_base64url_decode(&head, mk_str_cut(&rest, '.')) && rest.p
                       ? duda_json_parse_object(mk_buf_str(&head))
                       : NULL;
    mk_buf_free(&head);
    if (!json) {
        add_reason(rules, "the header is not a JSON object in base64url", MK_STR_NULL);
        return -EBADMSG;
    }
    mk_str algorithm = jwk_member_text(json, "alg"), id = jwk_member_text(json, "kid");
    const struct duda_jwt_key *key = find_jwk(keys, algorithm, id);
    int e = key ? 0 : is_supported_algorithm(algorithm) ? -EKEYREVOKED : -EKEYREJECTED;
    if (e == -EKEYREJECTED)
        add_reason(rules, "unsupported `alg`", algorithm);
    else if (e)
        add_reason(rules, id.p ? "the key set lacks the `kid`" : "no `kid`, and no single key for the `alg`",
                   id.p ? id : algorithm);
    json_decref(json);
    return e ? e : duda_jwt_verify(claims, key, token, rules);
}

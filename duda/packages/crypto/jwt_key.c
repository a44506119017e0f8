/* SPDX-License-Identifier: Apache-2.0 */
/* Keys for signed tokens. Each key has one algorithm, which no token can change. */
#include "jwt_key.h"

#include <errno.h>
#include <monkey/mem.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "digest.h"

enum { RSA_BITS_MIN = 2048, RSA_BITS_MAX = 8192, P256_HALF = 32 };

struct duda_jwt_key {
    enum duda_jwt_algorithm algorithm;
    bool is_private;
    EVP_PKEY *pair; /* NULL for HMAC */
    mk_str secret, id;
    char buf[]; /* holds `secret` and `id` */
};

mk_str duda_jwt_key_algorithm(const struct duda_jwt_key *key)
{
    static const char *const names[] = {"HS256", "HS512", "RS256", "ES256", "EdDSA"};
    return mk_str_from_c(names[key->algorithm]);
}

mk_str duda_jwt_key_id(const struct duda_jwt_key *key)
{
    return key->id;
}

static bool is_hmac(enum duda_jwt_algorithm algorithm)
{
    return algorithm == DUDA_JWT_HS256 || algorithm == DUDA_JWT_HS512;
}

static bool pkey_matches_algorithm(EVP_PKEY *pair, enum duda_jwt_algorithm algorithm)
{
    char group[32] = "";
    int bits = EVP_PKEY_get_bits(pair);
    if (algorithm == DUDA_JWT_RS256)
        return EVP_PKEY_is_a(pair, "RSA") && bits >= RSA_BITS_MIN && bits <= RSA_BITS_MAX;
    if (algorithm == DUDA_JWT_EDDSA)
        return EVP_PKEY_is_a(pair, "ED25519");
    return EVP_PKEY_is_a(pair, "EC") && EVP_PKEY_get_group_name(pair, group, sizeof group, NULL) == 1 &&
           strcmp(group, "prime256v1") == 0;
}

/* Refuses to provide a pass phrase; without this callback, OpenSSL would ask for one on the terminal. */
static int refuse_passphrase(char *buf, int size, int writes, void *ctx)
{
    (void)buf, (void)size, (void)writes, (void)ctx;
    return -1;
}

static bool parse_pem(struct duda_jwt_key *key, mk_str pem)
{
    duda_digest_md(DUDA_SHA256); /* initializes OpenSSL */
    for (int is_public = 0; is_public < 2 && !key->pair; is_public++) {
        BIO *bio = BIO_new_mem_buf(pem.p, (int)pem.len);
        if (!bio)
            return false;
        key->pair = is_public ? PEM_read_bio_PUBKEY(bio, NULL, refuse_passphrase, NULL)
                              : PEM_read_bio_PrivateKey(bio, NULL, refuse_passphrase, NULL);
        key->is_private = key->pair && !is_public;
        BIO_free(bio);
    }
    return key->pair && pkey_matches_algorithm(key->pair, key->algorithm);
}

static mk_str copy_key_string(char *at, mk_str s)
{
    if (s.len)
        memcpy(at, s.p, s.len);
    return mk_str_of(s.p ? at : NULL, s.len);
}

struct duda_jwt_key *duda_jwt_key_new(enum duda_jwt_algorithm algorithm, mk_str id, mk_str material)
{
    bool hmac = is_hmac(algorithm);
    errno = EINVAL;
    if ((unsigned)algorithm > DUDA_JWT_EDDSA || id.len > DUDA_JWT_KEY_ID_MAX || material.len > 65536 ||
        material.len < (algorithm == DUDA_JWT_HS512 ? 64 : 32))
        return NULL;
    struct duda_jwt_key *key = mk_mem_zalloc(1, sizeof *key + id.len + (hmac ? material.len : 0));
    if (!key) {
        errno = ENOMEM;
        return NULL;
    }
    key->algorithm = algorithm;
    key->is_private = hmac;
    key->id = copy_key_string(key->buf, id);
    if (hmac)
        key->secret = copy_key_string(key->buf + id.len, material);
    if (hmac || parse_pem(key, material))
        return key;
    duda_jwt_key_free(key);
    errno = EINVAL;
    return NULL;
}

struct duda_jwt_key *duda_jwt_key_from_pkey(enum duda_jwt_algorithm algorithm, EVP_PKEY *pair)
{
    struct duda_jwt_key *key =
        pair && pkey_matches_algorithm(pair, algorithm) ? mk_mem_zalloc(1, sizeof *key) : NULL;
    if (!key) {
        EVP_PKEY_free(pair);
        return NULL;
    }
    key->algorithm = algorithm;
    key->pair = pair;
    return key;
}

void duda_jwt_key_free(struct duda_jwt_key *key)
{
    if (!key)
        return;
    EVP_PKEY_free(key->pair);
    OPENSSL_cleanse(key->buf, key->id.len + key->secret.len);
    mk_mem_free(key);
}

static int compute_hmac(const struct duda_jwt_key *key, mk_str data, struct duda_hash *out)
{
    return duda_hmac(key->algorithm == DUDA_JWT_HS512 ? DUDA_SHA512 : DUDA_SHA256, key->secret, data, out);
}

static const EVP_MD *signature_digest(const struct duda_jwt_key *key)
{
    return key->algorithm == DUDA_JWT_EDDSA ? NULL : duda_digest_md(DUDA_SHA256);
}

/* Converts OpenSSL's DER to the two numbers of RFC 7518, section 3.4. */
static bool ecdsa_der_to_raw(uint8_t *bytes, size_t *len)
{
    const unsigned char *at = bytes;
    ECDSA_SIG *sig = d2i_ECDSA_SIG(NULL, &at, (long)*len);
    bool fits = sig && BN_bn2binpad(ECDSA_SIG_get0_r(sig), bytes, P256_HALF) == P256_HALF &&
                BN_bn2binpad(ECDSA_SIG_get0_s(sig), bytes + P256_HALF, P256_HALF) == P256_HALF;
    ECDSA_SIG_free(sig);
    *len = 2 * P256_HALF;
    return fits;
}

/* Converts the two numbers back to DER. Returns the length, or 0 if the input is not a signature. */
static size_t ecdsa_raw_to_der(mk_str pair, uint8_t out[DUDA_JWT_SIGNATURE_MAX])
{
    const unsigned char *bytes = (const unsigned char *)pair.p;
    int len = 0;
    if (pair.len != 2 * P256_HALF)
        return 0;
    ECDSA_SIG *sig = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(bytes, P256_HALF, NULL), *s = BN_bin2bn(bytes + P256_HALF, P256_HALF, NULL);
    if (sig && r && s && ECDSA_SIG_set0(sig, r, s) == 1)
        len = i2d_ECDSA_SIG(sig, &out);
    else
        BN_free(r), BN_free(s);
    ECDSA_SIG_free(sig);
    return len > 0 ? (size_t)len : 0;
}

int duda_jwt_key_sign(const struct duda_jwt_key *key, mk_str data, uint8_t *out, size_t *len)
{
    struct duda_hash hash;
    if (!key->is_private)
        return -EINVAL;
    if (is_hmac(key->algorithm)) {
        int e = compute_hmac(key, data, &hash);
        if (!e)
            memcpy(out, hash.bytes, *len = hash.len);
        return e;
    }
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    *len = DUDA_JWT_SIGNATURE_MAX;
    bool signs = ctx && EVP_DigestSignInit(ctx, NULL, signature_digest(key), NULL, key->pair) == 1 &&
                 EVP_DigestSign(ctx, out, len, duda_str_bytes(data), data.len) == 1 &&
                 (key->algorithm != DUDA_JWT_ES256 || ecdsa_der_to_raw(out, len));
    EVP_MD_CTX_free(ctx);
    return signs ? 0 : -ENOMEM;
}

int duda_jwt_key_verify(const struct duda_jwt_key *key, mk_str data, mk_str signature)
{
    struct duda_hash hash;
    uint8_t der[DUDA_JWT_SIGNATURE_MAX];
    if (is_hmac(key->algorithm)) {
        int e = compute_hmac(key, data, &hash);
        return e ? e : mk_consttime_eq(duda_hash_str(&hash), signature) ? 0 : -EKEYREJECTED;
    }
    if (key->algorithm == DUDA_JWT_ES256)
        signature = mk_str_of((const char *)der, ecdsa_raw_to_der(signature, der));
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    if (!ctx)
        return -ENOMEM;
    bool is_match =
        signature.len && EVP_DigestVerifyInit(ctx, NULL, signature_digest(key), NULL, key->pair) == 1 &&
        EVP_DigestVerify(ctx, duda_str_bytes(signature), signature.len, duda_str_bytes(data), data.len) == 1;
    EVP_MD_CTX_free(ctx);
    return is_match ? 0 : -EKEYREJECTED;
}

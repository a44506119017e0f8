/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes, keys, passwords, identifiers and signed tokens, by OpenSSL, libxcrypt and jansson. In
 * monkey-duda-crypto.so. From any thread, but for what waits. */
#ifndef DUDA_CRYPTO_H
#define DUDA_CRYPTO_H

#include <monkey/buf.h>
#include <monkey/text.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Hash functions. SHA-1 is for old protocols only. */
enum duda_digest { DUDA_SHA256, DUDA_SHA384, DUDA_SHA512, DUDA_SHA3_256, DUDA_SHA1 };
/** The longest result of a hash function. */
enum { DUDA_DIGEST_MAX = 64 };

/** The result of a hash or of an HMAC. */
struct duda_hash {
    uint8_t bytes[DUDA_DIGEST_MAX];
    size_t len; /**< of these */
};
/** It as text, for mk_hex_encode(), mk_consttime_eq() and others. */
static inline mk_str duda_hash_str(const struct duda_hash *hash)
{
    return mk_str_of((const char *)hash->bytes, hash->len);
}

/**
 * Hashes `data`. 0, or -ENOMEM.
 *
 *     struct duda_hash hash;
 *     if (duda_hash(DUDA_SHA256, data, &hash) == 0)
 *         mk_hex_encode(&out, duda_hash_str(&hash));
 */
MK_API int duda_hash(enum duda_digest digest, mk_str data, struct duda_hash *out) MK_API_MUST_USE;

/** A hash of what arrives in pieces. */
struct duda_hasher;
/** NULL: out of memory. */
MK_API struct duda_hasher *duda_hasher_new(enum duda_digest digest) MK_API_MUST_USE;
/** Adds a piece. */
MK_API int duda_hasher_update(struct duda_hasher *h, mk_str data) MK_API_MUST_USE;
/** The hash of all pieces; only duda_hasher_free() may follow. */
MK_API int duda_hasher_final(struct duda_hasher *h, struct duda_hash *out) MK_API_MUST_USE;
/** Frees it. NULL is fine. */
MK_API void duda_hasher_free(struct duda_hasher *h);

/** HMAC (RFC 2104). 0, or -ENOMEM. Compare results with mk_consttime_eq(). */
MK_API int duda_hmac(enum duda_digest digest, mk_str key, mk_str data, struct duda_hash *out) MK_API_MUST_USE;
/**
 * HKDF (RFC 5869): derives `size` bytes from a secret of high entropy, not from a password. `info` names what
 * the key is for, so that one secret gives many keys. 0, -EINVAL (more than 255 times the length of the
 * digest), or -ENOMEM.
 */
MK_API int duda_hkdf(enum duda_digest digest, mk_str secret, mk_str salt, mk_str info, void *out,
                     size_t size) MK_API_MUST_USE;

/** Base64 for URLs (RFC 4648, section 5), without padding. */
MK_API void duda_base64url_encode(struct mk_buf *out, mk_str s);
/** Its reverse; false at any character that is not of it, padding and unused bits included, with any part of
 * it written. */
MK_API bool duda_base64url_decode(struct mk_buf *out, mk_str s) MK_API_MUST_USE;
/** The reverse of mk_hex_encode(), which also takes capital digits. */
MK_API bool duda_hex_decode(struct mk_buf *out, mk_str s) MK_API_MUST_USE;

/** The bytes of a UUID as text, without a NUL. */
enum { DUDA_UUID_LEN = 36 };
/** A random UUID (RFC 9562, version 4). */
MK_API void duda_uuid4(char out[DUDA_UUID_LEN]);
/** One that begins with the time, in milliseconds since 1970 (version 7): as a key of a database, new ones
 * lie side by side. */
MK_API void duda_uuid7(char out[DUDA_UUID_LEN], uint64_t now_ms);
/** `bytes` random bytes in base64 for URLs: 16 or more make a token that cannot be guessed. */
MK_API void duda_random_text(struct mk_buf *out, size_t bytes);

/** The room for the hash of a password, with its NUL, and the longest password: libxcrypt's. */
enum { DUDA_PASSWORD_SIZE = 384, DUDA_PASSWORD_MAX = 511 };
/**
 * Hashes a password for a file or a database (yescrypt). It takes 10 ms or more of one core, on purpose:
 * call it in a thread, by duda_offload() or mk_worker_offload(). 0; -EINVAL: it is empty, too long, or holds
 * a NUL; -ENOMEM. `out` ends with a NUL.
 */
MK_API int duda_password_hash(mk_str password, char out[DUDA_PASSWORD_SIZE]) MK_API_MUST_USE;
/**
 * Is it the password that the hash was made of? Any hash that libxcrypt knows. As slow, so in a thread, too.
 * An absent hash takes the same time and is never right: pass it for users who do not exist, so that the time
 * does not tell.
 */
MK_API bool duda_password_verify(mk_str password, mk_str hash) MK_API_MUST_USE;

/** How a token is signed (RFC 7518). */
enum duda_jwt_algorithm {
    DUDA_JWT_HS256, /**< HMAC: one secret key of at least 32 bytes for both sides */
    DUDA_JWT_HS512, /**< of at least 64 bytes */
    DUDA_JWT_RS256, /**< RSA of at least 2048 bits */
    DUDA_JWT_ES256, /**< the curve P-256 */
    DUDA_JWT_EDDSA  /**< Ed25519 */
};

/** A key that signs or checks tokens, of one algorithm. May be used by many threads at once. */
struct duda_jwt_key;

/**
 * A key from `material`: the secret bytes for HMAC, else PEM, of a private key (which signs and checks) or a
 * public one (which checks). `id` becomes `kid` of tokens, and only tokens with it are accepted; absent:
 * none. NULL: the material is not of that algorithm or too weak (errno is EINVAL), or memory is out (ENOMEM).
 */
MK_API struct duda_jwt_key *duda_jwt_key_new(enum duda_jwt_algorithm algorithm, mk_str id,
                                             mk_str material) MK_API_MUST_USE;
/** Frees it and erases the secret. NULL is fine. */
MK_API void duda_jwt_key_free(struct duda_jwt_key *key);

/**
 * Writes a signed token (RFC 7519) of these claims, a JSON object as text. 0; -EINVAL: the claims are no
 * object, or the key is a public one; -EMSGSIZE: they are longer than 16 KB; -ENOMEM.
 *
 *     mk_buf_addf(&claims, "{\"sub\":\"ana\",\"exp\":%lld}", (long long)mk_worker_now(worker) + 3600);
 *     int e = duda_jwt_sign(&token, key, mk_buf_str(&claims));
 */
MK_API int duda_jwt_sign(struct mk_buf *out, const struct duda_jwt_key *key, mk_str claims) MK_API_MUST_USE;

/**
 * Signs any bytes, in the compact form of JWS (RFC 7515): for links and messages that come back, or that
 * others check. All who see them can read them. Use a key for one purpose only, or a text that was signed for
 * one can be passed off for another. 0; -EINVAL: the key is a public one; -EMSGSIZE: more than 16 KB;
 * -ENOMEM.
 *
 *     int e = duda_jws_sign(&text, key, MK_STR("order 17 of ana"));
 */
MK_API int duda_jws_sign(struct mk_buf *out, const struct duda_jwt_key *key, mk_str payload) MK_API_MUST_USE;
/** Checks a signed text, and writes what was signed to `payload`. Errors as of duda_jwt_verify(): -EBADMSG,
 * -EKEYREJECTED, -ENOMEM. Nothing is written on errors. Nothing expires: use a token for what is valid for a
 * while. */
MK_API int duda_jws_verify(struct mk_buf *payload, const struct duda_jwt_key *key,
                           mk_str text) MK_API_MUST_USE;

/** What a token must be, besides rightly signed. */
struct duda_jwt_rules {
    int64_t now;     /**< seconds since 1970, for `exp` and `nbf` */
    uint32_t leeway; /**< seconds that clocks may differ */
    bool eternal;    /**< accept tokens without `exp` */
    mk_str issuer;   /**< `iss`; absent: any */
    mk_str audience; /**< must be `aud`, or one of it; absent: any */
};

/**
 * Checks a token and writes its claims, JSON, to `claims`. The algorithm is that of the key: what the token
 * says must be the same, so `none` and an HMAC of a public key are refused. 0; -EBADMSG: it is not a token,
 * or has a critical extension; -EKEYREJECTED: it is signed otherwise, or by another key, or is of another
 * issuer or for another audience; -EKEYEXPIRED: `exp` is past or missing, or `nbf` is in the future; -ENOMEM.
 * Nothing is written on errors. Tokens above 32 KB are refused. A handler may return these errors: the client
 * gets 400 for what is no token, else 401 with a challenge (see duda_fn).
 */
MK_API int duda_jwt_verify(struct mk_buf *claims, const struct duda_jwt_key *key, mk_str token,
                           const struct duda_jwt_rules *rules) MK_API_MUST_USE;

/** The public keys of a server that signs tokens: a JWK set (RFC 7517). Tokens may be checked by many threads
 * at once. */
struct duda_jwks;

/** The limits of a set: bytes of its text, keys in it. */
enum { DUDA_JWKS_TEXT_MAX = 256 << 10, DUDA_JWKS_MAX = 64 };

/**
 * Reads a set, JSON as an OpenID provider publishes it at its `jwks_uri`. Keys for RS256, ES256 and EdDSA are
 * taken; all others are passed over: other algorithms, secret keys (`oct`), keys for encryption (`use`,
 * `key_ops`), and those that are weak or damaged. NULL: the text is no such set, or exceeds the limits (errno
 * is EINVAL), or memory is out (ENOMEM).
 */
MK_API struct duda_jwks *duda_jwks_new(mk_str text) MK_API_MUST_USE;
/** Frees it. NULL is fine. */
MK_API void duda_jwks_free(struct duda_jwks *keys);
/** How many keys were taken. */
MK_API size_t duda_jwks_count(const struct duda_jwks *keys);

/**
 * As duda_jwt_verify(), by the key of the set that `kid` of the token names; a token without `kid` is checked
 * by the only key of its algorithm. Besides those errors, -EKEYREVOKED: there is no such key, so it may be a new
 * one: fetch the set again, but not for each such token: clients can send any number.
 *
 *     int e = duda_jwt_verify_jwks(&claims, keys, token, &rules);
 *     if (e == -EKEYREVOKED && now - fetched > 60)
 *         ...
 */
MK_API int duda_jwt_verify_jwks(struct mk_buf *claims, const struct duda_jwks *keys, mk_str token,
                                const struct duda_jwt_rules *rules) MK_API_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes, keys, passwords, identifiers and signed tokens, based on OpenSSL, libxcrypt and jansson. In
 * monkey-duda-crypto.so. Thread-safe, except for functions that wait. */
#ifndef DUDA_CRYPTO_H
#define DUDA_CRYPTO_H

/* A function and a struct in this header have the same name, which is valid C++, but some compilers warn
 * about it. */
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC system_header
#endif

#include <monkey/buf.h>
#include <monkey/text.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Hash functions. SHA-1 is only for legacy protocols. */
enum duda_digest { DUDA_SHA256, DUDA_SHA384, DUDA_SHA512, DUDA_SHA3_256, DUDA_SHA1 };
/** Maximum size of a hash in bytes. */
enum { DUDA_DIGEST_MAX = 64 };

/** A hash or an HMAC. */
struct duda_hash {
    uint8_t bytes[DUDA_DIGEST_MAX];
    size_t len; /**< bytes used */
};
/** The hash as a string, for mk_hex_encode(), mk_consttime_eq() and others. */
static inline mk_str duda_hash_str(const struct duda_hash *hash)
{
    return mk_str_of(MK_API_CAST(const char *, MK_API_CAST(const void *, hash->bytes)), hash->len);
}

/**
 * Hashes `data`. Returns 0, or -ENOMEM.
 *
 *     struct duda_hash hash;
 *     if (duda_hash(DUDA_SHA256, data, &hash) == 0)
 *         mk_hex_encode(&out, duda_hash_str(&hash));
 */
MK_API int duda_hash(enum duda_digest digest, mk_str data, struct duda_hash *out) MK_API_MUST_USE;

/** An incremental hash. */
struct duda_hasher;
/** Creates a hasher; NULL if memory is exhausted. */
MK_API struct duda_hasher *duda_hasher_new(enum duda_digest digest) MK_API_MUST_USE;
/** Hashes the next piece of data. Returns 0 or -ENOMEM. */
MK_API int duda_hasher_update(struct duda_hasher *hasher, mk_str data) MK_API_MUST_USE;
/**
 * Computes the hash of all data; only duda_hasher_free() may follow. Returns 0 or -ENOMEM.
 *
 *     struct duda_hasher *hasher = duda_hasher_new(DUDA_SHA256);
 *     struct duda_hash hash;
 *     int e = hasher ? duda_hasher_update(hasher, data) : -ENOMEM; // once for each piece
 *     e = e ? e : duda_hasher_final(hasher, &hash);
 *     duda_hasher_free(hasher);
 */
MK_API int duda_hasher_final(struct duda_hasher *hasher, struct duda_hash *out) MK_API_MUST_USE;
/** Frees the hasher; NULL is allowed. */
MK_API void duda_hasher_free(struct duda_hasher *hasher);

/**
 * Computes an HMAC (RFC 2104). Returns 0, or -ENOMEM. Compare HMACs with mk_consttime_eq().
 *
 *     struct duda_hash mac;
 *     if (duda_hmac(DUDA_SHA256, secret, data, &mac) == 0 && mk_consttime_eq(duda_hash_str(&mac), token))
 *         ... the signature is valid
 */
MK_API int duda_hmac(enum duda_digest digest, mk_str key, mk_str data, struct duda_hash *out) MK_API_MUST_USE;
/**
 * HKDF (RFC 5869): derives `size` bytes from a secret of high entropy; do not use it for passwords. `info`
 * names the purpose of the key, so that one secret yields independent keys. Returns 0, -EINVAL (`size`
 * exceeds 255 times the length of the digest), or -ENOMEM.
 *
 *     unsigned char key_for_mails[32];
 *     int e = duda_hkdf(DUDA_SHA256, secret, MK_STR(""), MK_STR("mails"), key_for_mails, sizeof key_for_mails);
 */
MK_API int duda_hkdf(enum duda_digest digest, mk_str secret, mk_str salt, mk_str info, void *out,
                     size_t size) MK_API_MUST_USE;

/**
 * Encodes as base64url (RFC 4648, section 5), without padding.
 *
 *     duda_base64url_encode(&out, data);
 *     return duda_redirect(d, 303, duda_sprintf(d, "/confirm?data=%.*s", MK_STR_ARG(mk_buf_str(&out))));
 */
MK_API void duda_base64url_encode(struct mk_buf *out, mk_str s);
/**
 * Decodes base64url. Returns false if `s` contains an invalid character, padding, or nonzero unused bits;
 * `out` may then contain part of the result.
 *
 *     if (!duda_base64url_decode(&out, duda_query(d, "data")))
 *         return 400;
 */
MK_API bool duda_base64url_decode(struct mk_buf *out, mk_str s) MK_API_MUST_USE;
/** Decodes hexadecimal digits, lowercase or uppercase. Returns false if the length is odd or a character is
 * not a digit; `out` may then contain part of the result. */
MK_API bool duda_hex_decode(struct mk_buf *out, mk_str s) MK_API_MUST_USE;

/** Length of a UUID as text, without the NUL. */
enum { DUDA_UUID_LEN = 36 };
/**
 * Generates a random UUID (RFC 9562, version 4).
 *
 *     char id[DUDA_UUID_LEN]; // without a NUL
 *     duda_uuid4(id);
 *     return duda_printf(d, "%.*s\n", DUDA_UUID_LEN, id);
 */
MK_API void duda_uuid4(char out[DUDA_UUID_LEN]);
/** Generates a UUID that begins with the time, in milliseconds since 1970 (version 7). UUIDs generated at
 * about the same time are therefore adjacent in a database index. */
MK_API void duda_uuid7(char out[DUDA_UUID_LEN], uint64_t now_ms);
/**
 * Writes `bytes` random bytes as base64url; with 16 bytes or more, the text cannot be guessed.
 *
 *     duda_random_text(&out, 16); // 128 bits, for a secret link
 */
MK_API void duda_random_text(struct mk_buf *out, size_t bytes);

/** Buffer size for a password hash, including its NUL, and the maximum length of a password: the limits of
 * libxcrypt. */
enum { DUDA_PASSWORD_SIZE = 384, DUDA_PASSWORD_MAX = 511 };
/**
 * Hashes a password for storage; the password hash is yescrypt (not bcrypt or Argon2). Takes 10 ms or more of
 * CPU time by design. Handlers call duda_password_hash() of duda/auth.h instead, which runs this function in
 * a thread; all other code should do the same with mk_worker_offload(). Returns 0; -EINVAL: the password is
 * empty, too long, or contains a NUL; -ENOMEM. `out` is NUL-terminated.
 */
MK_API int duda_password_hash_blocking(mk_str password, char out[DUDA_PASSWORD_SIZE]) MK_API_MUST_USE;
/**
 * Verifies a password against a hash of any type that libxcrypt supports. Takes as long as
 * duda_password_hash_blocking(), so handlers call duda_password_verify() instead. An absent hash takes the
 * same time and never matches: pass it for unknown users, so that the response time does not reveal whether a
 * user exists.
 */
MK_API bool duda_password_verify_blocking(mk_str password, mk_str hash) MK_API_MUST_USE;

/** Signature algorithms of tokens (RFC 7518). */
enum duda_jwt_algorithm {
    DUDA_JWT_HS256, /**< HMAC: a shared secret key of at least 32 bytes */
    DUDA_JWT_HS512, /**< HMAC: a shared secret key of at least 64 bytes */
    DUDA_JWT_RS256, /**< RSA with at least 2048 bits */
    DUDA_JWT_ES256, /**< ECDSA with P-256 */
    DUDA_JWT_EDDSA  /**< Ed25519 */
};

/** A key that signs or verifies tokens with one algorithm. Thread-safe. */
struct duda_jwt_key;

/**
 * Creates a key from `material`: the secret bytes for HMAC, otherwise, in PEM format, a private key (signs
 * and verifies) or a public key (only verifies). `id` becomes the `kid` of tokens, and only tokens with that
 * `kid` are accepted. If `id` is absent, tokens get no `kid`, and a `kid` in a token is ignored. Returns
 * NULL if the material does not fit the algorithm or is too weak (errno is EINVAL), or if memory is exhausted
 * (ENOMEM).
 */
MK_API struct duda_jwt_key *duda_jwt_key_new(enum duda_jwt_algorithm algorithm, mk_str id,
                                             mk_str material) MK_API_MUST_USE;
/** Frees the key and erases the secret; NULL is allowed. */
MK_API void duda_jwt_key_free(struct duda_jwt_key *key);

/**
 * Writes a signed JWT (RFC 7519) with these claims, a JSON object as text. Returns 0; -EINVAL: the claims are
 * not an object, or the key is a public key; -EMSGSIZE: the claims exceed 16 KB; -ENOMEM.
 *
 *     struct mk_json_writer w = mk_json_writer_to(&claims); // monkey/json.h
 *     mk_json_begin_object(&w);
 *     mk_json_cstr(mk_json_key(&w, "sub"), "ana");
 *     mk_json_int(mk_json_key(&w, "exp"), mk_worker_now(worker) + 3600);
 *     mk_json_end_object(&w);
 *     int e = duda_jwt_sign(&out, key, mk_buf_str(&claims));
 */
MK_API int duda_jwt_sign(struct mk_buf *out, const struct duda_jwt_key *key, mk_str claims) MK_API_MUST_USE;

/**
 * Signs any bytes as a compact JWS (RFC 7515), for links and messages that clients return or that others
 * verify. The payload is signed, not encrypted. Use a key for one purpose only; otherwise a payload that was
 * signed for one purpose can be replayed for another. Returns 0; -EINVAL: the key is a public key; -EMSGSIZE:
 * the payload exceeds 16 KB; -ENOMEM.
 *
 *     int e = duda_jws_sign(&text, key, MK_STR("order 17 of ana"));
 */
MK_API int duda_jws_sign(struct mk_buf *out, const struct duda_jwt_key *key, mk_str payload) MK_API_MUST_USE;
/** Verifies a JWS and writes its payload. Returns 0, or an error of duda_jwt_verify(): -EBADMSG,
 * -EKEYREJECTED or -ENOMEM. On error, nothing is written. A JWS never expires; use a JWT for anything with a
 * limited lifetime. */
MK_API int duda_jws_verify(struct mk_buf *payload, const struct duda_jwt_key *key,
                           mk_str text) MK_API_MUST_USE;

/** The rules that a JWT must satisfy in addition to having a valid signature. */
struct duda_jwt_rules {
    int64_t now;          /**< seconds since 1970, for `exp` and `nbf` */
    uint32_t leeway_s;    /**< tolerated clock difference in seconds */
    bool allow_no_expiry; /**< accepts tokens without `exp` */
    mk_str issuer;        /**< required `iss`; absent: any */
    mk_str audience;      /**< required `aud`, or one of its elements; absent: any */
    /** Receives the reason if the token is invalid, for logs and developers: "the token expired 900 s ago
     * (`exp`)". The reason may contain text from the token. NULL: the reason is not needed. */
    struct mk_buf *reason;
};

/**
 * Verifies a JWT (JSON Web Token), such as a bearer token, and writes its claims as JSON to `claims`. The key
 * determines the algorithm, and the token must name the same one; `none` and an HMAC made with a public key
 * are therefore rejected. Returns 0; -EBADMSG: not a JWT, or it has a critical extension; -EKEYREJECTED:
 * wrong algorithm, key, issuer or audience; -EKEYEXPIRED: `exp` is past or missing, or `nbf` is in the
 * future; -ENOMEM. On error, nothing is written. Tokens larger than 32 KB are rejected. A handler may return
 * these errors: the client gets 400 for a malformed token, otherwise 401 with a challenge (see duda_fn).
 *
 *     mk_str token = duda_header(d, "Authorization");
 *     if (!mk_str_eq_nocase(mk_str_word(&token), MK_STR("Bearer")))
 *         return -EKEYREJECTED;
 *     int e = duda_jwt_verify(&claims, key, mk_str_trim(token), &rules);
 */
MK_API int duda_jwt_verify_sized(struct mk_buf *claims, const struct duda_jwt_key *key, mk_str token,
                                 const struct duda_jwt_rules *rules, size_t rules_size) MK_API_MUST_USE;
static inline MK_API_MUST_USE int duda_jwt_verify(struct mk_buf *claims, const struct duda_jwt_key *key,
                                                  mk_str token, const struct duda_jwt_rules *rules)
{
    return duda_jwt_verify_sized(claims, key, token, rules, sizeof *rules);
}

/** The public keys of a server that signs tokens: a JWK set (RFC 7517). Thread-safe. */
struct duda_jwks;

/** Limits of a JWK set: bytes of its text, and number of keys. */
enum { DUDA_JWKS_TEXT_MAX = 256 << 10, DUDA_JWKS_MAX = 64 };

/**
 * Parses a JWK set, the JSON that an OpenID provider publishes at its `jwks_uri`. Keys for RS256, ES256 and
 * EdDSA are used. All others are ignored: keys for other algorithms, secret keys (`oct`), encryption keys
 * (`use`, `key_ops`), and weak or invalid keys. Returns NULL if the text is not a JWK set or exceeds the
 * limits (errno is EINVAL), or if memory is exhausted (ENOMEM).
 */
MK_API struct duda_jwks *duda_jwks_new(mk_str text) MK_API_MUST_USE;
/** Frees the set; NULL is allowed. */
MK_API void duda_jwks_free(struct duda_jwks *keys);
/** The number of usable keys. */
MK_API size_t duda_jwks_count(const struct duda_jwks *keys);

/**
 * Verifies a JWT like duda_jwt_verify(), with the key that its `kid` names; a token without `kid` is verified
 * only if the set has exactly one key for its algorithm. Returns the same errors, or -EKEYREVOKED: the set
 * has no such key. The key may be new: fetch the set again, but limit how often, because clients can send any
 * number of such tokens.
 *
 *     int e = duda_jwt_verify_jwks(&claims, keys, token, &rules);
 *     if (e == -EKEYREVOKED && now - fetched > 60)
 *         ...
 */
MK_API int duda_jwt_verify_jwks_sized(struct mk_buf *claims, const struct duda_jwks *keys, mk_str token,
                                      const struct duda_jwt_rules *rules, size_t rules_size) MK_API_MUST_USE;
static inline MK_API_MUST_USE int duda_jwt_verify_jwks(struct mk_buf *claims, const struct duda_jwks *keys,
                                                       mk_str token, const struct duda_jwt_rules *rules)
{
    return duda_jwt_verify_jwks_sized(claims, keys, token, rules, sizeof *rules);
}

#ifdef __cplusplus
}
#endif

#endif

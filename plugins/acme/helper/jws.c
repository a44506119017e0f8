/* SPDX-License-Identifier: Apache-2.0 */
#include "jws.h"

#include <monkey/json.h>
#include <monkey/text.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/hmac.h>

enum { NUMBER = 32 /* bytes of a coordinate, and of half a signature */, TEXT_MAX = 256 * 1024 };

/* ---- base64url ---- */

void acme_base64url_encode(struct mk_buf *out, mk_str bytes)
{
    size_t from = out->len;
    mk_base64_encode(out, bytes);
    if (out->failed)
        return;
    while (out->len > from && out->p[out->len - 1] == '=')
        out->len--;
    for (size_t i = from; i < out->len; i++)
        out->p[i] = (char)(out->p[i] == '+' ? '-' : out->p[i] == '/' ? '_' : out->p[i]);
}

static void write_base64url(struct mk_json_writer *w, mk_str bytes)
{
    mk_json_begin_string(w);
    acme_base64url_encode(w->out, bytes);
    mk_json_end_string(w);
}

bool acme_base64url_decode(struct mk_buf *out, mk_str text)
{
    struct mk_buf plain = mk_buf_growing(TEXT_MAX);
    for (size_t i = 0; i < text.len; i++)
        mk_buf_add_char(&plain, (char)(text.p[i] == '-' ? '+' : text.p[i] == '_' ? '/' : text.p[i]));
    bool ok = !plain.failed && mk_base64_decode(out, mk_buf_str(&plain));
    mk_buf_free(&plain);
    return ok;
}

bool acme_sha256(mk_str text, char digest[32])
{
    return EVP_Digest(text.p, text.len, (unsigned char *)digest, NULL, EVP_sha256(), NULL);
}

/* ---- Keys ---- */

static bool write_coordinate(struct mk_json_writer *w, const EVP_PKEY *key, const char *which)
{
    unsigned char bytes[NUMBER];
    BIGNUM *n = NULL;
    bool ok = EVP_PKEY_get_bn_param(key, which, &n) && BN_bn2binpad(n, bytes, NUMBER) == NUMBER;
    BN_free(n);
    if (ok)
        write_base64url(w, mk_str_of((char *)bytes, NUMBER));
    return ok;
}

/* Writes the public part of a P-256 key in the form that its thumbprint requires (RFC 7638). */
static bool write_jwk(struct mk_json_writer *w, const EVP_PKEY *key)
{
    mk_json_begin_object(w);
    mk_json_cstr(mk_json_key(w, "crv"), "P-256");
    mk_json_cstr(mk_json_key(w, "kty"), "EC");
    bool ok = write_coordinate(mk_json_key(w, "x"), key, OSSL_PKEY_PARAM_EC_PUB_X) &&
              write_coordinate(mk_json_key(w, "y"), key, OSSL_PKEY_PARAM_EC_PUB_Y);
    mk_json_end_object(w);
    return ok && !w->out->failed;
}

bool acme_jws_key_authorization(struct mk_buf *out, const EVP_PKEY *key, const char *token)
{
    char buf[256], digest[32];
    struct mk_buf jwk = mk_buf_fixed(buf, sizeof buf);
    struct mk_json_writer w = mk_json_writer_to(&jwk);
    if (!write_jwk(&w, key) || !acme_sha256(mk_buf_str(&jwk), digest))
        return false;
    mk_buf_addf(out, "%s.", token);
    acme_base64url_encode(out, mk_str_of(digest, sizeof digest));
    return !out->failed;
}

/* ---- Messages ---- */

/* OpenSSL encodes a signature as ASN.1; JWS needs two concatenated numbers (RFC 7518, section 3.4). */
static bool append_raw_signature(struct mk_buf *out, const unsigned char *der, size_t len)
{
    unsigned char both[2 * NUMBER];
    ECDSA_SIG *s = d2i_ECDSA_SIG(NULL, &der, (long)len);
    bool ok = s && BN_bn2binpad(ECDSA_SIG_get0_r(s), both, NUMBER) == NUMBER &&
              BN_bn2binpad(ECDSA_SIG_get0_s(s), both + NUMBER, NUMBER) == NUMBER;
    ECDSA_SIG_free(s);
    if (ok)
        acme_base64url_encode(out, mk_str_of((char *)both, sizeof both));
    return ok;
}

static bool sign_es256(struct mk_buf *out, EVP_PKEY *key, mk_str text)
{
    unsigned char der[128];
    size_t len = sizeof der;
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    bool ok = c && EVP_DigestSignInit(c, NULL, EVP_sha256(), NULL, key) > 0 &&
              EVP_DigestSign(c, der, &len, (const unsigned char *)text.p, text.len) > 0;
    EVP_MD_CTX_free(c);
    return ok && append_raw_signature(out, der, len);
}

/* Writes the JWS up to the opening quote of its signature, and writes the text to sign to `signed_part`. */
static void begin_jws(struct mk_json_writer *w, struct mk_buf *signed_part, mk_str header, mk_str payload)
{
    mk_json_begin_object(w);
    write_base64url(mk_json_key(w, "protected"), header);
    write_base64url(mk_json_key(w, "payload"), payload);
    mk_json_begin_string(mk_json_key(w, "signature"));
    acme_base64url_encode(signed_part, header);
    mk_buf_add_char(signed_part, '.');
    acme_base64url_encode(signed_part, payload);
}

static void end_jws(struct mk_json_writer *w)
{
    mk_json_end_string(w);
    mk_json_end_object(w);
}

static bool write_protected_header(struct mk_buf *header, const EVP_PKEY *key, const char *account,
                                   mk_str nonce, const char *url)
{
    struct mk_json_writer w = mk_json_writer_to(header);
    bool ok = true;
    mk_json_begin_object(&w);
    mk_json_cstr(mk_json_key(&w, "alg"), "ES256");
    if (account)
        mk_json_cstr(mk_json_key(&w, "kid"), account);
    else
        ok = write_jwk(mk_json_key(&w, "jwk"), key);
    mk_json_string(mk_json_key(&w, "nonce"), nonce);
    mk_json_cstr(mk_json_key(&w, "url"), url);
    mk_json_end_object(&w);
    return ok && !header->failed;
}

bool acme_jws_sign(struct mk_buf *out, EVP_PKEY *key, const char *account, mk_str nonce, const char *url,
                   mk_str payload)
{
    struct mk_buf header = mk_buf_growing(TEXT_MAX), signed_part = mk_buf_growing(TEXT_MAX);
    struct mk_json_writer w = mk_json_writer_to(out);
    bool ok = write_protected_header(&header, key, account, nonce, url);
    begin_jws(&w, &signed_part, mk_buf_str(&header), payload);
    ok = ok && !signed_part.failed && sign_es256(out, key, mk_buf_str(&signed_part));
    end_jws(&w);
    mk_buf_free(&header);
    mk_buf_free(&signed_part);
    return ok && !out->failed;
}

static void write_eab_header(struct mk_buf *header, const char *id, const char *url)
{
    struct mk_json_writer w = mk_json_writer_to(header);
    mk_json_begin_object(&w);
    mk_json_cstr(mk_json_key(&w, "alg"), "HS256");
    mk_json_cstr(mk_json_key(&w, "kid"), id);
    mk_json_cstr(mk_json_key(&w, "url"), url);
    mk_json_end_object(&w);
}

bool acme_jws_write_eab(struct mk_json_writer *w, const EVP_PKEY *key, const char *id, mk_str secret,
                        const char *url)
{
    struct mk_buf header = mk_buf_growing(TEXT_MAX), signed_part = mk_buf_growing(TEXT_MAX);
    struct mk_buf jwk = mk_buf_growing(TEXT_MAX);
    struct mk_json_writer jwk_writer = mk_json_writer_to(&jwk);
    unsigned char mac[32];
    unsigned len = sizeof mac;
    write_eab_header(&header, id, url);
    bool ok = write_jwk(&jwk_writer, key) && !header.failed;
    begin_jws(w, &signed_part, mk_buf_str(&header), mk_buf_str(&jwk));
    ok = ok && !signed_part.failed && secret.len &&
         HMAC(EVP_sha256(), secret.p, (int)secret.len, (const unsigned char *)signed_part.p, signed_part.len,
              mac, &len);
    if (ok)
        acme_base64url_encode(w->out, mk_str_of((char *)mac, len));
    end_jws(w);
    mk_buf_free(&header);
    mk_buf_free(&signed_part);
    mk_buf_free(&jwk);
    return ok && !w->out->failed;
}

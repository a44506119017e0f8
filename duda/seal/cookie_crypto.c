/* SPDX-License-Identifier: Apache-2.0 */
/* HMAC-SHA-256, and AES-256-GCM with a key and nonce derived from a random salt of 24 bytes for each value,
 * so that one key can encrypt any number of values. */
#include "seal/cookie_crypto.h"

#include <monkey/text.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

enum { SALT = 24, NONCE = 12, TAG = 16, DERIVED = 64, TEXT_MAX = 64 << 10 };

extern MK_API const struct duda_cookie_crypto duda_cookie_crypto;

static bool derive_key(mk_str secret, unsigned char out[DUDA_COOKIE_CRYPTO_KEY])
{
    static const char label[] = "duda key 1";
    unsigned len = 0;
    return HMAC(EVP_sha256(), label, sizeof label, (const unsigned char *)secret.p, secret.len, out, &len) !=
           NULL;
}

/* HMAC of a tag for the use (one character), the purpose and the text. The lengths before the purpose and the
 * text keep different inputs from being confused. */
static bool hmac_with_purpose(const EVP_MD *digest, const unsigned char *key, char use, mk_str purpose,
                              mk_str text, unsigned char *out)
{
    struct mk_buf b = mk_buf_growing(TEXT_MAX * 2);
    unsigned len = 0;
    mk_buf_addf(&b, "%c%zu:%.*s%zu:", (int)use, purpose.len, MK_STR_ARG(purpose), text.len);
    mk_buf_add(&b, text);
    bool good =
        !b.failed && HMAC(digest, key, DUDA_COOKIE_CRYPTO_KEY, (const unsigned char *)b.p, b.len, out, &len);
    mk_buf_free(&b);
    return good;
}

static bool compute_mac(const unsigned char key[DUDA_COOKIE_CRYPTO_KEY], mk_str purpose, mk_str text,
                        unsigned char out[DUDA_COOKIE_CRYPTO_MAC])
{
    return hmac_with_purpose(EVP_sha256(), key, 's', purpose, text, out);
}

/* Returns a cipher context with the key and nonce derived from the salt. */
static EVP_CIPHER_CTX *init_cipher(const unsigned char *key, mk_str purpose, mk_str salt, int seals)
{
    unsigned char derived[DERIVED];
    int len = 0;
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    bool good = c && hmac_with_purpose(EVP_sha512(), key, 'k', purpose, salt, derived) &&
                EVP_CipherInit_ex(c, EVP_aes_256_gcm(), NULL, derived, derived + DUDA_COOKIE_CRYPTO_KEY,
                                  seals) == 1 &&
                EVP_CipherUpdate(c, NULL, &len, (const unsigned char *)purpose.p, (int)purpose.len) == 1;
    OPENSSL_cleanse(derived, sizeof derived);
    if (good)
        return c;
    EVP_CIPHER_CTX_free(c);
    return NULL;
}

static bool encrypt_text(const unsigned char key[DUDA_COOKIE_CRYPTO_KEY], mk_str purpose, mk_str text,
                         struct mk_buf *out)
{
    char salt[SALT];
    int len = 0, last = 0;
    mk_random(salt, sizeof salt);
    if (text.len > TEXT_MAX || purpose.len > TEXT_MAX)
        return false;
    EVP_CIPHER_CTX *c = init_cipher(key, purpose, mk_str_of(salt, SALT), 1);
    mk_buf_add(out, mk_str_of(salt, SALT));
    bool good = c && mk_buf_reserve(out, text.len + TAG);
    unsigned char *to = good ? (unsigned char *)out->p + out->len : NULL;
    good = good && EVP_CipherUpdate(c, to, &len, (const unsigned char *)text.p, (int)text.len) == 1 &&
           EVP_CipherFinal_ex(c, to + len, &last) == 1 &&
           EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, TAG, to + text.len) == 1;
    EVP_CIPHER_CTX_free(c);
    if (good)
        out->len += text.len + TAG;
    return good;
}

static bool decrypt_text(const unsigned char key[DUDA_COOKIE_CRYPTO_KEY], mk_str purpose, mk_str sealed,
                         struct mk_buf *out)
{
    int len = 0, last = 0;
    if (sealed.len < SALT + TAG || sealed.len > TEXT_MAX + SALT + TAG || purpose.len > TEXT_MAX)
        return false;
    mk_str text = mk_str_of(sealed.p + SALT, sealed.len - SALT - TAG);
    unsigned char tag[TAG];
    memcpy(tag, text.p + text.len, TAG);
    EVP_CIPHER_CTX *c = init_cipher(key, purpose, mk_str_first(sealed, SALT), 0);
    bool good = c && mk_buf_reserve(out, text.len + TAG);
    unsigned char *to = good ? (unsigned char *)out->p + out->len : NULL;
    good = good && EVP_CipherUpdate(c, to, &len, (const unsigned char *)text.p, (int)text.len) == 1 &&
           EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, TAG, tag) == 1 &&
           EVP_CipherFinal_ex(c, to + len, &last) == 1;
    EVP_CIPHER_CTX_free(c);
    if (good)
        out->len += text.len;
    return good;
}

const struct duda_cookie_crypto duda_cookie_crypto = {.abi = DUDA_COOKIE_CRYPTO_ABI,
                                                      .key = derive_key,
                                                      .mac = compute_mac,
                                                      .seal = encrypt_text,
                                                      .open = decrypt_text};

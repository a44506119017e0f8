/* SPDX-License-Identifier: Apache-2.0 */
#include "key.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

enum { RSA_BITS = 2048 };

EVP_PKEY *acme_key_new(const char *kind)
{
    return strcmp(kind, "rsa") == 0 ? EVP_RSA_gen(RSA_BITS) : EVP_EC_gen("P-256");
}

bool acme_key_has_type(const EVP_PKEY *key, const char *kind)
{
    char group[32] = "";
    size_t len;
    if (strcmp(kind, "rsa") == 0)
        return EVP_PKEY_is_a(key, "RSA") && EVP_PKEY_get_bits(key) >= RSA_BITS;
    return EVP_PKEY_is_a(key, "EC") && EVP_PKEY_get_group_name(key, group, sizeof group, &len) &&
           strcmp(group, "prime256v1") == 0;
}

bool acme_key_write_pem(const EVP_PKEY *key, struct mk_buf *out)
{
    char *text;
    BIO *b = BIO_new(BIO_s_mem());
    bool ok = b && PEM_write_bio_PrivateKey(b, key, NULL, NULL, 0, NULL, NULL);
    if (ok) {
        long len = BIO_get_mem_data(b, &text);
        mk_buf_add(out, mk_str_of(text, (size_t)len));
    }
    BIO_free(b);
    return ok && !out->failed;
}

/* The helper has no user to prompt for a password. */
static int refuse_password_prompt(char *buf, int size, int writes, void *ctx)
{
    (void)buf, (void)size, (void)writes, (void)ctx;
    return -1;
}

EVP_PKEY *acme_key_read_pem(mk_str pem)
{
    BIO *b = pem.len <= INT_MAX ? BIO_new_mem_buf(pem.p, (int)pem.len) : NULL;
    EVP_PKEY *key = b ? PEM_read_bio_PrivateKey(b, NULL, refuse_password_prompt, NULL) : NULL;
    BIO_free(b);
    return key;
}

const char *acme_key_error(void)
{
    const char *error = ERR_reason_error_string(ERR_peek_last_error());
    ERR_clear_error();
    return error ? error : "unknown reason";
}

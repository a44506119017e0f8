/* SPDX-License-Identifier: Apache-2.0 */
/* Private keys. */
#ifndef ACME_KEY_H
#define ACME_KEY_H

#include <openssl/evp.h>

#include "report.h"

/* `kind` is "ecdsa" (P-256) or "rsa" (2048 bits). Returns NULL if OpenSSL is out of memory. */
EVP_PKEY *acme_key_new(const char *kind);
bool acme_key_has_type(const EVP_PKEY *key, const char *kind);
/* Appends the key as PEM. */
bool acme_key_write_pem(const EVP_PKEY *key, struct mk_buf *out);
/* Reads the first private key in the text. Returns NULL if it is missing or damaged. */
EVP_PKEY *acme_key_read_pem(mk_str pem);

/* Returns OpenSSL's last error and clears it. */
const char *acme_key_error(void);

#endif

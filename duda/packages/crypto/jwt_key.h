/* SPDX-License-Identifier: Apache-2.0 */
/* A key that signs and verifies bytes. This code knows nothing about tokens. */
#ifndef DUDA_CRYPTO_JWT_KEY_H
#define DUDA_CRYPTO_JWT_KEY_H

#include <duda/crypto.h>
#include <openssl/evp.h>

/* The longest signature: RSA with 8192 bits. */
enum { DUDA_JWT_SIGNATURE_MAX = 1024, DUDA_JWT_KEY_ID_MAX = 255 };

/* Creates a public key that owns `pair`. Returns NULL if the key does not fit the algorithm or is weak, or if
 * out of memory. */
struct duda_jwt_key *duda_jwt_key_from_pkey(enum duda_jwt_algorithm algorithm, EVP_PKEY *pair);
/* Returns the value of `alg` in a JWT header. */
mk_str duda_jwt_key_algorithm(const struct duda_jwt_key *key);
mk_str duda_jwt_key_id(const struct duda_jwt_key *key);
/* Returns 0, -EINVAL for a public key, or -ENOMEM. */
int duda_jwt_key_sign(const struct duda_jwt_key *key, mk_str data, uint8_t *out, size_t *len);
/* Returns 0, -EKEYREJECTED if the signature does not match, or -ENOMEM. */
int duda_jwt_key_verify(const struct duda_jwt_key *key, mk_str data, mk_str signature);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSSL's names of our digests. */
#ifndef DUDA_CRYPTO_DIGEST_H
#define DUDA_CRYPTO_DIGEST_H

#include <duda/crypto.h>
#include <openssl/evp.h>

/* NULL for what is none of the enum. */
const EVP_MD *duda_digest_md(enum duda_digest digest);

/* An empty text has a pointer, too: some functions of OpenSSL take NULL for something else. */
static inline const unsigned char *duda_str_bytes(mk_str s)
{
    return (const unsigned char *)(s.len ? s.p : "");
}

#endif

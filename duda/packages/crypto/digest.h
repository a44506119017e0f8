/* SPDX-License-Identifier: Apache-2.0 */
/* Maps our digests to those of OpenSSL. */
#ifndef DUDA_CRYPTO_DIGEST_H
#define DUDA_CRYPTO_DIGEST_H

#include <duda/crypto.h>
#include <openssl/evp.h>

/* Returns NULL for an unknown value. */
const EVP_MD *duda_digest_md(enum duda_digest digest);

/* Returns a pointer that is not NULL even for an absent string: some functions of OpenSSL give NULL a special
 * meaning. */
static inline const unsigned char *duda_str_bytes(mk_str s)
{
    return (const unsigned char *)(s.len ? s.p : "");
}

#endif

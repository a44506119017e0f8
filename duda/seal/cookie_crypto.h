/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of monkey-duda-seal.so, which signs and encrypts cookies with OpenSSL. */
#ifndef DUDA_SEAL_COOKIE_CRYPTO_H
#define DUDA_SEAL_COOKIE_CRYPTO_H

#include <monkey/buf.h>

enum { DUDA_COOKIE_CRYPTO_ABI = 1, DUDA_COOKIE_CRYPTO_KEY = 32, DUDA_COOKIE_CRYPTO_MAC = 32 };

/* The symbol `duda_cookie_crypto` of the object. Every function returns false if out of memory. open() also
 * returns false if the text was not encrypted with this key for this purpose. */
struct duda_cookie_crypto {
    unsigned abi;
    bool (*key)(mk_str secret, unsigned char out[DUDA_COOKIE_CRYPTO_KEY]);
    bool (*mac)(const unsigned char key[DUDA_COOKIE_CRYPTO_KEY], mk_str purpose, mk_str text,
                unsigned char out[DUDA_COOKIE_CRYPTO_MAC]);
    bool (*seal)(const unsigned char key[DUDA_COOKIE_CRYPTO_KEY], mk_str purpose, mk_str text,
                 struct mk_buf *out);
    bool (*open)(const unsigned char key[DUDA_COOKIE_CRYPTO_KEY], mk_str purpose, mk_str sealed,
                 struct mk_buf *out);
};

#endif

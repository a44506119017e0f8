/* SPDX-License-Identifier: Apache-2.0 */
/* What OpenSSL takes for the socket. */
#ifndef MK_TLS_BIO_H
#define MK_TLS_BIO_H

#include "tls/stream.h"

/* Made once for the process; NULL: no memory. */
const BIO_METHOD *mk_tls_bio_method(void);

/* A new one for the stream; its descriptor stays the stream's. */
BIO *mk_tls_bio_new(struct mk_tls *t);

/* Of a connection that OpenSSL hands to a callback. */
struct mk_tls *mk_tls_bio_of(const SSL *ssl);

#endif

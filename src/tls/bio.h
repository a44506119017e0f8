/* SPDX-License-Identifier: Apache-2.0 */
/* The BIO that OpenSSL uses as its socket. */
#ifndef MK_TLS_BIO_H
#define MK_TLS_BIO_H

#include "tls/stream_type.h"

/* Made once for the process; NULL: no memory. */
const BIO_METHOD *mk_tls_bio_method(void);

/* A new one for the stream; its descriptor stays the stream's. */
BIO *mk_tls_bio_new(struct mk_tls *t);

/* Of a connection that OpenSSL hands to a callback. */
struct mk_tls *mk_tls_bio_stream(const SSL *ssl);

#endif

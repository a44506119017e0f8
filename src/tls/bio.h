/* SPDX-License-Identifier: Apache-2.0 */
/* The BIO that OpenSSL uses as its socket. */
#ifndef MK_TLS_BIO_H
#define MK_TLS_BIO_H

#include "tls/stream_type.h"

/* Created once per process; NULL: out of memory. */
const BIO_METHOD *mk_tls_bio_method(void);

/* Creates a BIO for the stream, which keeps its descriptor. */
BIO *mk_tls_bio_new(struct mk_tls *t);

/* The stream of a connection that OpenSSL passes to a callback. */
struct mk_tls *mk_tls_bio_stream(const SSL *ssl);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The BIO that OpenSSL uses as its socket, and the write buffer behind it. */
#ifndef MK_TLS_BIO_H
#define MK_TLS_BIO_H

#include "tls/stream_type.h"

/* Creates a BIO for the stream. The stream keeps ownership of its descriptor. */
BIO *mk_tls_bio_new(struct mk_tls *t);

/* Returns the stream to which `ssl`, the argument of an OpenSSL callback, belongs. */
struct mk_tls *mk_tls_bio_stream(const SSL *ssl);

/* ---- The write buffer ---- */

/* Output to the socket: gathers the records of one call in a buffer shared by all streams of a thread, and
 * sends them in one write. Each stream keeps what the socket does not accept, so that OpenSSL never sees a
 * full socket. */
enum { MK_TLS_WRITE_PLAINTEXT_MAX = 64 * 1024 }; /* data bytes per call */

/* Allocates the buffers of this thread, unless they exist. */
mk_err mk_tls_bio_init_buffers(void);
/* Buffer for MK_TLS_WRITE_PLAINTEXT_MAX bytes of data, valid within one call. */
char *mk_tls_bio_plaintext(void);

/* Sends the gathered records. -EAGAIN: the rest is kept. */
mk_err mk_tls_bio_flush(struct mk_tls *t, bool more);
/* Keeps the gathered records for the next flush. */
mk_err mk_tls_bio_save_unsent(struct mk_tls *t);
/* Discards the gathered records. */
void mk_tls_bio_discard(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Output to the socket: gathers the records of one call in a buffer shared by all streams of a thread, and
 * sends them in one write. Each stream keeps what the socket does not accept, so that OpenSSL never sees a
 * full socket. */
#ifndef MK_TLS_WRITE_BUFFER_H
#define MK_TLS_WRITE_BUFFER_H

#include "tls/stream_type.h"

enum { MK_TLS_WRITE_PLAINTEXT_MAX = 64 * 1024 }; /* data bytes per call */

/* Allocates the buffers of this thread, unless they exist. */
mk_err mk_tls_write_buffer_init(void);
/* Buffer for MK_TLS_WRITE_PLAINTEXT_MAX bytes of data, valid within one call. */
char *mk_tls_write_buffer_plaintext(void);

/* Appends records. False: out of memory, or far too much data is kept already. */
bool mk_tls_write_buffer_append_records(struct mk_tls *t, const char *p, size_t len);
/* Sends the gathered records. -EAGAIN: the rest is kept. */
mk_err mk_tls_write_buffer_flush(struct mk_tls *t, bool more);
/* Keeps the gathered records for the next flush. */
mk_err mk_tls_write_buffer_save_unsent(struct mk_tls *t);
/* Discards the gathered records. */
void mk_tls_write_buffer_discard(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Output to the socket: gathers the records of one call in a buffer that all streams of a thread share,
 * and sends them in one write. Each stream keeps what the socket does not accept, so OpenSSL never sees a
 * full socket. */
#ifndef MK_TLS_WRITE_BUFFER_H
#define MK_TLS_WRITE_BUFFER_H

#include "tls/stream_type.h"

enum { MK_TLS_WRITE_PLAINTEXT_MAX = 64 * 1024 }; /* of content, for one call */

/* Makes the rooms of this thread, if they are not there. */
mk_err mk_tls_write_buffer_init(void);
/* One for MK_TLS_WRITE_PLAINTEXT_MAX bytes of content, to be used within one call. */
char *mk_tls_write_buffer_plaintext(void);

/* False: there is no memory, or far too much is kept already. */
bool mk_tls_write_buffer_append(struct mk_tls *t, const char *p, size_t len);
/* Sends what was gathered. -EAGAIN: some of it is kept. */
mk_err mk_tls_write_buffer_flush(struct mk_tls *t, bool more);
/* Keeps what was gathered, for the next flush. */
mk_err mk_tls_write_buffer_save_unsent(struct mk_tls *t);
/* Forgets it. */
void mk_tls_write_buffer_discard(void);

#endif

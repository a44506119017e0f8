/* SPDX-License-Identifier: Apache-2.0 */
/* Opens encrypted streams, used through their mk_stream_ops. */
#ifndef MK_TLS_STREAM_H
#define MK_TLS_STREAM_H

#include "tls/stream_type.h"

/* Creates a stream that is neither client nor server yet, for the functions that open streams. It does not
 * own its descriptor. NULL: out of memory. */
struct mk_tls *mk_tls_stream_new(int fd, SSL_CTX *ctx);
/* Sets up *s to use the TLS stream, which takes ownership of the descriptor. */
void mk_tls_stream_attach(struct mk_stream *s, struct mk_tls *t);
/* Frees everything except the descriptor. */
void mk_tls_stream_free(struct mk_tls *t);

/* See use_send_file of struct mk_tls_module. */
void mk_tls_stream_set_send_file(ssize_t (*send_file)(struct mk_stream *s, int file_fd, uint64_t offset,
                                                      size_t len));
mk_err mk_tls_stream_open(struct mk_stream *s, int fd, const struct mk_tls_domain *domain, mk_str early);
mk_err mk_tls_stream_handshake(struct mk_stream *s, const char **error);

#endif

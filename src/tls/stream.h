/* SPDX-License-Identifier: Apache-2.0 */
/* Opens encrypted streams; what follows goes through their mk_stream_ops. */
#ifndef MK_TLS_STREAM_H
#define MK_TLS_STREAM_H

#include "tls/stream_type.h"

mk_err mk_tls_stream_open(struct mk_stream *s, int fd, const struct mk_tls_domain *domain, mk_str early);
mk_err mk_tls_stream_handshake(struct mk_stream *s, const char **why);

#endif

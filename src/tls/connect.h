/* SPDX-License-Identifier: Apache-2.0 */
/* Opens TLS streams to servers. */
#ifndef MK_TLS_CONNECT_H
#define MK_TLS_CONNECT_H

#include "tls/stream_type.h"

mk_err mk_tls_connect(struct mk_stream *s, int fd, struct mk_tls_client *client, const char *name,
                      struct mk_tls_session **session, bool http2);

#endif

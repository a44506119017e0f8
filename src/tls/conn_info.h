/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of a TLS connection. */
#ifndef MK_TLS_CONN_INFO_H
#define MK_TLS_CONN_INFO_H

#include "tls/stream_type.h"

void mk_tls_conn_info_get(const struct mk_stream *s, struct mk_tls_conn_info *out);

#endif

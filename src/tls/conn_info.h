/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of a TLS connection. */
#ifndef MK_TLS_CONN_INFO_H
#define MK_TLS_CONN_INFO_H

#include <openssl/x509.h>

#include "base/str.h"
#include "tls/stream_type.h"

void mk_tls_conn_info_get(const struct mk_stream *s, struct mk_tls_conn_info *out);

enum { MK_TLS_CONN_INFO_NAME_MAX = 2048 };

/* Formats the name as in RFC 2253: "CN=name,O=...". Absent if it is too long: a truncated name would be a
 * different name. */
mk_str mk_tls_conn_info_format_name(const X509_NAME *name, char buf[MK_TLS_CONN_INFO_NAME_MAX]);

#endif

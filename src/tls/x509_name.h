/* SPDX-License-Identifier: Apache-2.0 */
/* Names in certificates. */
#ifndef MK_TLS_X509_NAME_H
#define MK_TLS_X509_NAME_H

#include <openssl/x509.h>

#include "base/str.h"

enum { MK_TLS_X509_NAME_MAX = 2048 };

/* Formats the name as in RFC 2253: "CN=name,O=...". Absent if it is too long: a truncated name would be a
 * different name. */
mk_str mk_tls_x509_name_format(const X509_NAME *name, char buf[MK_TLS_X509_NAME_MAX]);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates of the machine's own authority, made by OpenSSL. */
#ifndef MK_TLS_AUTHORITY_H
#define MK_TLS_AUTHORITY_H

#include "net/tls_authority.h"

extern const struct mk_tls_authority_ops mk_authority_ops;

#endif

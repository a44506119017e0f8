/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the local CA with OpenSSL. */
#ifndef MK_TLS_LOCAL_CA_H
#define MK_TLS_LOCAL_CA_H

#include "event/tls_authority.h"

extern const struct mk_tls_local_ca_ops mk_tls_local_ca_ops_openssl;

#endif

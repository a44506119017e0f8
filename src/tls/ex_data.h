/* SPDX-License-Identifier: Apache-2.0 */
/* What is ours in an SSL_CTX of OpenSSL. */
#ifndef MK_TLS_EX_DATA_H
#define MK_TLS_EX_DATA_H

#include "tls/context_type.h"

/* From now on it is the SSL_CTX's, and ends with it. */
bool mk_tls_ex_data_set_context(SSL_CTX *ctx, struct mk_tls_context *c);
/* NULL: it is the bare one. */
struct mk_tls_context *mk_tls_ex_data_get_context(const SSL_CTX *ctx);

#endif

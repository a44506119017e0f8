/* SPDX-License-Identifier: Apache-2.0 */
/* Attaches our context struct to an OpenSSL SSL_CTX. */
#ifndef MK_TLS_EX_DATA_H
#define MK_TLS_EX_DATA_H

#include "tls/context_type.h"

/* The SSL_CTX takes ownership. */
bool mk_tls_ex_data_set_context(SSL_CTX *ctx, struct mk_tls_context *c);
/* Returns our context; NULL: `ctx` is the context without a certificate. */
struct mk_tls_context *mk_tls_ex_data_get_context(const SSL_CTX *ctx);

#endif

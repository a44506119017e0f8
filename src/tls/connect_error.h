/* SPDX-License-Identifier: Apache-2.0 */
/* Explains why a connection to a server failed, and what to do about it. */
#ifndef MK_TLS_CONNECT_ERROR_H
#define MK_TLS_CONNECT_ERROR_H

#include "tls/stream_type.h"

/* Callback for SSL_CTX_set_verify: OpenSSL decides, and the callback records the reason. */
int mk_tls_connect_error_verify_cb(int ok, X509_STORE_CTX *ctx);
/* Callback for SSL_CTX_set_cert_cb: the server requests our certificate. */
int mk_tls_connect_error_cert_cb(SSL *ssl, void *arg);

/* Sets the reason from OpenSSL's last error, unless it is known already. */
MK_COLD void mk_tls_connect_error_explain(struct mk_tls *t);

#endif

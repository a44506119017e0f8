/* SPDX-License-Identifier: Apache-2.0 */
/* Why a connection to a server failed, and what to do about it. */
#ifndef MK_TLS_VERDICT_H
#define MK_TLS_VERDICT_H

#include "tls/stream_type.h"

/* For SSL_CTX_set_verify: OpenSSL decides, this says why. */
int mk_tls_verdict_on_certificate(int ok, X509_STORE_CTX *ctx);
/* For SSL_CTX_set_cert_cb: the server asks for our certificate. */
int mk_tls_verdict_on_request(SSL *ssl, void *arg);

/* Sets why, unless it is known, from what OpenSSL met last. */
MK_COLD void mk_tls_verdict_find(struct mk_tls *t);

#endif

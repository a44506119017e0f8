/* SPDX-License-Identifier: Apache-2.0 */
/* OCSP stapling for our certificates. */
#ifndef MK_TLS_OCSP_STAPLE_H
#define MK_TLS_OCSP_STAPLE_H

#include "tls/context_type.h"

/* Loads the response for the certificate from `file`; NULL: there is none. */
mk_err mk_tls_ocsp_staple_load(struct mk_tls_context *c, X509 *certificate, const char *file,
                               struct mk_tls_settings_error *problem);

/* Copies the response of another context for the same certificate, if any. */
mk_err mk_tls_ocsp_staple_copy(struct mk_tls_context *c, const struct mk_tls_context *from,
                               X509 *certificate);
/* Callback for SSL_CTX_set_tlsext_status_cb. */
int mk_tls_ocsp_staple_status_cb(SSL *ssl, void *arg);

#endif

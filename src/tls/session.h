/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions with servers: each connection resumes the last session, which saves the exchange of certificates
 * and most of the computation. */
#ifndef MK_TLS_SESSION_H
#define MK_TLS_SESSION_H

#include "tls/stream_type.h"

/* Callback for SSL_CTX_sess_set_new_cb. */
int mk_tls_session_new_cb(SSL *ssl, SSL_SESSION *session);
/* Call this when the handshake is complete. */
void mk_tls_session_on_handshake_done(struct mk_tls *t);

/* Call this before the handshake: resumes the caller's last session if that session belongs to the same
 * client and name. */
void mk_tls_session_resume(struct mk_tls *t);
/* Call this when the handshake has failed: discards the session, which may be the cause. */
void mk_tls_session_discard(struct mk_tls *t);
void mk_tls_session_free(struct mk_tls_session *session);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Session tickets, encrypted with keys that all workers share and the master rotates. */
#ifndef MK_TLS_SESSION_TICKET_H
#define MK_TLS_SESSION_TICKET_H

#include <openssl/ssl.h>

/* Callback for SSL_CTX_set_tlsext_ticket_key_evp_cb. */
int mk_tls_session_ticket_key_cb(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
                                 EVP_MAC_CTX *mac, int is_new);
/* Callback for SSL_CTX_set_session_ticket_cb. */
SSL_TICKET_RETURN mk_tls_session_ticket_decrypt_cb(SSL *ssl, SSL_SESSION *session, const unsigned char *name,
                                                   size_t len, SSL_TICKET_STATUS status, void *arg);

#endif

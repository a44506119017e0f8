/* SPDX-License-Identifier: Apache-2.0 */
/* ClientHello processing: selects the host and the protocol. */
#ifndef MK_TLS_CLIENT_HELLO_H
#define MK_TLS_CLIENT_HELLO_H

#include <openssl/ssl.h>

/* Callback for SSL_CTX_set_client_hello_cb: early enough for all settings of the selected host to take
 * effect. */
int mk_tls_client_hello_cb(SSL *ssl, int *alert, void *arg);
/* Callback for SSL_CTX_set_alpn_select_cb. */
int mk_tls_client_hello_alpn_cb(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                                const unsigned char *in, unsigned in_len, void *arg);
/* Callback for SSL_CTX_set_tlsext_servername_callback. */
int mk_tls_client_hello_servername_cb(SSL *ssl, int *alert, void *arg);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Session tickets: sealed with keys that all workers share and the master changes. */
#ifndef MK_TLS_TICKET_H
#define MK_TLS_TICKET_H

#include <openssl/ssl.h>

/* For SSL_CTX_set_tlsext_ticket_key_evp_cb. */
int mk_tls_ticket_on_key(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
                         EVP_MAC_CTX *mac, int is_new);

#endif

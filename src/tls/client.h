/* SPDX-License-Identifier: Apache-2.0 */
/* TLS client settings for the servers of one upstream. */
#ifndef MK_TLS_CLIENT_H
#define MK_TLS_CLIENT_H

#include <openssl/ssl.h>

#include "event/tls.h"

/* The streams of a client need only its SSL_CTX, to which they hold a reference. */
struct mk_tls_client {
    SSL_CTX *ctx;
    X509_STORE *anchors; /* trusted CAs; NULL: certificates are not verified */
    uint64_t number;     /* unique in this process, never reused */
};

mk_err mk_tls_client_new(const struct mk_tls_client_settings *rules, struct mk_tls_client **out,
                         struct mk_tls_settings_error *problem);
void mk_tls_client_free(struct mk_tls_client *client);

#endif

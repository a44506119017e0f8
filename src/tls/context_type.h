/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates and settings of one host for OpenSSL. Lives as long as the last connection that uses it: the
 * memory is owned by its SSL_CTX. */
#ifndef MK_TLS_CONTEXT_TYPE_H
#define MK_TLS_CONTEXT_TYPE_H

#include <openssl/ssl.h>

#include "event/tls.h"

enum { MK_TLS_KEYPAIRS_MAX = 8, MK_TLS_SESSION_S = 2 * 60 * 60 };

/* An OCSP response (DER) for one certificate of the context. */
struct mk_tls_ocsp_staple {
    X509 *certificate;
    unsigned char *response;
    size_t len;
    int64_t until; /* seconds since 1970 */
};

/* A certificate with its key, kept for the next configuration, because the files may be invalid by then. */
struct mk_tls_loaded_keypair {
    char *file; /* certificate file */
    X509 *leaf;
    STACK_OF(X509) * chain;
    EVP_PKEY *key;
};

struct mk_tls_context {
    SSL_CTX *ctx;
    const struct mk_tls_tickets *tickets;
    struct mk_tls_ocsp_staple staples[MK_TLS_KEYPAIRS_MAX];
    size_t n_staples;
    struct mk_tls_loaded_keypair sources[MK_TLS_KEYPAIRS_MAX]; /* each with a different key type */
    size_t n_sources;
    char *challenges;
    const struct mk_tls_on_demand *on_demand; /* NULL: none */
    char *groups;
    bool h2;
    int64_t begins, expires;      /* validity of the certificates: latest notBefore, earliest notAfter */
    unsigned char session_id[32]; /* session ID context: sessions of other contexts are not resumed */
};

#endif

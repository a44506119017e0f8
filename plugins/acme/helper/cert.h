/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates: asking for one, looking at one, and the kind that proves who holds a name (RFC 8737). */
#ifndef ACME_CERT_H
#define ACME_CERT_H

#include "key.h"
#include "plan.h"

/* Appends a signing request (PKCS #10) for all names, as DER. */
bool acme_cert_request(struct mk_buf *out, EVP_PKEY *key, const struct acme_wish *wish);

/* When a certificate is good: seconds since 1970. */
struct acme_life {
    int64_t from, to;
};

/* The text begins with a certificate for the key and all names, and what follows it is whole. */
bool acme_cert_check(mk_str pem, const EVP_PKEY *key, const struct acme_wish *wish, struct acme_life *life,
                     struct acme_fault *f);

/* Appends certificate and key, as PEM, with which a server answers acme-tls/1 for the name. `digest` is the
 * SHA-256 of the key authorization. */
bool acme_cert_answer(struct mk_buf *out, const char *name, const char digest[32]);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Signing requests, checks of certificates, and the certificates that prove control of a name (RFC 8737). */
#ifndef ACME_CERT_H
#define ACME_CERT_H

#include "job.h"
#include "key.h"

/* ---- Names: host names, wildcards and IP addresses ---- */

enum { ACME_NAME_SIZE = 256 };

/* Returns the size of the address, 4 or 16 bytes; 0: the name is a host name. `address` may be NULL. */
size_t acme_name_address(const char *name, unsigned char address[16]);
/* Writes the name that an authority sends as SNI to verify the name by tls-alpn-01: for an address, that of its reverse
 * lookup (RFC 8738, section 6). */
void acme_name_sni(const char *name, char *buf, size_t size);

/* ---- Certificates ---- */

/* Appends a signing request (PKCS #10) for all names, as DER. */
bool acme_cert_write_csr(struct mk_buf *out, EVP_PKEY *key, const struct acme_cert_spec *spec);

/* AKI.SERIAL (RFC 9773, section 4.1) */
enum { ACME_CERT_ID_MAX = 256 };
/* Writes the ID by which authorities know the first certificate in the text; "": it has no such ID. */
void acme_cert_id(mk_str pem, char id[ACME_CERT_ID_MAX]);

/* Validity period of a certificate, in seconds since 1970. */
struct acme_validity {
    int64_t from, to;
};

/* Returns whether the text begins with a certificate for the key and all names, and the rest is undamaged. */
bool acme_cert_check(mk_str pem, const EVP_PKEY *key, const struct acme_cert_spec *spec,
                     struct acme_validity *life, struct acme_error *f);

/* Reads the validity period of the first certificate; zero if there is none. */
void acme_cert_validity(mk_str pem, struct acme_validity *life);

/* Appends, as PEM, the certificate and key that a server presents for the name in an acme-tls/1 handshake.
 * `digest` is the SHA-256 of the key authorization. */
bool acme_cert_write_tls_alpn(struct mk_buf *out, const char *name, const char digest[32]);

#endif

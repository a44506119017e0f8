/* SPDX-License-Identifier: Apache-2.0 */
/* An order (RFC 8555, section 7.4) turns names into a certificate. Its state is saved, so that an
 * interrupted order continues instead of starting over. */
#ifndef ACME_ORDER_H
#define ACME_ORDER_H

#include "cert.h"
#include "client.h"

/* Obtains the certificate and stores it for the server. */
bool acme_order_obtain_cert(struct acme_client *c, const struct acme_cert_spec *spec, struct acme_error *f);

/* Returns when to renew the current certificate, in seconds since 1970. Returns 0 if it is due now, with the
 * reason in f->text, which is empty if there is no certificate. */
int64_t acme_order_renewal_time(const struct acme_job *plan, const struct acme_cert_spec *spec, int64_t now,
                                struct acme_error *f);

/* Returns when the stored certificate expires, in seconds since 1970; 0: there is none. */
int64_t acme_order_expiry(const struct acme_cert_spec *spec);

/* Writes the ID of the stored certificate (acme_cert_id()); "": there is none. */
void acme_order_cert_id(const struct acme_cert_spec *spec, char id[ACME_CERT_ID_MAX]);

#endif

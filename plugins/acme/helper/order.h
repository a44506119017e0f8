/* SPDX-License-Identifier: Apache-2.0 */
/* An order (RFC 8555, section 7.4): from names to a certificate. Its state is saved, so that an
 * interrupted order continues instead of starting over. */
#ifndef ACME_ORDER_H
#define ACME_ORDER_H

#include "cert.h"
#include "client.h"

/* Gets the certificate and stores it for the server. */
bool acme_order_obtain_cert(struct acme_client *c, const struct acme_cert_spec *spec, struct acme_error *f);

/* When to renew the current certificate: seconds since 1970; 0: at once, with the reason in f->text ("":
 * there is no certificate). */
int64_t acme_order_renewal_time(const struct acme_job *plan, const struct acme_cert_spec *spec, int64_t now,
                                struct acme_error *f);

#endif

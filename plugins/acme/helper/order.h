/* SPDX-License-Identifier: Apache-2.0 */
/* An order (RFC 8555, section 7.4): from names to a certificate. What was begun is kept, so that who is
 * interrupted goes on with it instead of asking for another one. */
#ifndef ACME_ORDER_H
#define ACME_ORDER_H

#include "cert.h"
#include "client.h"

/* Gets the certificate and puts it where the server finds it. */
bool acme_order_fulfil(struct acme_client *c, const struct acme_wish *wish, struct acme_fault *f);

/* When the certificate that is there is to be renewed: seconds since 1970; 0: at once, and why that is in
 * f->text ("": there is none). */
int64_t acme_order_due(const struct acme_plan *plan, const struct acme_wish *wish, int64_t now,
                       struct acme_fault *f);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The account at the authority (RFC 8555, section 7.3): created once, and saved with its key. */
#ifndef ACME_ACCOUNT_H
#define ACME_ACCOUNT_H

#include "client.h"

/* Sets the client's key and account URL. */
bool acme_account_open(struct acme_client *c, struct acme_error *f);
/* Call this when the authority no longer knows the account. */
void acme_account_delete_saved(struct acme_client *c);

#endif

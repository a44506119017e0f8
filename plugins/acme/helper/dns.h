/* SPDX-License-Identifier: Apache-2.0 */
/* The DNS records of dns-01 (RFC 8555, section 8.4). A file in the state folder is written before a record is
 * added and removed after the record, so that a later run removes the records of a run that was killed. */
#ifndef ACME_DNS_H
#define ACME_DNS_H

#include "client.h"

/* Adds the record for a challenge of the domain. */
bool acme_dns_present(struct acme_client *c, const char *domain, const char *token, struct acme_error *f);
/* Removes the records that acme_dns_present() has added. Logs failures: the next run tries again. */
void acme_dns_remove_added(struct acme_client *c);
/* Removes the records that earlier runs have left, until one fails, and logs that failure. */
void acme_dns_remove_left(const struct acme_job *job);

#endif

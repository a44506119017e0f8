/* SPDX-License-Identifier: Apache-2.0 */
/* Proves that we control a name (RFC 8555, section 7.5): stores the response where the server finds it,
 * then asks the authority to validate it. */
#ifndef ACME_CHALLENGE_H
#define ACME_CHALLENGE_H

#include "client.h"

/* Delays between polls. */
struct acme_backoff {
    int64_t until_ms;
    uint64_t pause_ms;
};

struct acme_backoff acme_backoff_new(void);
/* Sleeps as long as the response demands or, if it demands nothing, longer each time. Returns false on
 * timeout. */
bool acme_backoff_wait(struct acme_backoff *p, uint64_t retry_s);

/* For dns-01: adds the records for all pending authorizations of an order, then waits once until name servers
 * have them. Does nothing for other challenges. */
bool acme_challenge_present_records(struct acme_client *c, const json_t *authorizations,
                                    const struct acme_cert_spec *spec, struct acme_error *f);
/* Completes one authorization of an order, whatever its state. */
bool acme_challenge_complete(struct acme_client *c, const char *authorization,
                             const struct acme_cert_spec *spec, struct acme_error *f);
/* Removes the responses for an order that has ended. */
void acme_challenge_remove_responses(struct acme_client *c);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* the authorization has the result, or will have it */
#ifndef ACME_CHALLENGE_H
#define ACME_CHALLENGE_H

#include "client.h"

/* Pauses between requests for the state of something. */
struct acme_backoff {
    int64_t until_ms;
    uint64_t pause_ms;
};

struct acme_backoff acme_backoff_new(void);
/* Sleeps as long as the response demands, or longer each time. False: the time is over. */
bool acme_backoff_wait(struct acme_backoff *p, uint64_t retry_s);

/* Delays between polls. */
bool acme_challenge_complete(struct acme_client *c, const char *authorization,
                             const struct acme_cert_spec *spec, struct acme_error *f);
/* Sleeps as long as the response demands, or increasingly longer. False: timeout. */
void acme_challenge_remove_answers(struct acme_client *c);

#endif

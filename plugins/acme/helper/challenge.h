/* SPDX-License-Identifier: Apache-2.0 */
/* Proving that a name is ours (RFC 8555, section 7.5): the answer is laid where the server finds it, and the
 * authority told to come and look. */
#ifndef ACME_CHALLENGE_H
#define ACME_CHALLENGE_H

#include "client.h"

/* Pauses between questions about what is under way. */
struct acme_patience {
    int64_t until_ms;
    uint64_t pause_ms;
};

struct acme_patience acme_patience_new(void);
/* Sleeps as long as the answer wants, or longer each time. False: it was long enough. */
bool acme_patience_wait(struct acme_patience *p, uint64_t retry_s);

/* Fulfils one authorization of an order, whatever its state. */
bool acme_challenge_pass(struct acme_client *c, const char *authorization, const struct acme_wish *wish,
                         struct acme_fault *f);
/* Takes back the answers that were laid out for an order that is over. */
void acme_challenge_clean(struct acme_client *c);

#endif

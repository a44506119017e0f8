/* SPDX-License-Identifier: Apache-2.0 */
/* Retries failures after pauses that double, up to a day. Saves them, so that a restart does not shorten
 * them; a changed configuration is tried at once. */
#ifndef ACME_RETRY_H
#define ACME_RETRY_H

#include "plan.h"

/* Earliest time of the next attempt: seconds since 1970; 0: at any time. `wish` NULL: for the account, and so
 * for all certificates. */
int64_t acme_retry_time(const struct acme_plan *p, const struct acme_wish *wish, int64_t now);
/* Saves and reports a failure. Returns the time of the next attempt. */
int64_t acme_retry_note(const struct acme_plan *p, const struct acme_wish *wish, int64_t now,
                        const struct acme_fault *why);
void acme_retry_forget(const struct acme_wish *wish);

#endif

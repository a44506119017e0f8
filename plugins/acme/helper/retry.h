/* SPDX-License-Identifier: Apache-2.0 */
/* What has failed is tried again after pauses that double, up to a day. They are kept, so that a restart does
 * not make them shorter; what is configured anew is tried at once. */
#ifndef ACME_RETRY_H
#define ACME_RETRY_H

#include "plan.h"

/* When there may be another attempt: seconds since 1970; 0: at any time. `wish` NULL: about the account, and
 * so about all of them. */
int64_t acme_retry_time(const struct acme_plan *p, const struct acme_wish *wish, int64_t now);
/* Notes a failure, tells of it, and answers when to try again. */
int64_t acme_retry_note(const struct acme_plan *p, const struct acme_wish *wish, int64_t now,
                        const struct acme_fault *why);
void acme_retry_forget(const struct acme_wish *wish);

#endif

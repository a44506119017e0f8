/* SPDX-License-Identifier: Apache-2.0 */
/* Retries failures after delays that double, up to a day. Saves them, so that a restart does not shorten
 * them; a changed configuration is tried at once. */
#ifndef ACME_RETRY_H
#define ACME_RETRY_H

#include "job.h"

/* Earliest time of the next attempt: seconds since 1970; 0: at any time. `wish` NULL: for the account, and
 * thus for all certificates. */
int64_t acme_retry_time(const struct acme_job *p, const struct acme_cert_spec *spec, int64_t now);
/* Saves and reports a failure. Returns the time of the next attempt. */
int64_t acme_retry_record_failure(const struct acme_job *p, const struct acme_cert_spec *spec, int64_t now,
                                  const struct acme_error *error);
void acme_retry_clear(const struct acme_cert_spec *spec);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Retries after failures, with delays that double up to a day. Saves the delays, so that a restart does not
 * shorten them. After a change to the configuration, the next attempt is due at once. */
#ifndef ACME_RETRY_H
#define ACME_RETRY_H

#include "job.h"

/* Returns the earliest time of the next attempt, in seconds since 1970; 0: at any time. `spec` NULL refers to
 * the account, and thus to all certificates. */
int64_t acme_retry_time(const struct acme_job *p, const struct acme_cert_spec *spec, int64_t now);
/* Logs that a certificate, or all (`spec` NULL), must wait for the next attempt. */
void acme_retry_log_wait(const struct acme_job *p, const struct acme_cert_spec *spec, int64_t seconds);
/* Saves and reports a failure. Returns the time of the next attempt. */
int64_t acme_retry_record_failure(const struct acme_job *p, const struct acme_cert_spec *spec, int64_t now,
                                  const struct acme_error *error);
void acme_retry_clear(const struct acme_cert_spec *spec);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the program that adds and removes DNS records (`DNSHook`), without a shell, and limits its time and
 * output. */
#ifndef ACME_HOOK_H
#define ACME_HOOK_H

#include "job.h"

/* Runs `PROGRAM ARGUMENT... ACTION RECORD VALUE` and waits for its end. `action` is "present" or "cleanup";
 * RECORD is `_acme-challenge.DOMAIN.`. Returns whether it exited with status 0. */
bool acme_hook_run(const struct acme_job *job, const char *action, const char *domain, const char *value,
                   struct acme_error *f);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the program that gets certificates whenever it has requested that, and writes its messages to the
 * error log. It runs beside one worker. */
#ifndef ACME_RUNNER_H
#define ACME_RUNNER_H

#include "settings.h"

/* Lives as long as the configuration. */
struct acme_job {
    const struct acme_settings *settings;
    const struct acme_wish *wishes;
    const char *program;
};

struct acme_runner;

/* NULL: out of memory. The first run is soon. */
struct acme_runner *acme_runner_open(struct mk_worker *worker, const struct acme_job *job) MK_API_MUST_USE;
/* Ends a running helper. NULL is fine. */
void acme_runner_close(struct acme_runner *r);

/* The input of the program: JSON. */
void acme_job_write(const struct acme_job *job, struct mk_buf *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Starts, at the requested times, the program that obtains certificates, and logs its messages. Only one
 * worker does so. */
#ifndef ACME_HELPER_PROCESS_H
#define ACME_HELPER_PROCESS_H

#include "settings.h"

/* Lives as long as the configuration. */
struct acme_helper_job {
    const struct acme_settings *settings;
    const struct acme_cert_spec *specs;
    const char *program;
};

struct acme_helper_process;

/* Schedules the first run, which starts within a second. Returns NULL if out of memory. */
struct acme_helper_process *acme_helper_process_start(struct mk_worker *worker,
                                                      const struct acme_helper_job *job) MK_API_MUST_USE;
/* Terminates a running helper. Accepts NULL. */
void acme_helper_process_stop(struct acme_helper_process *r);

/* Writes the input of the helper, as JSON. */
void acme_helper_job_write_json(const struct acme_helper_job *job, struct mk_buf *out);

#endif

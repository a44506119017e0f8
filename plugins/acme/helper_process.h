/* SPDX-License-Identifier: Apache-2.0 */
/* Starts, at the requested times, the program that obtains certificates. Only one worker does so. */
#ifndef ACME_HELPER_PROCESS_H
#define ACME_HELPER_PROCESS_H

#include "helper_run.h"

struct acme_helper_process;

/* Schedules the first run, which starts within a second. on_due() gets the names of certificates on demand that are due for
 * renewal; it may be NULL. Returns NULL if out of memory. */
struct acme_helper_process *acme_helper_process_start(struct mk_worker *worker,
                                                      const struct acme_helper_job *job,
                                                      void (*on_due)(void *ctx, mk_str name),
                                                      void *ctx) MK_API_MUST_USE;
/* The next run starts within this time, at least a second. */
void acme_helper_process_run_within(struct acme_helper_process *r, uint64_t seconds);
/* Terminates a running helper. Accepts NULL. */
void acme_helper_process_stop(struct acme_helper_process *r);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Starts monkey-otlp, restarts it when it exits, and logs its messages. Only one worker does so. */
#ifndef OTLP_HELPER_PROCESS_H
#define OTLP_HELPER_PROCESS_H

#include "settings.h"

/* Metrics of the table `otlp`. */
enum { OTLP_STAT_EXPORTED, OTLP_STAT_LOST };

/* Lives as long as the configuration. */
struct otlp_helper_job {
    const struct otlp_settings *settings;
    const char *program;
    int read_fd; /* read end of the pipe with records */
};

struct otlp_helper_process;

/* What the helper is started with: no arguments, and some of these variables. For mk_config_allow_program(). */
extern const char *const otlp_helper_arguments[], *const otlp_helper_variables[];

/* Schedules the start, within a second. `cells` may be NULL. Returns NULL if out of memory. */
struct otlp_helper_process *otlp_helper_process_start(struct mk_worker *worker,
                                                      const struct otlp_helper_job *job,
                                                      uint64_t *cells) MK_API_MUST_USE;
/* Tells the helper to export what it has, and then to exit; the worker stays until then. Accepts NULL. */
void otlp_helper_process_drain(struct otlp_helper_process *h);
/* Ends the helper, which gets a second to export what it has. Accepts NULL. */
void otlp_helper_process_stop(struct otlp_helper_process *h);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* One run of the program that obtains certificates, whose messages go to the error log. */
#ifndef ACME_HELPER_RUN_H
#define ACME_HELPER_RUN_H

#include "settings.h"

enum { ACME_VARIABLES_MAX = 11 };

/* Lives as long as the configuration. */
struct acme_helper_job {
    const struct acme_settings *settings;
    const struct acme_cert_spec *specs;
    const struct acme_cert_spec
        *on_demand;     /* how to obtain certificates on demand, which the job is about; NULL: it is about
                                             * `specs` */
    const char *folder; /* working folder: the state folder, or its part for on_demand */
    const char *program;
    const char *hook; /* the path of DNSHook; NULL: none */
    /* The variables of the helper: NAME=VALUE, or NAME of a variable of the server. Ended by NULL. */
    const char **variables;
};

/* Sets job->variables. The program of DNSHook and its environment are among them, and not in the input of the helper: the
 * server allows workers only these variables, so that a compromised worker cannot choose another program. Returns false if out
 * of memory. */
bool acme_helper_job_set_variables(struct mk_config *config, struct acme_helper_job *job);

/* Reports of the program that are not messages for the log. */
enum acme_helper_report {
    ACME_HELPER_NEXT = 'N',    /* seconds until the next run */
    ACME_HELPER_ISSUED = 'C',  /* a certificate has been stored */
    ACME_HELPER_DUE = 'R',     /* the name of a certificate on demand that is due for renewal */
    ACME_HELPER_DELAYED = 'F', /* a message about the delay after a failure */
};

struct acme_helper_run;

/* Starts the program. `name`: certify this name on demand; absent: the whole job. on_end() gets the status of waitpid(2), or a
 * negative errno value; the run is freed when it returns. NULL: the program cannot be started. */
struct acme_helper_run *
acme_helper_run_start(struct mk_worker *worker, const struct acme_helper_job *job, mk_str name,
                      void (*on_report)(void *ctx, enum acme_helper_report report, mk_str text),
                      void (*on_end)(void *ctx, int status), void *ctx) MK_API_MUST_USE;
/* Kills the program because it takes too long; on_end() follows. */
void acme_helper_run_time_out(struct acme_helper_run *r);
/* Kills the program and frees the run; on_end() is not called. Accepts NULL. */
void acme_helper_run_free(struct acme_helper_run *r);

/* Writes the input of the program, as JSON. */
void acme_helper_job_write_json(const struct acme_helper_job *job, mk_str name, struct mk_buf *out);

#endif

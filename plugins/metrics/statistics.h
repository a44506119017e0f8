/* SPDX-License-Identifier: Apache-2.0 */
/* Prints all statistics of the server's registry, whichever plugin counts them, and the certificates of
 * hosts. */
#ifndef METRICS_STATISTICS_H
#define METRICS_STATISTICS_H

#include <monkey/json.h>
#include <monkey/stats.h>
#include <monkey/worker.h>

/* Prints the families for Prometheus: those of the worker's server and of others
 * (mk_worker_statistics_at()). */
void metrics_statistics_print(const struct mk_worker *w, struct mk_buf *out);
/* Prints, for each table with columns, its name and a list of objects. */
void metrics_statistics_print_json(const struct mk_worker *worker, struct mk_json_writer *w);

/* ---- Certificates of hosts that need attention ---- */

enum certificate_problem {
    CERTIFICATE_EXPIRED,
    CERTIFICATE_EARLY, /* the certificate is not yet valid */
    CERTIFICATE_KEPT,  /* the previous certificate stays in use, because the new files are invalid */
    CERTIFICATE_PROBLEMS,
};

struct certificates {
    uint64_t n[CERTIFICATE_PROBLEMS]; /* number of hosts with each problem */
    int64_t first_end;                /* earliest expiry in seconds since 1970; 0: no certificates */
};

/* Counts at the current time, because certificates expire while the server runs. */
void metrics_certificates_count(const struct mk_worker *w, struct certificates *out);

#endif

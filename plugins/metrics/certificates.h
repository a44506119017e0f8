/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the certificates of hosts that need attention. */
#ifndef METRICS_CERTIFICATES_H
#define METRICS_CERTIFICATES_H

#include <monkey/host.h>
#include <monkey/tls.h>
#include <monkey/worker.h>

enum certificate_problem {
    CERTIFICATE_EXPIRED,
    CERTIFICATE_EARLY, /* the certificate is not yet valid */
    CERTIFICATE_KEPT,  /* the previous certificate stays in use, because its new files are unusable */
    CERTIFICATE_PROBLEMS,
};

struct certificates {
    uint64_t n[CERTIFICATE_PROBLEMS]; /* number of hosts with each problem */
    int64_t first_end;                /* earliest expiry in seconds since 1970; 0: no certificates */
};

/* Counts at the current time, because certificates expire while the server runs. */
void metrics_certificates_count(const struct mk_worker *w, struct certificates *out);

#endif

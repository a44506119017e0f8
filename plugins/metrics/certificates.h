/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates of hosts that need attention. */
#ifndef METRICS_CERTIFICATES_H
#define METRICS_CERTIFICATES_H

#include <monkey/host.h>
#include <monkey/tls.h>
#include <monkey/worker.h>

enum certificate_problem {
    CERTIFICATE_EXPIRED,
    CERTIFICATE_EARLY, /* not yet valid */
    CERTIFICATE_KEPT,  /* its new files cannot be used */
    CERTIFICATE_PROBLEMS,
};

struct certificates {
    uint64_t n[CERTIFICATE_PROBLEMS]; /* hosts */
    int64_t first_end;                /* seconds since 1970; 0: no host has one */
};

/* At the current time: certificates expire while the server runs. */
void metrics_certificates_count(const struct mk_worker *w, struct certificates *out);

#endif

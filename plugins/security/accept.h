/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SECURITY_ACCEPT_H
#define SECURITY_ACCEPT_H

#include "policy.h"

/* Worker state. */
struct security_worker {
    uint64_t complained_ms; /* time of the last complaint */
    bool complained;        /* has complained before */
    unsigned n_complaints;  /* since then */
};

enum mk_verdict security_accept_check(struct mk_conn *c, const struct security *all,
                                      struct security_worker *w);

/* Logs a fault of a trusted proxy, rate-limited. `w` may be NULL. */
void security_log_proxy_fault(struct security_worker *w, struct mk_worker *worker, const struct mk_addr *peer,
                              const char *what);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SECURITY_ACCEPT_H
#define SECURITY_ACCEPT_H

#include "policy.h"

/* The state of a worker. */
struct security_worker {
    uint64_t logged_ms; /* time of the last log message */
    bool has_logged;    /* the worker has logged a fault before */
    unsigned n_faults;  /* number of faults since the last message */
};

enum mk_verdict security_accept_check(struct mk_conn *c, const struct security *all,
                                      struct security_worker *w);

/* Logs a fault of a trusted proxy, with a rate limit. `w` may be NULL. */
void security_log_proxy_fault(struct security_worker *w, struct mk_worker *worker, const struct mk_addr *peer,
                              const char *what);

#endif

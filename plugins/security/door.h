/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SECURITY_DOOR_H
#define SECURITY_DOOR_H

#include "place.h"

/* What a worker keeps. */
struct security_worker {
    uint64_t complained_ms; /* when it did last */
    bool complained;        /* it did at all */
    unsigned n_complaints;  /* since then */
};

enum mk_verdict security_door(struct mk_conn *c, const struct security *all, struct security_worker *w);

/* Logs a fault of a trusted proxy, rate-limited. `w` may be NULL. */
void security_complain(struct security_worker *w, struct mk_worker *worker, const struct mk_addr *peer,
                       const char *what);

#endif

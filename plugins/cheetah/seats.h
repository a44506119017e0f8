/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the sessions of all workers in shared memory. */
#ifndef CHEETAH_SEATS_H
#define CHEETAH_SEATS_H

#include <monkey/worker.h>
#include <stdatomic.h>

#include "settings.h"

struct cheetah_seats {
    atomic_int_fast64_t process[CHEETAH_SEATS]; /* the process that owns the session; 0: free */
};

/* One of the first `n`; -1: all are in use. */
int cheetah_seat_take(struct cheetah_seats *seats, unsigned n, const struct mk_worker *w);
void cheetah_seat_leave(struct cheetah_seats *seats, int seat);
unsigned cheetah_seats_count(struct cheetah_seats *seats, const struct mk_worker *w);

#endif

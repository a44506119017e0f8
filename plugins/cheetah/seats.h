/* SPDX-License-Identifier: Apache-2.0 */
/* How many sessions there are, in all workers together, in memory that they share. */
#ifndef SHELL_SEATS_H
#define SHELL_SEATS_H

#include <monkey/worker.h>
#include <stdatomic.h>

#include "settings.h"

struct shell_seats {
    atomic_int_fast64_t process[SHELL_SEATS]; /* whose session it is; 0: nobody's */
};

/* One of the first `n`; -1 when all are taken. */
int shell_seat_take(struct shell_seats *seats, unsigned n, const struct mk_worker *w);
void shell_seat_leave(struct shell_seats *seats, int seat);
unsigned shell_seats_count(struct shell_seats *seats, const struct mk_worker *w);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the sessions of all workers in shared memory. */
#ifndef CHEETAH_SESSION_SLOTS_H
#define CHEETAH_SESSION_SLOTS_H

#include <monkey/worker.h>
#include <stdatomic.h>

#include "settings.h"

struct cheetah_session_slots {
    atomic_int_fast64_t process[CHEETAH_SESSION_SLOTS_MAX]; /* the process that owns the session; 0: free */
};

/* Acquires one of the first `n` slots. Returns -1 if all are in use. */
int cheetah_session_slot_acquire(struct cheetah_session_slots *slots, unsigned n, const struct mk_worker *w);
void cheetah_session_slot_release(struct cheetah_session_slots *slots, int slot);
unsigned cheetah_session_slots_n_used(struct cheetah_session_slots *slots, const struct mk_worker *w);

#endif

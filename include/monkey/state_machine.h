/* SPDX-License-Identifier: Apache-2.0 */
/* Table-driven state machines. A constant table names the states of a machine and the allowed
 * transitions; only mk_state_move() changes a state. A transition that is not in the table is a bug: the
 * process aborts, and in debug builds the message lists the last transitions. Threads may use different
 * objects at the same time; each object belongs to one thread. */
#ifndef MONKEY_STATE_MACHINE_H
#define MONKEY_STATE_MACHINE_H

#include <monkey/api.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Debug builds (without NDEBUG) check the invariant before and after each transition, and record the last
 * transitions of each thread. */
#ifdef NDEBUG
#define MK_STATE_CHECKS 0
#else
#define MK_STATE_CHECKS 1
#endif

/** The bit of a successor state, for MK_STATE_ROW(). */
#define MK_STATE_TO(state) (1u << (state))

/** The maximum number of states of a machine. */
enum { MK_STATES_MAX = 16 };

/** The state table, with rows written by MK_STATE_ROW(). */
struct mk_state_table {
    /** Indexed by state: bit mask of MK_STATE_TO() of each successor; 0: final state. */
    uint16_t next[MK_STATES_MAX];
    char names[MK_STATES_MAX][14]; /**< for messages; NUL-terminated */
};

/** A row of the table: a state, its name of up to 13 characters, and the bitwise OR of MK_STATE_TO() of its
 * successors. */
#define MK_STATE_ROW(state, name, to) .next[state] = (to), .names[state] = (name)

/** A machine: a constant shared by all objects of a type. */
struct mk_state_machine {
    const char *name;                    /**< for messages, such as "connection" */
    const struct mk_state_table *states; /**< indexed by state, an enum that starts at 0 */
    unsigned n_states;
    /** Checks the invariant of the owner before and after each transition. Returns the violated
     * condition for the message, or NULL if the invariant holds. NULL: no invariant. */
    const char *(*invariant)(const void *owner);
};

/** The state of an object, in one byte. Only mk_state_init() and mk_state_move() write it. A zeroed struct
 * has state 0. */
struct mk_state {
    uint8_t current; /**< read-only */
};

/** Aborts the process: the table has no such transition. */
MK_API void mk_state_abort_invalid_move(const struct mk_state *s, const struct mk_state_machine *machine,
                                        unsigned to) __attribute__((noreturn, cold));
/** Debug builds: records the initial state. */
MK_API void mk_state_record_init(const struct mk_state *s, const struct mk_state_machine *machine,
                                 unsigned first);
/** Debug builds: records a transition. */
MK_API void mk_state_record_move(const struct mk_state *s, const struct mk_state_machine *machine,
                                 unsigned to);
/** Debug builds: aborts the process if the invariant is violated. */
MK_API void mk_state_check_invariant(const struct mk_state *s, const struct mk_state_machine *machine,
                                     const void *owner);

/** Sets the initial state. */
static inline void mk_state_init(struct mk_state *s, const struct mk_state_machine *machine, unsigned first)
{
    if (MK_STATE_CHECKS)
        mk_state_record_init(s, machine, first);
    s->current = MK_API_CAST(uint8_t, first);
}

/** Does the table allow the transition? */
static inline bool mk_state_can_move(const struct mk_state *s, const struct mk_state_machine *machine,
                                     unsigned to)
{
    return machine->states->next[s->current] >> to & 1;
}

/** Changes the state. The invariant check receives `owner`. */
static inline void mk_state_move(struct mk_state *s, const struct mk_state_machine *machine,
                                 const void *owner, unsigned to)
{
    if (MK_STATE_CHECKS)
        mk_state_check_invariant(s, machine, owner);
    if (!mk_state_can_move(s, machine, to))
        mk_state_abort_invalid_move(s, machine, to);
    if (MK_STATE_CHECKS)
        mk_state_record_move(s, machine, to);
    s->current = MK_API_CAST(uint8_t, to);
    if (MK_STATE_CHECKS)
        mk_state_check_invariant(s, machine, owner);
}

#ifdef __cplusplus
}
#endif

#endif

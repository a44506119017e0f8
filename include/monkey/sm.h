/* SPDX-License-Identifier: Apache-2.0 */
/* State machines by table. A constant table names the states of a machine and the states that may follow each of
 * them; mk_sm_move() is the only function that changes a state. A move that the table does not allow is a bug:
 * the process ends, and in debug builds the message lists the last moves. From any thread; a machine belongs to one. */
#ifndef MONKEY_SM_H
#define MONKEY_SM_H

#include <monkey/api.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Debug builds (without NDEBUG) check the invariant around each move, and keep the last moves of each thread. */
#ifdef NDEBUG
#define MK_SM_CHECKS 0
#else
#define MK_SM_CHECKS 1
#endif

/** This state may follow. */
#define MK_SM_TO(state) (1u << (state))

/** States of a machine at most. */
enum { MK_SM_STATES_MAX = 16 };

/** The table: MK_SM_STATE() makes its lines. */
struct mk_sm_states {
    uint16_t
        next[MK_SM_STATES_MAX]; /**< by state: MK_SM_TO() of each one that may follow; 0: it is the last */
    char names[MK_SM_STATES_MAX][14]; /**< for messages; end with a NUL */
};

/** A line of the table: a state, its name of up to 13 characters, and MK_SM_TO() of each state that may follow. */
#define MK_SM_STATE(state, name, to) .next[state] = (to), .names[state] = (name)

/** A machine: constant, one for all objects of a kind. */
struct mk_sm_machine {
    const char *name;                  /**< for messages, such as "connection" */
    const struct mk_sm_states *states; /**< by state: an enum that begins with 0 */
    unsigned n_states;
    /** What the owner of a state must keep in that state, before and after a move: the condition that is broken, for
     * the message; NULL, as a function or as its answer: none. */
    const char *(*broken)(const void *owner);
};

/** The state of an object: one byte. mk_sm_init() and mk_sm_move() write `is`, and nothing else does; a struct of
 * zeros is in state 0. */
struct mk_sm {
    uint8_t is; /**< to be read */
};

/** Ends the process: the table has no move to that state. */
MK_API void mk_sm_fail(const struct mk_sm *sm, const struct mk_sm_machine *machine, unsigned to)
    __attribute__((noreturn, cold));
/** Debug builds: keeps that the object begins in that state. */
MK_API void mk_sm_begin(const struct mk_sm *sm, const struct mk_sm_machine *machine, unsigned first);
/** Debug builds: keeps a move. */
MK_API void mk_sm_trace(const struct mk_sm *sm, const struct mk_sm_machine *machine, unsigned to);
/** Debug builds: ends the process if the invariant does not hold. */
MK_API void mk_sm_check(const struct mk_sm *sm, const struct mk_sm_machine *machine, const void *owner);

/** Begins in that state. */
static inline void mk_sm_init(struct mk_sm *sm, const struct mk_sm_machine *machine, unsigned first)
{
    if (MK_SM_CHECKS)
        mk_sm_begin(sm, machine, first);
    sm->is = MK_API_CAST(uint8_t, first);
}

/** Does the table allow the move? */
static inline bool mk_sm_may(const struct mk_sm *sm, const struct mk_sm_machine *machine, unsigned to)
{
    return machine->states->next[sm->is] >> to & 1;
}

/** Changes the state. `owner` is handed to the invariant. */
static inline void mk_sm_move(struct mk_sm *sm, const struct mk_sm_machine *machine, const void *owner,
                              unsigned to)
{
    if (MK_SM_CHECKS)
        mk_sm_check(sm, machine, owner);
    if (!mk_sm_may(sm, machine, to))
        mk_sm_fail(sm, machine, to);
    if (MK_SM_CHECKS)
        mk_sm_trace(sm, machine, to);
    sm->is = MK_API_CAST(uint8_t, to);
    if (MK_SM_CHECKS)
        mk_sm_check(sm, machine, owner);
}

#ifdef __cplusplus
}
#endif

#endif

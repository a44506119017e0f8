/* SPDX-License-Identifier: Apache-2.0 */
#include <monkey/state_machine.h>

#include "base/assert.h"
#include "base/buf.h"

enum { KEPT = MK_STATE_CHECKS ? 256 : 1, SHOWN = 16 };

/* Last transitions of all state machines in this thread: the latest is at `(n_moves - 1) % KEPT`. */
static _Thread_local struct recorded_move {
    const struct mk_state *s;
    const struct mk_state_machine *machine;
    unsigned to;
    bool is_first;
} moves[KEPT];
static _Thread_local unsigned n_moves;

static void record_move(struct recorded_move m)
{
    moves[n_moves++ % KEPT] = m;
}

void mk_state_record_init(const struct mk_state *s, const struct mk_state_machine *machine, unsigned first)
{
    record_move((struct recorded_move){s, machine, first, true});
}

void mk_state_record_move(const struct mk_state *s, const struct mk_state_machine *machine, unsigned to)
{
    record_move((struct recorded_move){s, machine, to, false});
}

static const char *state_name(const struct mk_state_machine *machine, unsigned state)
{
    return state < machine->n_states ? machine->states->names[state] : "?";
}

/* Appends the last states of the object, oldest first. */
static void append_moves(struct mk_buf *out, const struct mk_state *s, const struct mk_state_machine *machine)
{
    const char *names[SHOWN];
    unsigned n = 0, all = n_moves < KEPT ? n_moves : KEPT;
    bool is_first = false; /* earlier transitions belong to another object at the same address */
    for (unsigned i = 1; i <= all && n < SHOWN && !is_first; i++) {
        const struct recorded_move *m = &moves[(n_moves - i) % KEPT];
        if (m->s != s || m->machine != machine)
            continue;
        names[n++] = state_name(machine, m->to);
        is_first = m->is_first;
    }
    while (n)
        mk_buf_addf(out, " %s", names[--n]);
}

static _Noreturn void abort_with_moves(const struct mk_state *s, const struct mk_state_machine *machine,
                                       struct mk_buf *message)
{
    mk_buf_addf(message, "; last states:");
    append_moves(message, s, machine);
    mk_buf_add(message, mk_str_of("\0", 1));
    mk_platform_assert_failed(message->failed ? machine->name : message->p, __FILE__, __LINE__);
}

void mk_state_abort_invalid_move(const struct mk_state *s, const struct mk_state_machine *machine,
                                 unsigned to)
{
    char buf[512];
    struct mk_buf message = mk_buf_fixed(buf, sizeof buf);
    mk_buf_addf(&message, "%s: no transition from state \"%s\" to \"%s\"", machine->name,
                state_name(machine, s->current), state_name(machine, to));
    abort_with_moves(s, machine, &message);
}

void mk_state_check_invariant(const struct mk_state *s, const struct mk_state_machine *machine,
                              const void *owner)
{
    char buf[512];
    const char *violated = s->current >= machine->n_states ? "its state is valid" : NULL;
    if (!violated && machine->invariant)
        violated = machine->invariant(owner);
    if (!violated)
        return;
    struct mk_buf message = mk_buf_fixed(buf, sizeof buf);
    mk_buf_addf(&message, "%s in state \"%s\": %s", machine->name, state_name(machine, s->current), violated);
    abort_with_moves(s, machine, &message);
}

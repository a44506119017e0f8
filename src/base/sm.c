/* SPDX-License-Identifier: Apache-2.0 */
#include <monkey/sm.h>
#include <stdio.h>

#include "base/assert.h"
#include "base/buf.h"

enum { KEPT = MK_SM_CHECKS ? 256 : 1, SHOWN = 16 };

/* The last moves of all machines of this thread: the latest is at `n_moves - 1`. */
static _Thread_local struct move {
    const struct mk_sm *sm;
    const struct mk_sm_machine *machine;
    unsigned to;
    bool is_first;
} moves[KEPT];
static _Thread_local unsigned n_moves;

static void keep(struct move m)
{
    moves[n_moves++ % KEPT] = m;
}

void mk_sm_begin(const struct mk_sm *sm, const struct mk_sm_machine *machine, unsigned first)
{
    keep((struct move){sm, machine, first, true});
}

void mk_sm_trace(const struct mk_sm *sm, const struct mk_sm_machine *machine, unsigned to)
{
    keep((struct move){sm, machine, to, false});
}

static const char *name_of(const struct mk_sm_machine *machine, unsigned state)
{
    return state < machine->n_states ? machine->states->names[state] : "?";
}

/* The last moves of the object, the oldest first. */
static void add_moves(struct mk_buf *out, const struct mk_sm *sm, const struct mk_sm_machine *machine)
{
    const char *names[SHOWN];
    unsigned n = 0, all = n_moves < KEPT ? n_moves : KEPT;
    bool is_first = false; /* what its memory has been before is of no interest */
    for (unsigned i = 1; i <= all && n < SHOWN && !is_first; i++) {
        const struct move *m = &moves[(n_moves - i) % KEPT];
        if (m->sm != sm || m->machine != machine)
            continue;
        names[n++] = name_of(machine, m->to);
        is_first = m->is_first;
    }
    while (n)
        mk_buf_addf(out, " %s", names[--n]);
}

static _Noreturn void die(const struct mk_sm *sm, const struct mk_sm_machine *machine, struct mk_buf *said)
{
    mk_buf_addf(said, "; its last moves:");
    add_moves(said, sm, machine);
    mk_buf_add(said, mk_str_of("\0", 1));
    mk_assert_fail(said->failed ? machine->name : said->p, __FILE__, __LINE__);
}

void mk_sm_fail(const struct mk_sm *sm, const struct mk_sm_machine *machine, unsigned to)
{
    char room[512];
    struct mk_buf said = mk_buf_fixed(room, sizeof room);
    mk_buf_addf(&said, "%s: %s may become %s", machine->name, name_of(machine, sm->is), name_of(machine, to));
    die(sm, machine, &said);
}

void mk_sm_check(const struct mk_sm *sm, const struct mk_sm_machine *machine, const void *owner)
{
    char room[512];
    const char *broken = sm->is >= machine->n_states ? "it has a state" : NULL;
    if (!broken && machine->broken)
        broken = machine->broken(owner);
    if (!broken)
        return;
    struct mk_buf said = mk_buf_fixed(room, sizeof room);
    mk_buf_addf(&said, "%s, %s: %s", machine->name, name_of(machine, sm->is), broken);
    die(sm, machine, &said);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the invariants of a state machine (monkey/state_machine.h) and its transitions. */
#ifndef MK_UNIT_STATE_MACHINE_H
#define MK_UNIT_STATE_MACHINE_H

#include <monkey/state_machine.h>
#include <stdio.h>

#include "unit/test.h"

static inline void expect_all_states_reachable(const struct mk_state_machine *m)
{
    unsigned seen = 1, before = 0;
    while (seen != before) {
        before = seen;
        for (unsigned i = 0; i < m->n_states; i++)
            seen |= before >> i & 1 ? m->states->next[i] : 0;
    }
    assert_int_equal(seen, (1u << m->n_states) - 1);
}

/* `moves` has a line for each state, in order: "idle: head, dead\n". Every state must be reachable from the
 * first. */
static inline void expect_state_machine(const struct mk_state_machine *m, const char *moves)
{
    char found[2048] = "";
    size_t n = 0;
    assert_non_null(m->name);
    assert_in_range(m->n_states, 2, 16);
    for (unsigned i = 0; i < m->n_states; i++) {
        const char *before = ": ";
        assert_true(m->states->names[i][0]);
        n += (size_t)snprintf(found + n, sizeof found - n, "%s", m->states->names[i]);
        for (unsigned to = 0; to < 16; to++) {
            if (!(m->states->next[i] & MK_STATE_TO(to)))
                continue;
            assert_true(to < m->n_states);
            n += (size_t)snprintf(found + n, sizeof found - n, "%s%s", before, m->states->names[to]);
            before = ", ";
        }
        n += (size_t)snprintf(found + n, sizeof found - n, "\n");
    }
    assert_true(n < sizeof found);
    assert_string_equal(found, moves);
    expect_all_states_reachable(m);
}

#endif

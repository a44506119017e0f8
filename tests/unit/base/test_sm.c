/* SPDX-License-Identifier: Apache-2.0 */
#include <monkey/sm.h>
#include <stdio.h>

#include "unit/child.h"

enum door_state { SHUT, OPEN, LOCKED, GONE, STATES };

struct door {
    struct mk_sm state;
    bool has_key;
};

static const char *broken(const void *owner)
{
    const struct door *d = owner;
    return d->state.state == LOCKED && !d->has_key ? "it has a key" : NULL;
}

static const struct mk_sm_states states = {
    MK_SM_STATE(SHUT, "shut", MK_SM_TO(OPEN) | MK_SM_TO(LOCKED) | MK_SM_TO(GONE)),
    MK_SM_STATE(OPEN, "open", MK_SM_TO(SHUT) | MK_SM_TO(OPEN)),
    MK_SM_STATE(LOCKED, "locked", MK_SM_TO(SHUT)),
    MK_SM_STATE(GONE, "gone", 0),
};

static const struct mk_sm_machine machine = {"door", &states, STATES, broken};

static void move(struct door *d, enum door_state to)
{
    mk_sm_move(&d->state, &machine, d, to);
}

static void sm_zero_initialized_is_in_the_first_state(void **state)
{
    (void)state;
    struct door d = {.has_key = true};
    assert_int_equal(d.state.state, SHUT);
    assert_int_equal(sizeof d.state, 1);
    mk_sm_init(&d.state, &machine, LOCKED);
    assert_int_equal(d.state.state, LOCKED);
}

static void sm_allowed_move_changes_the_state(void **state)
{
    (void)state;
    struct door d = {0};
    static const enum door_state sequence[] = {OPEN, OPEN, SHUT, GONE};
    for (size_t i = 0; i < MK_LEN(sequence); i++) {
        move(&d, sequence[i]);
        assert_int_equal(d.state.state, sequence[i]);
    }
}

static void move_shut(void *ctx)
{
    move(ctx, SHUT);
}

static void move_open(void *ctx)
{
    move(ctx, OPEN);
}

static void move_locked(void *ctx)
{
    move(ctx, LOCKED);
}

static void move_gone(void *ctx)
{
    move(ctx, GONE);
}

static void sm_disallowed_move_aborts(void **state)
{
    (void)state;
    static void (*const moves[STATES])(void *ctx) = {move_shut, move_open, move_locked, move_gone};
    for (unsigned from = 0; from < STATES; from++) {
        for (unsigned to = 0; to < STATES; to++) {
            char output[1024], expected[64];
            struct door d = {.has_key = true};
            mk_sm_init(&d.state, &machine, from);
            bool may = states.next[from] & MK_SM_TO(to);
            assert_int_equal(mk_sm_may(&d.state, &machine, to), may);
            int status = run_in_dying_child(moves[to], &d, output, sizeof output);
            assert_int_equal(status == 0, may);
            snprintf(expected, sizeof expected, "door: %s may become %s; ", states.names[from],
                     states.names[to]);
            assert_int_equal(strstr(output, expected) != NULL, !may);
        }
    }
}

static void move_without_its_key(void *ctx)
{
    struct door *d = ctx;
    mk_sm_init(&d->state, &machine, SHUT);
    d->has_key = false;
    move(d, LOCKED);
}

static void move_when_its_key_is_lost(void *ctx)
{
    struct door *d = ctx;
    mk_sm_init(&d->state, &machine, SHUT);
    d->has_key = true;
    move(d, LOCKED);
    d->has_key = false;
    move(d, SHUT);
}

static void sm_invariant_is_checked_before_and_after_a_move(void **state)
{
    (void)state;
    struct door d = {0};
    assert_aborts(move_without_its_key, &d,
                  "door, locked: it has a key; its last moves: shut locked is not true");
    assert_aborts(move_when_its_key_is_lost, &d,
                  "door, locked: it has a key; its last moves: shut locked is not true");
}

static void move_from_nowhere(void *ctx)
{
    struct door *d = ctx;
    memset(&d->state, 0xa5, sizeof d->state);
    move(d, SHUT);
}

static void sm_invalid_state_aborts(void **state)
{
    (void)state;
    struct door d = {0};
    assert_aborts(move_from_nowhere, &d, "door, ?: it has a state");
}

static void sm_failure_shows_the_last_moves_of_the_object(void **state)
{
    (void)state;
    struct door d = {0}, other = {0};
    mk_sm_init(&d.state, &machine, SHUT);
    move(&d, OPEN);
    move(&other, OPEN);
    move(&d, SHUT);
    move(&other, SHUT);
    move(&d, GONE);
    static const struct mk_sm_machine gate = {"gate", &states, STATES, NULL};
    struct mk_sm *same = &d.state;
    mk_sm_trace(same, &gate, LOCKED); /* records a move of another object at the same address */
    assert_aborts(move_open, &d,
                  "door: gone may become open; its last moves: shut open shut gone is not true");
}

static void sm_failure_shows_at_most_16_moves(void **state)
{
    (void)state;
    struct door d = {0};
    for (int i = 0; i < 300; i++)
        move(&d, OPEN);
    move(&d, SHUT);
    move(&d, GONE);
    assert_aborts(
        move_shut, &d,
        "its last moves: open open open open open open open open open open open open open open shut gone is");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sm_zero_initialized_is_in_the_first_state),
        cmocka_unit_test(sm_allowed_move_changes_the_state),
        cmocka_unit_test(sm_disallowed_move_aborts),
        cmocka_unit_test(sm_invariant_is_checked_before_and_after_a_move),
        cmocka_unit_test(sm_invalid_state_aborts),
        cmocka_unit_test(sm_failure_shows_the_last_moves_of_the_object),
        cmocka_unit_test(sm_failure_shows_at_most_16_moves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

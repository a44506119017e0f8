/* SPDX-License-Identifier: Apache-2.0 */
#include <monkey/state_machine.h>
#include <stdio.h>

#include "unit/child.h"

enum door_state { SHUT, OPEN, LOCKED, GONE, STATES };

struct door {
    struct mk_state state;
    bool has_key;
};

static const char *invariant_error(const void *owner)
{
    const struct door *d = owner;
    return d->state.current == LOCKED && !d->has_key ? "it has a key" : NULL;
}

static const struct mk_state_table states = {
    MK_STATE_ROW(SHUT, "shut", MK_STATE_TO(OPEN) | MK_STATE_TO(LOCKED) | MK_STATE_TO(GONE)),
    MK_STATE_ROW(OPEN, "open", MK_STATE_TO(SHUT) | MK_STATE_TO(OPEN)),
    MK_STATE_ROW(LOCKED, "locked", MK_STATE_TO(SHUT)),
    MK_STATE_ROW(GONE, "gone", 0),
};

static const struct mk_state_machine machine = {"door", &states, STATES, invariant_error};

static void move(struct door *d, enum door_state to)
{
    mk_state_move(&d->state, &machine, d, to);
}

static void state_machine_zero_initialized_is_in_the_first_state(void **state)
{
    (void)state;
    struct door d = {.has_key = true};
    assert_int_equal(d.state.current, SHUT);
    assert_int_equal(sizeof d.state, 1);
    mk_state_init(&d.state, &machine, LOCKED);
    assert_int_equal(d.state.current, LOCKED);
}

static void state_machine_allowed_move_changes_the_state(void **state)
{
    (void)state;
    struct door d = {0};
    static const enum door_state sequence[] = {OPEN, OPEN, SHUT, GONE};
    for (size_t i = 0; i < MK_LEN(sequence); i++) {
        move(&d, sequence[i]);
        assert_int_equal(d.state.current, sequence[i]);
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

static void state_machine_disallowed_move_aborts(void **state)
{
    (void)state;
    static void (*const moves[STATES])(void *ctx) = {move_shut, move_open, move_locked, move_gone};
    for (unsigned from = 0; from < STATES; from++) {
        for (unsigned to = 0; to < STATES; to++) {
            char output[1024], expected[128];
            struct door d = {.has_key = true};
            mk_state_init(&d.state, &machine, from);
            bool may = states.next[from] & MK_STATE_TO(to);
            assert_int_equal(mk_state_can_move(&d.state, &machine, to), may);
            int status = run_in_dying_child(moves[to], &d, output, sizeof output);
            assert_int_equal(status == 0, may);
            snprintf(expected, sizeof expected, "door: no transition from state \"%s\" to \"%s\"; ",
                     states.names[from], states.names[to]);
            assert_int_equal(strstr(output, expected) != NULL, !may);
        }
    }
}

static void move_to_locked_without_key(void *ctx)
{
    struct door *d = ctx;
    mk_state_init(&d->state, &machine, SHUT);
    d->has_key = false;
    move(d, LOCKED);
}

static void move_after_losing_key(void *ctx)
{
    struct door *d = ctx;
    mk_state_init(&d->state, &machine, SHUT);
    d->has_key = true;
    move(d, LOCKED);
    d->has_key = false;
    move(d, SHUT);
}

static void state_machine_invariant_is_checked_before_and_after_a_move(void **state)
{
    (void)state;
    struct door d = {0};
    assert_aborts(move_to_locked_without_key, &d,
                  "door in state \"locked\": it has a key; last states: shut locked (");
    assert_aborts(move_after_losing_key, &d,
                  "door in state \"locked\": it has a key; last states: shut locked (");
}

static void move_from_invalid_state(void *ctx)
{
    struct door *d = ctx;
    memset(&d->state, 0xa5, sizeof d->state);
    move(d, SHUT);
}

static void state_machine_invalid_state_aborts(void **state)
{
    (void)state;
    struct door d = {0};
    assert_aborts(move_from_invalid_state, &d, "door in state \"?\": its state is valid");
}

static void state_machine_failure_message_lists_the_last_moves_of_the_object(void **state)
{
    (void)state;
    struct door d = {0}, other = {0};
    mk_state_init(&d.state, &machine, SHUT);
    move(&d, OPEN);
    move(&other, OPEN);
    move(&d, SHUT);
    move(&other, SHUT);
    move(&d, GONE);
    static const struct mk_state_machine gate = {"gate", &states, STATES, NULL};
    struct mk_state *same = &d.state;
    mk_state_record_move(same, &gate, LOCKED); /* records a move of another object at the same address */
    assert_aborts(move_open, &d,
                  "door: no transition from state \"gone\" to \"open\"; last states: shut open shut gone (");
}

static void state_machine_failure_message_lists_at_most_16_moves(void **state)
{
    (void)state;
    struct door d = {0};
    for (int i = 0; i < 300; i++)
        move(&d, OPEN);
    move(&d, SHUT);
    move(&d, GONE);
    assert_aborts(
        move_shut, &d,
        "last states: open open open open open open open open open open open open open open shut gone (");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(state_machine_zero_initialized_is_in_the_first_state),
        cmocka_unit_test(state_machine_allowed_move_changes_the_state),
        cmocka_unit_test(state_machine_disallowed_move_aborts),
        cmocka_unit_test(state_machine_invariant_is_checked_before_and_after_a_move),
        cmocka_unit_test(state_machine_invalid_state_aborts),
        cmocka_unit_test(state_machine_failure_message_lists_the_last_moves_of_the_object),
        cmocka_unit_test(state_machine_failure_message_lists_at_most_16_moves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "server/workers.h"

#include "unit/child.h"
#include "unit/state_machine.h"
#include "unit/test.h"

static void worker_state_machine_has_these_transitions(void **state)
{
    (void)state;
    expect_state_machine(&mk_worker_machine, "free: starting\n"
                                             "starting: free, serving, stop early, drain early\n"
                                             "serving: free, stopping, draining\n"
                                             "stopping: free, draining\n"
                                             "stop early: free, stopping, drain early\n"
                                             "draining: free, stopping\n"
                                             "drain early: free, stop early, draining\n");
}

static void move_to_starting(void *slot)
{
    struct mk_worker_slot *p = slot;
    mk_state_move(&p->state, &mk_worker_machine, p, MK_WORKER_STARTING);
}

static void worker_that_is_not_free_has_process(void **state)
{
    struct mk_worker_slot p = {.pid = 0};
    (void)state;
    assert_aborts(move_to_starting, &p, "worker in state \"starting\": it has a process");
    p.pid = 1;
    move_to_starting(&p);
    assert_int_equal(p.state.current, MK_WORKER_STARTING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worker_state_machine_has_these_transitions),
        cmocka_unit_test(worker_that_is_not_free_has_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/request_state.h"

#include "unit/child.h"
#include "unit/state_machine.h"
#include "unit/upstream/request_case.h"

static void request_state_machine_has_these_transitions(void **state)
{
    (void)state;
    expect_state_machine(&mk_upstream_request_machine, "waiting: open, failed\n"
                                                       "open: waiting, content, upgraded, failed\n"
                                                       "content: done, failed\n"
                                                       "upgraded: failed\n"
                                                       "done\n"
                                                       "failed\n");
}

static void request_output_state_machine_has_these_transitions(void **state)
{
    (void)state;
    expect_state_machine(&mk_upstream_request_output_machine, "none: held, sending, ending\n"
                                                              "held: none, sending, broken\n"
                                                              "sending: none, ending, broken\n"
                                                              "ending: none, sent, broken\n"
                                                              "sent: none, sending\n"
                                                              "broken: none\n");
}

static void move_to_failed(void *ctx)
{
    mk_upstream_request_state_move(ctx, MK_UPSTREAM_REQUEST_FAILED);
}

static void request_failed_holds_no_connection(void **state)
{
    (void)state;
    struct mk_upstream_conn *conn = (struct mk_upstream_conn *)(void *)&state;
    struct mk_upstream_request r = {.conn = conn};
    assert_aborts(move_to_failed, &r, "upstream request in state \"failed\": its connection was released");
}

static void move_to_sending(void *ctx)
{
    mk_upstream_request_state_move_output(ctx, MK_UPSTREAM_REQUEST_OUTPUT_SENDING);
}

static void request_sending_needs_connection(void **state)
{
    (void)state;
    struct mk_upstream_request r = {0};
    assert_aborts(move_to_sending, &r, "upstream request output in state \"sending\": it has a connection");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(request_state_machine_has_these_transitions),
        cmocka_unit_test(request_output_state_machine_has_these_transitions),
        cmocka_unit_test(request_failed_holds_no_connection),
        cmocka_unit_test(request_sending_needs_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/h2_state.h"

#include "unit/child.h"
#include "unit/state_machine.h"

static void h2_state_remote_begins_with_preface_and_settings(void **state)
{
    (void)state;
    expect_state_machine(&mk_h2_state_remote_machine, "preface: settings, closed\n"
                                                      "settings: open, closed\n"
                                                      "open: goaway, closed\n"
                                                      "goaway: closed\n"
                                                      "closed\n");
}

static void h2_state_local_sends_each_goaway_once(void **state)
{
    (void)state;
    expect_state_machine(&mk_h2_state_local_machine, "open: warned, goaway, failed, lost\n"
                                                     "warned: goaway, failed, lost\n"
                                                     "goaway: failed, lost\n"
                                                     "failed: lost\n"
                                                     "lost\n");
}

static void move_to_open(void *ctx)
{
    mk_h2_state_move_remote(ctx, MK_H2_REMOTE_OPEN);
}

static void h2_state_no_stream_before_settings(void **state)
{
    (void)state;
    struct mk_h2 h2 = {0};
    assert_aborts(move_to_open, &h2,
                  "client's side of HTTP/2: no transition from state \"preface\" to \"open\"");
    mk_h2_state_move_remote(&h2, MK_H2_REMOTE_SETTINGS);
    h2.n_streams = 1;
    assert_aborts(move_to_open, &h2, "the client has opened no stream");
}

static void move_to_goaway(void *ctx)
{
    mk_h2_state_move_local(ctx, MK_H2_LOCAL_GOAWAY);
}

static void h2_state_no_refusal_before_goaway(void **state)
{
    (void)state;
    struct mk_h2 h2 = {.final_stream = MK_H2_STREAM_MAX};
    mk_h2_state_move_local(&h2, MK_H2_LOCAL_WARNED);
    h2.final_stream = 1;
    assert_aborts(move_to_goaway, &h2, "our side of HTTP/2 in state \"warned\": each stream is served");
    h2.final_stream = MK_H2_STREAM_MAX;
    mk_h2_state_move_local(&h2, MK_H2_LOCAL_GOAWAY);
    assert_true(mk_h2_state_is_alive(&h2));
    mk_h2_state_move_local(&h2, MK_H2_LOCAL_FAILED);
    assert_false(mk_h2_state_is_alive(&h2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(h2_state_remote_begins_with_preface_and_settings),
        cmocka_unit_test(h2_state_local_sends_each_goaway_once),
        cmocka_unit_test(h2_state_no_stream_before_settings),
        cmocka_unit_test(h2_state_no_refusal_before_goaway),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

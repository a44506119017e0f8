/* SPDX-License-Identifier: Apache-2.0 */
#include "connection/http_stream.h"

#include "unit/child.h"
#include "unit/state_machine.h"

static void http_stream_has_two_directions(void **state)
{
    (void)state;
    expect_state_machine(&mk_http_stream_machine, "open: remote closed, local closed, closed\n"
                                                  "remote closed: open, remote closed, closed\n"
                                                  "local closed: local closed, closed\n"
                                                  "closed: closed\n");
}

static void http_stream_unwanted_body_stays_unwanted(void **state)
{
    (void)state;
    expect_state_machine(&mk_http_stream_input_machine, "wanted: held, unwanted\n"
                                                        "held: wanted, unwanted\n"
                                                        "unwanted\n");
}

static void http_stream_response_state_machine_has_these_transitions(void **state)
{
    (void)state;
    expect_state_machine(&mk_http_stream_response_machine, "pending: pending, buffered, content, recorded\n"
                                                           "buffered: pending, content, recorded\n"
                                                           "content: pending, spent, recorded\n"
                                                           "spent: recorded\n"
                                                           "recorded\n");
}

static void http_stream_closes_each_direction_once(void **state)
{
    (void)state;
    struct mk_http_stream d = {0};
    mk_http_stream_set_response_state(&d, MK_RESPONSE_HEAD_SENT);
    assert_false(mk_http_stream_request_received(&d) || mk_http_stream_response_written(&d));
    mk_http_stream_close_remote(&d);
    mk_http_stream_close_remote(&d);
    assert_true(mk_http_stream_request_received(&d) && !mk_http_stream_response_written(&d));
    assert_int_equal(d.state.current, MK_HTTP_STREAM_HALF_CLOSED_REMOTE);
    mk_http_stream_close_local(&d);
    mk_http_stream_close_local(&d);
    assert_int_equal(d.state.current, MK_HTTP_STREAM_CLOSED);
    mk_http_stream_close_remote(&d);
    assert_int_equal(d.state.current, MK_HTTP_STREAM_CLOSED);

    struct mk_http_stream other = {0};
    mk_http_stream_set_response_state(&other, MK_RESPONSE_HEAD_SENT);
    mk_http_stream_close_local(&other);
    assert_true(mk_http_stream_response_written(&other) && !mk_http_stream_request_received(&other));
    mk_http_stream_close_remote(&other);
    assert_int_equal(other.state.current, MK_HTTP_STREAM_CLOSED);
}

static void close_local(void *ctx)
{
    mk_http_stream_close_local(ctx);
}

static void http_stream_local_close_needs_response(void **state)
{
    (void)state;
    struct mk_http_stream d = {0};
    assert_aborts(close_local, &d, "exchange in state \"local closed\": its response has begun");
}

static void replace(void *ctx)
{
    mk_http_stream_set_response_state(ctx, MK_RESPONSE_PENDING);
}

static void http_stream_partly_sent_response_is_not_replaced(void **state)
{
    (void)state;
    struct mk_http_stream d = {.sent = 1};
    mk_state_init(&d.reply, &mk_http_stream_response_machine, MK_RESPONSE_BUFFERED);
    assert_aborts(replace, &d, "response in state \"pending\": no body bytes are sent");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(http_stream_has_two_directions),
        cmocka_unit_test(http_stream_unwanted_body_stays_unwanted),
        cmocka_unit_test(http_stream_response_state_machine_has_these_transitions),
        cmocka_unit_test(http_stream_closes_each_direction_once),
        cmocka_unit_test(http_stream_local_close_needs_response),
        cmocka_unit_test(http_stream_partly_sent_response_is_not_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

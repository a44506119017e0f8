/* SPDX-License-Identifier: Apache-2.0 */
/* Requests cancelled before the response is complete: whether the server may still be processing them. */
#include <stdio.h>

#include "unit/upstream/request_case.h"

#define REPLY "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

static void begin(struct call *call)
{
    fake_init();
    call_init(call);
}

static void expect_abandoned(bool is, bool streams)
{
    assert_int_equal(fake.links[0].is_cancelled, is);
    assert_int_equal(fake.links[0].streams, streams);
    assert_int_equal(fake.links[0].cancelled_ms, is ? 1234 : 0);
}

/* Frees the request after this part of the response has arrived. */
static void cancel_at(struct call *call, mk_str reply, int in_end)
{
    call->ask.limits.response_timeout_ms = 1234;
    fake_add(reply, in_end);
    call_start(call);
    call_settle(call);
    call_fini(call);
}

static void cancel_before_complete_response_marks_server_busy(void **state)
{
    struct call call;
    (void)state;
    for (size_t n = 0; n < sizeof REPLY; n++) {
        begin(&call);
        cancel_at(&call, mk_str_of(REPLY, n), -EAGAIN);
        expect_abandoned(n < sizeof REPLY - 1, false);
        assert_int_equal(fake.links[0].how,
                         n < sizeof REPLY - 1 ? MK_UPSTREAM_CONN_CLOSE : MK_UPSTREAM_CONN_KEEP);
    }
}

static void cancel_after_closing_response_leaves_server_idle(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    cancel_at(&call, MK_STR("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"), -EAGAIN);
    expect_abandoned(false, false);
    assert_int_equal(fake.links[0].how, MK_UPSTREAM_CONN_CLOSE);
}

static void cancel_after_server_hangup_leaves_server_idle(void **state)
{
    static const unsigned events[] = {MK_ENDED, MK_HUNG_UP};
    struct call call;
    (void)state;
    for (size_t i = 0; i < MK_LEN(events); i++) {
        begin(&call);
        call.is_paused = true;
        fake_add(MK_STR("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhi"), -EAGAIN);
        call_start(&call);
        assert_int_equal(call.head, 0);
        fake_happen(&fake.links[0], MK_READABLE | events[i]);
        call_fini(&call);
        expect_abandoned(false, false);
    }
}

static void cancel_while_connecting_leaves_server_idle(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    fake_add(MK_STR(""), -EAGAIN)->state = -EAGAIN;
    call_start(&call);
    call_fini(&call);
    expect_abandoned(false, false);
}

static void cancel_before_first_write_leaves_server_idle(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    fake_add(MK_STR(""), -EAGAIN)->write_max = 0;
    call_start(&call);
    call_fini(&call);
    expect_abandoned(false, false);
}

static void cancel_of_event_stream_is_streaming(void **state)
{
    static const mk_str types[] = {MK_STR_INIT("text/event-stream"),
                                   MK_STR_INIT("Text/Event-Stream ; charset=utf-8"),
                                   MK_STR_INIT("text/event-streams"), MK_STR_INIT("text/html")};
    struct call call;
    (void)state;
    for (size_t i = 0; i < MK_LEN(types); i++) {
        char reply[200];
        begin(&call);
        (void)snprintf(reply, sizeof reply, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\n\r\ndata: 1\n\n",
                       types[i].p);
        cancel_at(&call, mk_str_from_c(reply), -EAGAIN);
        expect_abandoned(true, i < 2);
    }
}

static void cancel_of_tunnel_is_streaming(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    call.ask.upgrade = MK_STR("chat");
    cancel_at(&call, MK_STR("HTTP/1.1 101 OK\r\nUpgrade: chat\r\nConnection: upgrade\r\n\r\n"), -EAGAIN);
    expect_abandoned(true, true);
}

static void cancel_by_timeout_marks_server_busy(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    call.ask.limits = (struct mk_upstream_limits){.response_timeout_ms = 1234, .max_tries = 2};
    fake.n_servers = 2;
    fake_add(MK_STR(""), -EAGAIN);
    fake_add(MK_STR(REPLY), -EAGAIN)->server = 1;
    call_start(&call);
    fake_pass(1234);
    expect_abandoned(true, false);
    assert_int_equal(fake.links[0].how, MK_UPSTREAM_CONN_FAILED);
    call_settle(&call);
    assert_false(fake.links[1].is_cancelled);
    assert_int_equal(call.end, 0);
    call_fini(&call);
}

static void cancel_by_aborted_upload_marks_server_busy(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    call.ask.limits.response_timeout_ms = 1234;
    call_send(&call, MK_STR("content"), true);
    call.available = 3;
    fake_add(MK_STR(""), -EAGAIN);
    call_start(&call);
    call.pull_error = -ECONNRESET;
    mk_upstream_request_resume(call.client);
    expect_abandoned(true, false);
    assert_int_equal(fake.links[0].how, MK_UPSTREAM_CONN_CLOSE);
    call_settle(&call);
    assert_int_equal(call.head, -ECONNRESET);
    call_fini(&call);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cancel_before_complete_response_marks_server_busy),
        cmocka_unit_test(cancel_after_closing_response_leaves_server_idle),
        cmocka_unit_test(cancel_after_server_hangup_leaves_server_idle),
        cmocka_unit_test(cancel_while_connecting_leaves_server_idle),
        cmocka_unit_test(cancel_before_first_write_leaves_server_idle),
        cmocka_unit_test(cancel_of_event_stream_is_streaming),
        cmocka_unit_test(cancel_of_tunnel_is_streaming),
        cmocka_unit_test(cancel_by_timeout_marks_server_busy),
        cmocka_unit_test(cancel_by_aborted_upload_marks_server_busy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

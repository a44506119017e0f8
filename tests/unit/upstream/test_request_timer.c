/* SPDX-License-Identifier: Apache-2.0 */
/* Timeouts of a request to an upstream server. */
#include "unit/upstream/request_case.h"

#define REPLY "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

enum { RESPONSE_MS = 1000, SILENCE_MS = 300 };

static void begin(struct call *call)
{
    fake_init();
    call_init(call);
    call->ask.limits.response_timeout_ms = RESPONSE_MS;
    call->ask.limits.read_timeout_ms = SILENCE_MS;
    fake_add(MK_STR(REPLY), -EAGAIN)->is_gradual = true;
}

static void pass(struct call *call, uint64_t ms)
{
    fake_pass(ms);
    call_settle(call);
}

static void arrive(struct call *call, size_t n)
{
    fake_arrive(call_link(), n);
    call_settle(call);
}

static void expect_timeout(struct call *call, const char *problem)
{
    assert_int_equal(call->head ? call->head : call->end, -ETIMEDOUT);
    assert_string_equal(mk_upstream_request_error_text(call->client), problem);
    assert_int_equal(call_link()->how, MK_UPSTREAM_CONN_FAILED);
    call_fini(call);
}

static void expect_reply(struct call *call)
{
    assert_int_equal(call->end, 0);
    assert_str(mk_buf_str(&call->body), "hello");
    pass(call, 100000); /* no timer may be left that fires later */
    assert_int_equal(call->end, 0);
    call_fini(call);
}

static void timer_response_timeout_until_first_byte(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    call_start(&call);
    pass(&call, RESPONSE_MS - 1);
    assert_int_equal(call.head, -EAGAIN);
    pass(&call, 1);
    assert_int_equal(call.n_ready, 1);
    expect_timeout(&call, "the server does not answer");
}

static void timer_read_timeout_between_bytes(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    call_start(&call);
    pass(&call, RESPONSE_MS - 1);
    for (size_t n = 1; n < sizeof REPLY; n++) {
        arrive(&call, 1);
        pass(&call, SILENCE_MS - 1);
    }
    expect_reply(&call);
    for (size_t n = 1; n < sizeof REPLY - 1; n++) {
        begin(&call);
        call_start(&call);
        arrive(&call, n);
        pass(&call, SILENCE_MS);
        expect_timeout(&call, "the server stopped in the middle of its response");
    }
}

static void timer_interim_response_keeps_response_timeout(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    fake.links[0].in = MK_STR("HTTP/1.1 103 \r\n\r\n" REPLY);
    call_start(&call);
    pass(&call, RESPONSE_MS - 1);
    arrive(&call, 17);
    assert_str(mk_buf_str(&call.heads), "103|");
    pass(&call, RESPONSE_MS - 1);
    assert_int_equal(call.head, -EAGAIN);
    arrive(&call, SIZE_MAX);
    expect_reply(&call);
}

static void timer_slow_reader_does_not_time_out_server(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    call_start(&call);
    call.is_paused = true;
    arrive(&call, sizeof REPLY - 4);
    pass(&call, 100 * SILENCE_MS);
    assert_int_equal(call.head, 0);
    call.is_paused = false;
    call_go(&call); /* now the request waits for the server */
    assert_int_equal(call.end, -EAGAIN);
    pass(&call, SILENCE_MS - 1);
    assert_int_equal(call.end, -EAGAIN);
    arrive(&call, SIZE_MAX);
    expect_reply(&call);
}

static void timer_received_data_waits_for_reader(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    call_start(&call);
    arrive(&call, sizeof REPLY - 4);
    assert_int_equal(call.end, -EAGAIN);
    call.is_paused = true; /* the client has read everything, but has no buffer when the next data arrives */
    arrive(&call, 1);
    pass(&call, 100 * SILENCE_MS);
    call.is_paused = false;
    call_go(&call);
    assert_int_equal(call.end, -EAGAIN);
    pass(&call, SILENCE_MS - 1);
    arrive(&call, SIZE_MAX);
    expect_reply(&call);
}

static void timer_write_timeout_between_writes(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    struct mk_upstream_conn *l = &fake.links[0];
    l->write_max = 2;
    call_start(&call);
    for (int i = 0; i < 4; i++) {
        pass(&call, SILENCE_MS - 1);
        assert_int_equal(call.head, -EAGAIN);
        fake_accept_more(l, 1);
    }
    pass(&call, SILENCE_MS);
    expect_timeout(&call, "the server does not read the request");
}

static void timer_slow_source_does_not_time_out_server(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    call_send(&call, MK_STR("hello"), true);
    call.available = 1;
    call_start(&call);
    pass(&call, 100 * RESPONSE_MS);
    assert_int_equal(call.head, -EAGAIN);
    call.available = 5;
    mk_upstream_request_resume(call.client);
    pass(&call, RESPONSE_MS - 1); /* the timeout begins with the last byte */
    assert_int_equal(call.head, -EAGAIN);
    pass(&call, 1);
    expect_timeout(&call, "the server does not answer");
}

static void timer_failed_request_has_no_timer(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    call_send(&call, MK_STR("hello"), true);
    call.available = 1;
    fake.links[0].write_max = 10;
    call_start(&call);
    call.pull_error = -EMSGSIZE;
    mk_upstream_request_resume(call.client);
    call_settle(&call);
    assert_int_equal(call.head, -EMSGSIZE);
    pass(&call, 100 * RESPONSE_MS);
    call_fini(&call);
}

static void timer_is_off_while_waiting_for_connection(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    fake.links[0].state = -EAGAIN;
    call_start(&call);
    pass(&call, 100 * RESPONSE_MS);
    assert_int_equal(call.head, -EAGAIN);
    fake_connect(&fake.links[0], 0);
    pass(&call, RESPONSE_MS - 1);
    assert_int_equal(call.head, -EAGAIN);
    pass(&call, 1);
    expect_timeout(&call, "the server does not answer");
}

static void timer_is_off_in_tunnel(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    call.ask.upgrade = MK_STR("x");
    call.ask.body_source = &call_source;
    call.content = MK_STR("never sent");
    call.available = 0;
    fake.links[0].in = MK_STR("HTTP/1.1 101 \r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n");
    call_start(&call);
    arrive(&call, SIZE_MAX);
    assert_true(mk_upstream_request_is_upgraded(call.client));
    pass(&call, 100 * RESPONSE_MS);
    assert_int_equal(call.end, -EAGAIN);
    call_fini(&call);
}

static void timer_restarts_for_next_server(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    fake.n_servers = 2;
    call.ask.limits.max_tries = 2;
    struct mk_upstream_conn *other = fake_add(MK_STR(REPLY), -EAGAIN);
    other->is_gradual = true;
    other->server = 1;
    call_start(&call);
    pass(&call, RESPONSE_MS);
    assert_int_equal(fake.n_taken, 2);
    assert_int_equal(fake.links[0].how, MK_UPSTREAM_CONN_FAILED);
    assert_int_equal(call.n_ready, 0);
    pass(&call, RESPONSE_MS - 1);
    assert_int_equal(call.head, -EAGAIN);
    arrive(&call, SIZE_MAX);
    expect_reply(&call);
}

static void timer_without_limits_is_off(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    call.ask.limits.response_timeout_ms = call.ask.limits.read_timeout_ms = 0;
    call_start(&call);
    assert_int_equal(fake_clock.n_timers, 0);
    pass(&call, 1 << 30);
    arrive(&call, SIZE_MAX);
    expect_reply(&call);
    begin(&call);
    call.ask.limits.response_timeout_ms = 0; /* the read timeout still applies */
    call_start(&call);
    pass(&call, 100 * RESPONSE_MS);
    arrive(&call, 1);
    pass(&call, SILENCE_MS);
    expect_timeout(&call, "the server stopped in the middle of its response");
}

/* ---- total_timeout ---- */

enum { TOTAL_MS = 800 };

static void begin_total(struct call *call)
{
    begin(call);
    call->ask.limits.response_timeout_ms = 0;
    call->ask.limits.total_timeout_ms = TOTAL_MS;
}

static void expect_total_timeout(struct call *call, enum mk_upstream_conn_disposition how, const char *why)
{
    assert_int_equal(call->head, -ETIMEDOUT);
    assert_string_equal(mk_upstream_request_error_text(call->client),
                        "no server has answered within total_timeout");
    assert_int_equal(call_link()->how, how);
    assert_string_equal(call_link()->why, why);
    call_fini(call);
}

static void timer_total_timeout_blames_hung_server(void **state)
{
    struct call call;
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        begin_total(&call);
        call.ask.limits.response_timeout_ms = i * 60000;
        call_start(&call);
        pass(&call, TOTAL_MS - 1);
        assert_int_equal(call.head, -EAGAIN);
        pass(&call, 1);
        expect_total_timeout(&call, MK_UPSTREAM_CONN_FAILED, "the server does not answer");
    }
}

static void timer_total_timeout_in_queue_blames_no_server(void **state)
{
    struct call call;
    (void)state;
    begin_total(&call);
    fake.links[0].state = -EAGAIN;
    call_start(&call);
    pass(&call, TOTAL_MS);
    expect_total_timeout(&call, MK_UPSTREAM_CONN_CLOSE, "no server has answered within total_timeout");
}

/* Most of the time passed in the queue: the server had the request for less than half of the limit. */
static void timer_total_timeout_after_queue_blames_no_server(void **state)
{
    struct call call;
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        begin_total(&call);
        fake.links[0].state = -EAGAIN;
        call_start(&call);
        pass(&call, TOTAL_MS / 2 + 1 - i);
        fake_connect(&fake.links[0], 0);
        call_settle(&call);
        pass(&call, TOTAL_MS / 2 - 1 + i);
        if (i)
            expect_total_timeout(&call, MK_UPSTREAM_CONN_FAILED, "the server does not answer");
        else
            expect_total_timeout(&call, MK_UPSTREAM_CONN_CLOSE,
                                 "no server has answered within total_timeout");
    }
}

static void timer_total_timeout_of_upload_blames_no_server(void **state)
{
    struct call call;
    (void)state;
    begin_total(&call);
    call_send(&call, MK_STR("hello"), true);
    call.available = 1;
    call_start(&call);
    pass(&call, TOTAL_MS);
    expect_total_timeout(&call, MK_UPSTREAM_CONN_CLOSE, "no server has answered within total_timeout");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timer_response_timeout_until_first_byte),
        cmocka_unit_test(timer_read_timeout_between_bytes),
        cmocka_unit_test(timer_interim_response_keeps_response_timeout),
        cmocka_unit_test(timer_slow_reader_does_not_time_out_server),
        cmocka_unit_test(timer_received_data_waits_for_reader),
        cmocka_unit_test(timer_write_timeout_between_writes),
        cmocka_unit_test(timer_slow_source_does_not_time_out_server),
        cmocka_unit_test(timer_failed_request_has_no_timer),
        cmocka_unit_test(timer_is_off_while_waiting_for_connection),
        cmocka_unit_test(timer_is_off_in_tunnel),
        cmocka_unit_test(timer_restarts_for_next_server),
        cmocka_unit_test(timer_without_limits_is_off),
        cmocka_unit_test(timer_total_timeout_blames_hung_server),
        cmocka_unit_test(timer_total_timeout_in_queue_blames_no_server),
        cmocka_unit_test(timer_total_timeout_after_queue_blames_no_server),
        cmocka_unit_test(timer_total_timeout_of_upload_blames_no_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

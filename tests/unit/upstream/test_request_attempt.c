/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts of a request: new, failing and reused connections, and retries. */
#include "unit/upstream/request_case.h"
#include "upstream/request_send.h"

#define REPLY "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

static char large[200000];

static void begin(struct call *call)
{
    fake_init();
    call_init(call);
}

static struct mk_upstream_conn *add_reused_conn(int in_end)
{
    struct mk_upstream_conn *l = fake_add(MK_STR(""), in_end);
    l->was_kept = true;
    l->is_gradual = true;
    return l;
}

/* Runs the request; the arrival of data raises an event. */
static void run(struct call *call)
{
    for (unsigned i = 0; i < fake.n_links; i++)
        fake.links[i].is_gradual = true;
    call_run(call, SIZE_MAX, SIZE_MAX);
}

static void expect_reply(struct call *call)
{
    assert_int_equal(call->head, 0);
    assert_int_equal(call->end, 0);
    assert_str(mk_buf_str(&call->body), "hi");
    assert_string_equal(mk_upstream_request_error_text(call->client), "");
    call_fini(call);
}

static void expect_error(struct call *call, int error)
{
    assert_int_equal(call->head, error);
    assert_true(*mk_upstream_request_error_text(call->client));
    call_fini(call);
}

/* ---- Connecting ---- */

static void attempt_waits_for_connection(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    struct mk_upstream_conn *l = fake_add(MK_STR(REPLY), -EAGAIN);
    l->state = -EAGAIN;
    call_start(&call);
    assert_int_equal(call.head, -EAGAIN);
    assert_int_equal(mk_upstream_request_read(call.client, (char[1]){0}, 1), -EAGAIN);
    mk_upstream_request_resume(call.client);
    /* event of a failed connection attempt; other attempts follow */
    fake_happen(l, MK_WRITABLE | MK_HUNG_UP);
    assert_int_equal(call.n_ready, 0);
    assert_int_equal(l->n_writes, 0);
    fake_connect(l, 0);
    assert_int_equal(l->n_writes, 1);
    assert_int_equal(call.n_ready, 0);
    fake_happen(l, MK_READABLE);
    assert_int_equal(call.n_ready, 1);
    call_settle(&call);
    assert_int_equal(l->how, MK_UPSTREAM_CONN_KEEP);
    expect_reply(&call);
}

static void attempt_connect_error_is_reported(void **state)
{
    static const int errors[] = {-EHOSTUNREACH, -EBUSY,  -ETIMEDOUT, -EPROTO,
                                 -ECONNREFUSED, -EMFILE, -ENOBUFS,   -EACCES};
    (void)state;
    for (size_t i = 0; i < MK_LEN(errors); i++) {
        struct call call;
        begin(&call);
        call.ask.limits.max_tries = 3; /* the pool has already tried all servers for this connection */
        struct mk_upstream_conn *l = fake_add(MK_STR(""), -EAGAIN);
        l->state = errors[i];
        call_start(&call);
        assert_true(fake_end_iteration());
        assert_int_equal(call.n_ready, 1);
        expect_error(&call, errors[i]);

        begin(&call);
        l = fake_add(MK_STR(""), -EAGAIN);
        l->state = -EAGAIN;
        call_start(&call);
        fake_connect(l, errors[i]);
        assert_int_equal(call.n_ready, 1);
        call_settle(&call);
        expect_error(&call, errors[i]);
    }
}

static void attempt_request_may_be_freed_at_any_time(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    fake_add(MK_STR(""), -EAGAIN)->state = -EAGAIN;
    call_start(&call);
    call_fini(&call);
    assert_int_equal(fake.links[0].how, MK_UPSTREAM_CONN_CLOSE);
    for (size_t n = 0; n < sizeof REPLY - 2; n++) {
        begin(&call);
        fake_add(mk_str_of(REPLY, n), -EAGAIN);
        call_start(&call);
        call_fini(&call);
        assert_int_equal(fake.links[0].how, MK_UPSTREAM_CONN_CLOSE);
    }
    mk_upstream_request_free(NULL);
}

/* ---- Reused connections: the request is sent at the end of the iteration ---- */

static void attempt_on_reused_connection_is_sent_at_iteration_end(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    struct mk_upstream_conn *l = add_reused_conn(-EAGAIN);
    l->in = MK_STR(REPLY);
    call_send(&call, MK_STR("content"), true);
    call_start(&call);
    mk_upstream_request_resume(call.client);
    assert_int_equal(mk_upstream_request_head(call.client), -EAGAIN);
    assert_int_equal(l->n_writes + call.n_pulls, 0);
    assert_true(fake_end_iteration());
    assert_int_equal(l->n_writes, 1);
    assert_int_equal(call.n_ready, 0);
    while (fake_arrive(l, SIZE_MAX))
        call_settle(&call);
    assert_int_equal(l->how, MK_UPSTREAM_CONN_KEEP);
    expect_reply(&call);
}

static void attempt_timeout_starts_when_request_is_sent(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    call.ask.limits.response_timeout_ms = 100;
    add_reused_conn(-EAGAIN);
    call_start(&call);
    fake_pass(150); /* the other requests of the iteration took this long */
    assert_true(fake_end_iteration());
    fake_pass(50);
    assert_int_equal(call.n_ready, 0);
    fake_pass(50);
    call_settle(&call);
    expect_error(&call, -ETIMEDOUT);
}

static void attempt_can_be_cancelled_before_it_is_sent(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    struct mk_upstream_conn *l = add_reused_conn(-EAGAIN);
    call_start(&call);
    call_fini(&call);
    assert_int_equal(l->n_writes, 0);
    assert_int_equal(l->how, MK_UPSTREAM_CONN_CLOSE);
}

static void attempt_connection_event_before_sending_is_kept(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    struct mk_upstream_conn *l = add_reused_conn(0), *fresh = fake_add(MK_STR(REPLY), -EAGAIN);
    fresh->is_gradual = true;
    call_start(&call);
    assert_true(fake_arrive(l, 1)); /* the server closes the reused connection */
    call_settle(&call);
    assert_int_equal(l->how, MK_UPSTREAM_CONN_CLOSE);
    while (fake_arrive(fresh, SIZE_MAX))
        call_settle(&call);
    expect_reply(&call);
}

/* ---- Reused connections that the server has closed ---- */

static void check_stale(int in_end)
{
    struct call call;
    begin(&call);
    struct mk_upstream_conn *l = add_reused_conn(in_end), *fresh = fake_add(MK_STR(REPLY), -EAGAIN);
    fresh->is_gradual = true;
    run(&call);
    assert_true(mk_str_eq(mk_buf_str(&l->out), mk_buf_str(&fresh->out)));
    assert_false(l->options.fresh);
    assert_true(fresh->options.fresh);
    assert_int_equal(fresh->options.tried, 0);
    assert_int_equal(l->how, MK_UPSTREAM_CONN_CLOSE); /* the server does not count as failed */
    assert_int_equal(fresh->how, MK_UPSTREAM_CONN_KEEP);
    assert_int_equal(fake.retries, 100);
    assert_int_equal(fake.n_requests, 1);
    expect_reply(&call);
}

static void attempt_stale_connection_is_replaced(void **state)
{
    (void)state;
    check_stale(0);
    check_stale(-ECONNRESET);
    check_stale(-EPIPE);
}

static void attempt_stale_connection_write_error_is_retried(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    struct mk_upstream_conn *l = add_reused_conn(-EAGAIN);
    fake_add(MK_STR(REPLY), -EAGAIN);
    l->write_max = 0;
    l->write_error = -EPIPE;
    run(&call);
    assert_int_equal(l->how, MK_UPSTREAM_CONN_CLOSE);
    expect_reply(&call);
}

static void attempt_fresh_connection_is_not_replaced(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    add_reused_conn(0);
    struct mk_upstream_conn *l = fake_add(MK_STR(""), 0);
    fake_add(MK_STR(REPLY), -EAGAIN);
    run(&call);
    assert_int_equal(fake.n_taken, 2);
    assert_int_equal(l->how, MK_UPSTREAM_CONN_FAILED);
    expect_error(&call, -ECONNRESET);
}

static void attempt_with_partial_response_is_not_retried(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    struct mk_upstream_conn *l = add_reused_conn(0);
    l->in = MK_STR("H");
    fake_add(MK_STR(REPLY), -EAGAIN);
    run(&call);
    assert_int_equal(fake.n_taken, 1);
    assert_int_equal(l->how, MK_UPSTREAM_CONN_FAILED);
    expect_error(&call, -ECONNRESET);
}

#define TOO_LATE "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 4\r\n\r\nlate"

/* The server timed out waiting for a request while this one was in flight. */
static void attempt_408_on_reused_connection_is_retried(void **state)
{
    struct call call;
    (void)state;
    for (unsigned with_content = 0; with_content < 2; with_content++) {
        begin(&call);
        if (with_content)
            call_send(&call, MK_STR("content"), true);
        struct mk_upstream_conn *l = add_reused_conn(0), *fresh = fake_add(MK_STR(REPLY), -EAGAIN);
        l->in = MK_STR(TOO_LATE);
        run(&call);
        assert_true(mk_str_eq(mk_buf_str(&l->out), mk_buf_str(&fresh->out)));
        assert_true(fresh->options.fresh);
        assert_int_equal(l->how, MK_UPSTREAM_CONN_CLOSE); /* the server does not count as failed */
        assert_str(mk_buf_str(&call.heads), "200|");
        expect_reply(&call);
    }
}

static void expect_408(struct call *call)
{
    fake_add(MK_STR(REPLY), -EAGAIN);
    run(call);
    assert_int_equal(fake.n_taken, 1);
    assert_int_equal(call->head, 0);
    assert_int_equal(mk_upstream_request_status(call->client), 408);
    assert_str(mk_buf_str(&call->body), "late");
    call_fini(call);
}

static void attempt_408_without_retry_is_forwarded(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    fake_add(MK_STR(TOO_LATE), 0); /* a new connection */
    expect_408(&call);
    begin(&call);
    call.ask.is_idempotent = false;
    add_reused_conn(0)->in = MK_STR(TOO_LATE);
    expect_408(&call);
    begin(&call);
    call_send(&call, mk_str_of(large, sizeof large), true); /* a part of the body is no longer buffered */
    add_reused_conn(0)->in = MK_STR(TOO_LATE);
    expect_408(&call);
}

/* Before a request that must not be repeated, the client checks that the connection is still open. */
static void check_unsafe(int in_end, unsigned n_taken)
{
    struct call call;
    begin(&call);
    call.ask.method = MK_STR("POST");
    call.ask.is_idempotent = false;
    call.ask.body = MK_STR("pay");
    struct mk_upstream_conn *l = add_reused_conn(in_end);
    if (in_end != -EAGAIN)
        l->arrived = 1; /* the server has already closed the connection */
    fake_add(MK_STR(REPLY), -EAGAIN);
    call_start(&call);
    assert_int_equal(fake.n_taken, 1); /* at the end of the iteration, other requests are sent as well */
    assert_true(fake_end_iteration());
    assert_int_equal(fake.n_taken, n_taken);
    assert_int_equal(l->out.len == 0, n_taken == 2);
    if (n_taken == 2) {
        fake_announce(call_link());
        call_settle(&call);
        assert_int_equal(l->how, MK_UPSTREAM_CONN_CLOSE);
        expect_reply(&call);
        return;
    }
    l->in_end = 0;
    fake_arrive(l, 1);
    call_settle(&call);
    assert_int_equal(fake.n_taken, 1);
    expect_error(&call, -ECONNRESET);
}

static void attempt_unsafe_request_is_sent_once(void **state)
{
    (void)state;
    check_unsafe(0, 2);
    check_unsafe(-ECONNRESET, 2);
    check_unsafe(-EAGAIN, 1);
}

static void attempt_unsafe_request_is_retried_if_nothing_was_sent(void **state)
{
    struct call call;
    (void)state;
    for (size_t write_max = 0; write_max < 2; write_max++) {
        begin(&call);
        call.ask.is_idempotent = false;
        struct mk_upstream_conn *l = add_reused_conn(-EAGAIN);
        l->write_max = write_max;
        l->write_error = -EPIPE;
        fake_add(MK_STR(REPLY), -EAGAIN);
        run(&call);
        if (write_max)
            expect_error(&call, -EPIPE);
        else
            expect_reply(&call);
    }
}

/* Data that arrives before the request is sent cannot be its response. */
static void attempt_reused_connection_with_unsolicited_data_is_dropped(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    call.ask.is_idempotent = false;
    struct mk_upstream_conn *l = add_reused_conn(-EAGAIN);
    l->in = MK_STR("HTTP/1.1 200 OK\r\n");
    l->arrived = 1;
    fake_add(MK_STR(REPLY), -EAGAIN);
    run(&call);
    assert_int_equal(l->how, MK_UPSTREAM_CONN_CLOSE);
    expect_reply(&call);
}

/* ---- Resending the body ---- */

static void attempt_retry_resends_small_body(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    call_send(&call, MK_STR("hello"), true);
    struct mk_upstream_conn *l = add_reused_conn(0), *fresh = fake_add(MK_STR(REPLY), -EAGAIN);
    run(&call);
    assert_true(mk_str_ends(mk_buf_str(&fresh->out), MK_STR("\r\n\r\nhello")));
    assert_true(mk_str_eq(mk_buf_str(&l->out), mk_buf_str(&fresh->out)));
    assert_int_equal(call.n_rewinds, 0);
    expect_reply(&call);
}

static void attempt_retry_continues_body_after_resent_part(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    call_send(&call, MK_STR("hello"), false);
    call.available = 2;
    struct mk_upstream_conn *l = add_reused_conn(0), *fresh = fake_add(MK_STR(REPLY), -EAGAIN);
    fresh->is_gradual = true;
    call_start(&call);
    fake_arrive(l, 1);
    call_settle(&call);
    assert_true(mk_str_ends(mk_buf_str(&fresh->out), MK_STR("\r\n\r\n0002\r\nhe\r\n")));
    call.available = 5;
    mk_upstream_request_resume(call.client);
    assert_true(
        mk_str_ends(mk_buf_str(&fresh->out), MK_STR("\r\n\r\n0002\r\nhe\r\n0003\r\nllo\r\n0\r\n\r\n")));
    fake_arrive(fresh, SIZE_MAX);
    call_settle(&call);
    expect_reply(&call);
}

static void send_large(struct call *call, unsigned n_taken)
{
    struct mk_upstream_conn *l = add_reused_conn(0), *fresh = fake_add(MK_STR(REPLY), -EAGAIN);
    fresh->is_gradual = true;
    run(call);
    assert_int_equal(fake.n_taken, n_taken);
    if (n_taken == 1) {
        expect_error(call, -ECONNRESET);
        return;
    }
    assert_true(mk_str_ends(mk_buf_str(&l->out), mk_str_of(large, sizeof large)));
    assert_true(mk_str_eq(mk_buf_str(&l->out), mk_buf_str(&fresh->out)));
    expect_reply(call);
}

static void attempt_retry_rewinds_large_body(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    call.ask.body = mk_str_of(large, sizeof large);
    send_large(&call, 2);

    begin(&call);
    call_send(&call, mk_str_of(large, sizeof large), true);
    call.ask.body_source = &call_source_again;
    send_large(&call, 2);

    begin(&call);
    call_send(&call, mk_str_of(large, sizeof large), true);
    call.ask.body_source = &call_source_again;
    call.cannot_rewind = true;
    send_large(&call, 1);

    begin(&call);
    call_send(&call, mk_str_of(large, sizeof large), true);
    send_large(&call, 1);
}

/* If the body cannot be rewound, the client checks the connection first, as for requests that must not be
 * repeated. */
static void attempt_body_without_rewind_needs_open_connection(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    call_send(&call, mk_str_of(large, sizeof large), true);
    struct mk_upstream_conn *l = add_reused_conn(0), *fresh = fake_add(MK_STR(REPLY), -EAGAIN);
    l->is_gradual = false; /* closed, although no event has reported it */
    fresh->is_gradual = true;
    call_run(&call, SIZE_MAX, SIZE_MAX);
    assert_int_equal(l->out.len, 0);
    assert_int_equal(l->how, MK_UPSTREAM_CONN_CLOSE);
    assert_true(mk_str_ends(mk_buf_str(&fresh->out), mk_str_of(large, sizeof large)));
    expect_reply(&call);
}

/* ---- Other servers ---- */

static void begin_with(struct call *call, unsigned tries)
{
    begin(call);
    fake.n_servers = 3;
    call->ask.limits.max_tries = tries;
    call->ask.conn.server = 1;
    for (int i = 0; i < 3; i++) {
        struct mk_upstream_conn *l = fake_add(MK_STR(""), 0);
        l->server = (i + 1) % 3;
    }
}

static void attempt_failure_tries_another_server(void **state)
{
    struct call call;
    (void)state;
    begin_with(&call, 3);
    fake.links[2].in = MK_STR(REPLY);
    run(&call);
    assert_int_equal(fake.links[0].options.server, 1);
    assert_int_equal(fake.links[0].options.tried, 0);
    assert_int_equal(fake.links[1].options.server, -1);
    assert_int_equal(fake.links[1].options.tried, 2);
    assert_false(fake.links[1].options.fresh);
    assert_int_equal(fake.links[2].options.tried, 6);
    assert_int_equal(fake.links[0].how, MK_UPSTREAM_CONN_FAILED);
    assert_int_equal(fake.links[1].how, MK_UPSTREAM_CONN_FAILED);
    assert_int_equal(fake.retries, 98);
    assert_int_equal(mk_upstream_request_server(call.client), 0);
    assert_str(mk_upstream_request_server_name(call.client), "a:80");
    expect_reply(&call);
}

static void attempt_truncated_head_tries_another_server(void **state)
{
    struct call call;
    (void)state;
    for (unsigned is_safe = 0; is_safe < 2; is_safe++) {
        begin_with(&call, 3);
        call.ask.is_idempotent = is_safe;
        fake.links[0].in = MK_STR("HTTP/1.1 404 Not Found\r\nX-Half: ");
        fake.links[1].in = MK_STR(REPLY);
        run(&call);
        assert_int_equal(fake.n_taken, 1 + is_safe);
        assert_int_equal(fake.links[0].how, MK_UPSTREAM_CONN_FAILED);
        if (is_safe)
            expect_reply(&call);
        else
            expect_error(&call, -ECONNRESET);
    }
}

static void attempt_max_tries_limits_servers(void **state)
{
    static const unsigned tries[] = {0, 1, 2};
    (void)state;
    for (size_t i = 0; i < MK_LEN(tries); i++) {
        struct call call;
        begin_with(&call, tries[i]);
        run(&call);
        assert_int_equal(fake.n_taken, tries[i] ? tries[i] : 1);
        expect_error(&call, -ECONNRESET);
    }
}

static void attempt_tries_no_server_twice(void **state)
{
    struct call call;
    (void)state;
    begin_with(&call, 9);
    run(&call);
    assert_int_equal(fake.n_taken, 3);
    assert_int_equal(fake.retries, 98); /* after the last server, no other was left to try */
    expect_error(&call, -ECONNRESET);
}

static void attempt_retry_budget_limits_retries(void **state)
{
    struct call call;
    (void)state;
    begin_with(&call, 3);
    fake.retries = 0;
    run(&call);
    assert_int_equal(fake.n_taken, 1);
    expect_error(&call, -ECONNRESET);
}

static void attempt_unsafe_request_tries_one_server(void **state)
{
    struct call call;
    (void)state;
    begin_with(&call, 3);
    call.ask.is_idempotent = false;
    run(&call);
    assert_int_equal(fake.n_taken, 1);
    expect_error(&call, -ECONNRESET);
}

static void attempt_malformed_response_is_not_retried(void **state)
{
    struct call call;
    (void)state;
    begin_with(&call, 3);
    fake.links[0].in = MK_STR("SSH-2.0");
    run(&call);
    assert_int_equal(fake.n_taken, 1);
    expect_error(&call, -EPROTO);
}

static void attempt_stale_connection_of_second_server_is_replaced(void **state)
{
    struct call call;
    (void)state;
    begin_with(&call, 2);
    fake.links[1].was_kept = true;
    fake.links[2].server = 2;
    fake.links[2].in = MK_STR(REPLY);
    run(&call);
    assert_int_equal(fake.links[1].how, MK_UPSTREAM_CONN_CLOSE);
    assert_true(fake.links[2].options.fresh);
    assert_int_equal(fake.links[2].options.tried, 2);
    expect_reply(&call);
}

static void attempt_reports_last_error(void **state)
{
    struct call call;
    (void)state;
    begin_with(&call, 3);
    fake.links[1].state = -EHOSTUNREACH;
    run(&call);
    expect_error(&call, -EHOSTUNREACH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attempt_waits_for_connection),
        cmocka_unit_test(attempt_connect_error_is_reported),
        cmocka_unit_test(attempt_request_may_be_freed_at_any_time),
        cmocka_unit_test(attempt_on_reused_connection_is_sent_at_iteration_end),
        cmocka_unit_test(attempt_timeout_starts_when_request_is_sent),
        cmocka_unit_test(attempt_can_be_cancelled_before_it_is_sent),
        cmocka_unit_test(attempt_connection_event_before_sending_is_kept),
        cmocka_unit_test(attempt_stale_connection_is_replaced),
        cmocka_unit_test(attempt_stale_connection_write_error_is_retried),
        cmocka_unit_test(attempt_fresh_connection_is_not_replaced),
        cmocka_unit_test(attempt_with_partial_response_is_not_retried),
        cmocka_unit_test(attempt_408_on_reused_connection_is_retried),
        cmocka_unit_test(attempt_408_without_retry_is_forwarded),
        cmocka_unit_test(attempt_unsafe_request_is_sent_once),
        cmocka_unit_test(attempt_unsafe_request_is_retried_if_nothing_was_sent),
        cmocka_unit_test(attempt_reused_connection_with_unsolicited_data_is_dropped),
        cmocka_unit_test(attempt_retry_resends_small_body),
        cmocka_unit_test(attempt_retry_continues_body_after_resent_part),
        cmocka_unit_test(attempt_retry_rewinds_large_body),
        cmocka_unit_test(attempt_body_without_rewind_needs_open_connection),
        cmocka_unit_test(attempt_failure_tries_another_server),
        cmocka_unit_test(attempt_truncated_head_tries_another_server),
        cmocka_unit_test(attempt_max_tries_limits_servers),
        cmocka_unit_test(attempt_tries_no_server_twice),
        cmocka_unit_test(attempt_retry_budget_limits_retries),
        cmocka_unit_test(attempt_unsafe_request_tries_one_server),
        cmocka_unit_test(attempt_malformed_response_is_not_retried),
        cmocka_unit_test(attempt_stale_connection_of_second_server_is_replaced),
        cmocka_unit_test(attempt_reports_last_error),
    };
    for (size_t i = 0; i < sizeof large; i++)
        large[i] = (char)('a' + i * 7 / 3 % 26);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

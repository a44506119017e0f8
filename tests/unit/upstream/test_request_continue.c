/* SPDX-License-Identifier: Apache-2.0 */
/* The client holds a request body back until the server sends 100 Continue (Expect: 100-continue). */
#include "unit/upstream/request_case.h"

#define ASKS  "HTTP/1.1 100 Continue\r\n\r\n"
#define REPLY "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
#define HEAD  "POST / HTTP/1.1\r\nHost: example.org\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"

enum { RESPONSE_MS = 1000 };

static void begin(struct call *call, mk_str script)
{
    fake_init();
    call_init(call);
    call->ask.method = MK_STR("POST");
    call->ask.limits.response_timeout_ms = RESPONSE_MS;
    call->ask.expects_continue = true;
    call_send(call, MK_STR("hello"), true);
    fake_add(script, -EAGAIN)->is_gradual = true;
}

static void arrive(struct call *call, size_t n)
{
    assert_true(fake_arrive(call_link(), n));
    call_settle(call);
}

static void expect_reply(struct call *call, const char *heads, enum mk_upstream_conn_disposition how)
{
    assert_int_equal(call->end, 0);
    assert_str(mk_buf_str(&call->heads), heads);
    assert_str(mk_buf_str(&call->body), "hi");
    assert_int_equal(call_link()->how, how);
    call_fini(call);
}

static void continue_100_releases_held_body(void **state)
{
    struct call call;
    (void)state;
    begin(&call, MK_STR(ASKS REPLY));
    call_start(&call);
    call_settle(&call);
    assert_str(mk_buf_str(&call_link()->out), HEAD);
    assert_int_equal(call.n_pulls, 0);
    mk_upstream_request_resume(call.client);
    call_settle(&call);
    assert_int_equal(call.n_pulls, 0);
    assert_true(mk_upstream_request_is_sending(call.client));
    arrive(&call, sizeof ASKS - 1);
    assert_str(mk_buf_str(&call_link()->out), HEAD "hello");
    arrive(&call, SIZE_MAX);
    expect_reply(&call, "200|", MK_UPSTREAM_CONN_KEEP);
}

static void continue_100_releases_held_chunked_body(void **state)
{
    struct call call;
    (void)state;
    begin(&call, MK_STR(ASKS REPLY));
    call.ask.length = MK_LENGTH_UNKNOWN;
    call_start(&call);
    arrive(&call, sizeof ASKS - 1);
    assert_true(mk_str_ends(mk_buf_str(&call_link()->out),
                            MK_STR("Expect: 100-continue\r\n\r\n0005\r\nhello\r\n0\r\n\r\n")));
    arrive(&call, SIZE_MAX);
    expect_reply(&call, "200|", MK_UPSTREAM_CONN_KEEP);
}

static void continue_other_interim_responses_keep_body_held(void **state)
{
    struct call call;
    (void)state;
    begin(&call, MK_STR("HTTP/1.1 103 Early Hints\r\n\r\n" ASKS REPLY));
    call_start(&call);
    arrive(&call, sizeof "HTTP/1.1 103 Early Hints\r\n\r\n" - 1);
    assert_int_equal(call.n_pulls, 0);
    arrive(&call, SIZE_MAX);
    assert_int_equal(call.n_pulls, 1);
    expect_reply(&call, "103|200|", MK_UPSTREAM_CONN_KEEP);
}

static void continue_final_response_leaves_held_body_unsent(void **state)
{
    static const mk_str replies[] = {MK_STR_INIT(REPLY),
                                     MK_STR_INIT("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nhi")};
    struct call call;
    (void)state;
    for (size_t i = 0; i < MK_LEN(replies); i++) {
        begin(&call, replies[i]);
        call_start(&call);
        arrive(&call, replies[i].len - 1);
        assert_false(mk_upstream_request_is_sending(call.client));
        arrive(&call, 1);
        assert_int_equal(call.n_pulls, 0);
        assert_str(mk_buf_str(&call_link()->out), HEAD);
        expect_reply(&call, i ? "413|" : "200|", MK_UPSTREAM_CONN_CLOSE);
    }
}

static void continue_silent_server_times_out(void **state)
{
    struct call call;
    (void)state;
    begin(&call, MK_STR(REPLY));
    call_start(&call);
    fake_pass(RESPONSE_MS - 1);
    call_settle(&call);
    assert_int_equal(call.head, -EAGAIN);
    fake_pass(1);
    call_settle(&call);
    assert_int_equal(call.head, -ETIMEDOUT);
    assert_string_equal(mk_upstream_request_error_text(call.client), "the server does not answer");
    assert_int_equal(call.n_pulls, 0);
    call_fini(&call);
}

/* The server has closed the reused connection: the client resends the head, and holds the body back again. */
static void continue_retry_holds_body_again(void **state)
{
    struct call call;
    (void)state;
    begin(&call, MK_STR(""));
    call.ask.method = MK_STR("PUT");
    fake.links[0].in_end = 0;
    fake.links[0].was_kept = true;
    fake_add(MK_STR(ASKS REPLY), -EAGAIN)->is_gradual = true;
    call_start(&call);
    call_settle(&call);
    arrive(&call, SIZE_MAX);
    assert_int_equal(fake.n_taken, 2);
    assert_int_equal(call.n_pulls, 0);
    arrive(&call, sizeof ASKS - 1);
    assert_int_equal(call.n_pulls, 1);
    arrive(&call, SIZE_MAX);
    expect_reply(&call, "200|", MK_UPSTREAM_CONN_KEEP);
}

static void continue_body_in_memory_is_not_held(void **state)
{
    struct call call;
    (void)state;
    begin(&call, MK_STR(REPLY));
    call.ask.body = MK_STR("hello");
    call_start(&call);
    assert_str(mk_buf_str(&call_link()->out),
               "POST / HTTP/1.1\r\nHost: example.org\r\nContent-Length: 5\r\n\r\nhello");
    arrive(&call, SIZE_MAX);
    expect_reply(&call, "200|", MK_UPSTREAM_CONN_KEEP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(continue_100_releases_held_body),
        cmocka_unit_test(continue_100_releases_held_chunked_body),
        cmocka_unit_test(continue_other_interim_responses_keep_body_held),
        cmocka_unit_test(continue_final_response_leaves_held_body_unsent),
        cmocka_unit_test(continue_silent_server_times_out),
        cmocka_unit_test(continue_retry_holds_body_again),
        cmocka_unit_test(continue_body_in_memory_is_not_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Content that is held until the server asks for it (Expect: 100-continue). */
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
    call->ask.limits.response_ms = RESPONSE_MS;
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

static void held_content_is_sent_when_the_server_asks(void **state)
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

static void held_content_is_sent_in_chunks(void **state)
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

static void other_interim_responses_ask_for_nothing(void **state)
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

static void final_response_leaves_held_content_unsent(void **state)
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

static void server_that_does_not_ask_is_timed_out(void **state)
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

/* The kept connection was closed: the head goes out again, and waits again. */
static void another_attempt_holds_the_content_too(void **state)
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

static void content_that_is_there_is_not_held(void **state)
{
    struct call call;
    (void)state;
    begin(&call, MK_STR(REPLY));
    call.ask.content = MK_STR("hello");
    call_start(&call);
    assert_str(mk_buf_str(&call_link()->out),
               "POST / HTTP/1.1\r\nHost: example.org\r\nContent-Length: 5\r\n\r\nhello");
    arrive(&call, SIZE_MAX);
    expect_reply(&call, "200|", MK_UPSTREAM_CONN_KEEP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(held_content_is_sent_when_the_server_asks),
        cmocka_unit_test(held_content_is_sent_in_chunks),
        cmocka_unit_test(other_interim_responses_ask_for_nothing),
        cmocka_unit_test(final_response_leaves_held_content_unsent),
        cmocka_unit_test(server_that_does_not_ask_is_timed_out),
        cmocka_unit_test(another_attempt_holds_the_content_too),
        cmocka_unit_test(content_that_is_there_is_not_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

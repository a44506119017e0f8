/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1 trailers: the server returns the trailers of the request with the response. */
#include "unit/connection/conn_case.h"

#define POST                                                                                                 \
    "POST /trailers HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nTransfer-Encoding: "                              \
    "chunked\r\n\r\n3\r\nabc\r\n0\r\n"

static void expect(const char *trailers)
{
    struct h1_response r;
    assert_int_equal(conn_response(&t, &r, false), H1_RESPONSE_COMPLETE);
    assert_int_equal(r.status, 200);
    assert_str(mk_buf_str(&r.content), "abc");
    assert_str(mk_buf_str(&r.trailers), trailers);
    assert_true(*trailers == '\0' || mk_str_eq(h1_response_header(&r, MK_HEADER_TRAILER), MK_STR("X-First")));
    h1_response_fini(&r);
}

static void h1_trailers_are_received_and_sent(void **state)
{
    (void)state;
    conn_open(&t, POST "A: 1\r\nHost: b\r\nb:  two \r\n\r\n" POST "\r\n");
    conn_run(&t);
    expect("X-First: known\r\nA: 1\r\nb: two\r\n");
    expect("X-First: known\r\n");
    conn_expect_state(&t, MK_CONN_IDLE);
}

static void h1_trailers_may_arrive_byte_by_byte(void **state)
{
    (void)state;
    const char *text = POST "A: 1\r\nB: 2\r\n\r\n";
    conn_open(&t, "");
    for (const char *p = text; *p; p++) {
        conn_send_bytes(&t, mk_str_of(p, 1));
        conn_run_server(&t);
    }
    conn_run(&t);
    expect("X-First: known\r\nA: 1\r\nB: 2\r\n");
}

/* Sends as many trailers as the limit allows, then the same trailers with a lower limit. */
static void h1_trailers_over_limit_get_error(void **state)
{
    (void)state;
    static char expected_body[16384], expected[16384];
    struct mk_buf out = mk_buf_fixed(expected_body, sizeof expected_body),
                  in = mk_buf_fixed(expected, sizeof expected);
    t.limits.head.fields_max = 100;
    mk_buf_add(&out, MK_STR(POST));
    mk_buf_add(&in, MK_STR("X-First: known\r\n"));
    for (int i = 0; i < 100; i++)
        for (unsigned to = 0; to < 2; to++)
            mk_buf_addf(to ? &out : &in, "Name-%d: %070d\r\n", i, i);
    mk_buf_add(&out, MK_STR("\r\n"));
    mk_buf_add_char(&in, '\0');
    assert_false(in.failed);
    conn_open(&t, "");
    conn_set_send_buffer(&t, 1);
    conn_send_bytes(&t, mk_buf_str(&out));
    conn_run(&t);
    expect(expected);
    t.limits.head.fields_max = 99;
    conn_send_bytes(&t, mk_buf_str(&out));
    conn_run(&t);
    conn_expect(&t, 500, NULL); /* the handler responds to -EBADMSG with 500 */
    assert_true(t.ended);
}

static void h1_trailers_are_sent_only_if_accepted(void **state)
{
    (void)state;
    conn_open(&t, "POST /trailers HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
                  "chunked\r\n\r\n3\r\nabc\r\n0\r\nA: 1\r\n\r\n"
                  "POST /trailers HTTP/1.0\r\nHost: a\r\nTE: trailers\r\nContent-Length: 3\r\n\r\nabc");
    conn_run(&t);
    expect("");
    expect("");
    assert_true(t.ended);
}

int main(void)
{
    const struct CMUnitTest tests[] = {fixture_test(h1_trailers_are_received_and_sent, setup),
                                       fixture_test(h1_trailers_may_arrive_byte_by_byte, setup),
                                       fixture_test(h1_trailers_over_limit_get_error, setup),
                                       fixture_test(h1_trailers_are_sent_only_if_accepted, setup)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

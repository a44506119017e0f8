/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a large body the server pulls at once. */
#include "unit/connection/conn_case.h"

static void expect_source(size_t n)
{
    struct h1_response r;
    assert_int_equal(conn_response(&t, &r, false), H1_RESPONSE_COMPLETE);
    assert_int_equal(r.content.len, n);
    for (size_t i = 0; i < n; i++)
        if (r.content.p[i] != handlers_byte(i))
            fail_msg("byte %zu is wrong", i);
    h1_response_fini(&r);
}

/* Gives the socket a send buffer of this size and sends the request. Skips the test if the kernel allows less
 * space than `must_be`. */
static void request_with_space(int bytes, size_t must_be, const char *text)
{
    handlers_largest_buffer = 0;
    conn_open(&t, "");
    conn_set_send_buffer(&t, bytes);
    if (t.conn->stream.ops->room(&t.conn->stream) < must_be)
        skip(); /* net.core.wmem_max is too small */
    conn_send(&t, text);
    conn_run_server(&t);
}

static void h1_width_large_socket_buffer_gets_large_pulls(void **state)
{
    (void)state;
    request_with_space(1 << 20, MK_SEND_QUEUE_WIDE_BUFFER, GET("/source?n=200000") GET("/source?n=100"));
    assert_in_range(handlers_largest_buffer, 190000, MK_SEND_QUEUE_WIDE_BUFFER);
    assert_int_equal(t.manager.out.cap, MK_SEND_QUEUE_BUFFER);
    conn_run(&t);
    expect_source(200000);
    expect_source(100);
    conn_expect_nothing(&t);
}

static void h1_width_slow_client_holds_one_buffer(void **state)
{
    (void)state;
    request_with_space(10000, 1, GET("/source?n=1000000"));
    assert_in_range(handlers_largest_buffer, 1, MK_SEND_QUEUE_BUFFER);
    assert_in_range(mk_send_queue_len(&t.conn->out), 1, MK_SEND_QUEUE_BUFFER);
    conn_run(&t);
    expect_source(1000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(h1_width_large_socket_buffer_gets_large_pulls, setup),
        fixture_test(h1_width_slow_client_holds_one_buffer, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* If an allocation fails, the request fails with an error and frees everything. */
#include "unit/oom.h"
#include "unit/upstream/request_case.h"

static enum mk_upstream_protocol protocol;
static mk_str response;
static bool is_stale; /* the server closes the first connection */

/* Replaces a buffer of the test with one that uses no allocated memory. */
static void use_fixed_buffer(struct mk_buf *b, char *buffer, size_t cap)
{
    *b = mk_buf_fixed(buffer, cap);
}

static void prepare(struct call *call)
{
    static char sizes[6][4096];
    fake_init();
    call_init(call);
    struct mk_upstream_conn *first = fake_add(is_stale ? MK_STR("") : response, is_stale ? 0 : -EAGAIN);
    first->was_kept = is_stale;
    struct mk_upstream_conn *last = fake_add(response, -EAGAIN);
    first->is_gradual = last->is_gradual = true;
    use_fixed_buffer(&call->heads, sizes[0], sizeof sizes[0]);
    use_fixed_buffer(&call->body, sizes[1], sizeof sizes[1]);
    use_fixed_buffer(&call->trailers, sizes[2], sizeof sizes[2]);
    use_fixed_buffer(&call->errors, sizes[3], sizeof sizes[3]);
    use_fixed_buffer(&first->out, sizes[4], sizeof sizes[4]);
    use_fixed_buffer(&last->out, sizes[5], sizeof sizes[5]);
}

static bool play(void)
{
    struct call call;
    prepare(&call);
    call.ask.protocol = protocol;
    call.ask.limits.response_timeout_ms = 1000;
    call_send(&call, MK_STR("hello"), protocol != MK_UPSTREAM_PROTOCOL_HTTP);
    call.ask.body_source = &call_source_again;
    call.client = mk_upstream_request_start(NULL, &call.ask, call_on_ready, &call);
    if (!call.client) {
        call_fini(&call);
        return false;
    }
    call_go(&call);
    while (!call_is_over(&call) && fake_arrive(call_link(), 7))
        call_settle(&call);
    bool all_well = call.head == 0 && call.end == 0;
    if (all_well)
        assert_str(mk_buf_str(&call.body), "hello");
    else
        assert_int_equal(call.head ? call.head : call.end, -ENOMEM);
    assert_int_equal(*mk_upstream_request_error_text(call.client) == 0, all_well);
    for (unsigned i = 0; i < fake.n_taken; i++)
        assert_int_equal(fake.links[i].how,
                         all_well && i + 1 == fake.n_taken && protocol != MK_UPSTREAM_PROTOCOL_SCGI
                             ? MK_UPSTREAM_CONN_KEEP
                             : MK_UPSTREAM_CONN_CLOSE);
    call_fini(&call);
    return all_well;
}

static void request_oom_http(void **state)
{
    (void)state;
    protocol = MK_UPSTREAM_PROTOCOL_HTTP;
    response =
        MK_STR("HTTP/1.1 103 \r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nA: b\r\n\r\n"
               "5\r\nhello\r\n0\r\nT: x\r\n\r\n");
    oom_at_each_allocation(play);
}

static void request_oom_fastcgi(void **state)
{
    (void)state;
    protocol = MK_UPSTREAM_PROTOCOL_FASTCGI;
    response = MK_STR("\1\6\0\1\0\13\0\0A: b\n\nhello\1\3\0\1\0\10\0\0\0\0\0\0\0\0\0\0");
    oom_at_each_allocation(play);
}

static void request_oom_scgi(void **state)
{
    (void)state;
    protocol = MK_UPSTREAM_PROTOCOL_SCGI;
    response = MK_STR("Content-Length: 5\n\nhello");
    oom_at_each_allocation(play);
}

static void request_oom_retry(void **state)
{
    (void)state;
    is_stale = true;
    protocol = MK_UPSTREAM_PROTOCOL_HTTP;
    response = MK_STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
    oom_at_each_allocation(play);
    is_stale = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(request_oom_http),
        cmocka_unit_test(request_oom_fastcgi),
        cmocka_unit_test(request_oom_scgi),
        cmocka_unit_test(request_oom_retry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

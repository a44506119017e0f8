/* SPDX-License-Identifier: Apache-2.0 */
/* A server goes down before it responds: its request moves to another server if it may be repeated. */
#include "unit/upstream/request_case.h"

#define REPLY "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

static void expect_reply(struct call *call)
{
    assert_int_equal(call->head, 0);
    assert_int_equal(call->end, 0);
    assert_str(mk_buf_str(&call->body), "hi");
    call_fini(call);
}

static struct mk_upstream_conn *begin_on_two(struct call *call)
{
    fake_init();
    fake.n_servers = 2;
    call_init(call);
    call->ask.limits.max_tries = 2;
    struct mk_upstream_conn *l = fake_add(MK_STR(""), -EAGAIN);
    fake_add(MK_STR(REPLY), -EAGAIN)->server = 1;
    return l;
}

static void failover_moves_request_from_server_down(void **state)
{
    struct call call;
    (void)state;
    struct mk_upstream_conn *l = begin_on_two(&call);
    fake.retries = 0; /* the retry budget applies only to failures */
    call_start(&call);
    assert_int_equal(fake.n_taken, 1);
    l->on_down(l->ctx);
    assert_int_equal(l->how, MK_UPSTREAM_CONN_CLOSE);
    assert_int_equal(fake.links[1].options.tried, 1);
    call_announce(&call);
    expect_reply(&call);
}

static void failover_resends_whole_body(void **state)
{
    struct call call;
    (void)state;
    struct mk_upstream_conn *l = begin_on_two(&call);
    call_send(&call, MK_STR("some content"), true);
    call.ask.body_source = &call_source_again;
    call.ask.method = MK_STR("PUT");
    call_start(&call);
    l->on_down(l->ctx);
    call_announce(&call);
    assert_true(mk_str_eq(mk_buf_str(&fake.links[0].out), mk_buf_str(&fake.links[1].out)));
    expect_reply(&call);
}

static void failover_keeps_request_that_may_not_be_repeated(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct call call;
        struct mk_upstream_conn *l = begin_on_two(&call);
        if (i == 0)
            call.ask.is_idempotent = false;
        else if (i == 1)
            call.ask.limits.max_tries = 1;
        else if (i == 2)
            call_send(&call, MK_STR("some content"), true); /* this body cannot be rewound */
        else
            l->in = MK_STR("HTTP/1.1 200 OK\r\n"); /* the response has already begun */
        call_start(&call);
        call_announce(&call);
        l->on_down(l->ctx);
        assert_false(l->is_released);
        assert_int_equal(fake.n_taken, 1);
        call_fini(&call);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failover_moves_request_from_server_down),
        cmocka_unit_test(failover_resends_whole_body),
        cmocka_unit_test(failover_keeps_request_that_may_not_be_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

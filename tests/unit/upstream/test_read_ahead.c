/* SPDX-License-Identifier: Apache-2.0 */
/* A client reads more slowly than the server sends: the response is spooled, which frees the connection. */
#include <stdio.h>

#include "unit/upstream/request_case.h"

enum { LENGTH = 200 * 1024, LOOK = 250 };

static char body[LENGTH];
static char in[LENGTH + 1024];
static struct mk_request *const request = (struct mk_request *)(void *)&body;

static mk_str script(const char *fields)
{
    int head = snprintf(in, sizeof in, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n", LENGTH, fields);
    for (size_t i = 0; i < sizeof body; i++)
        body[i] = (char)('a' + i % 23);
    memcpy(in + head, body, sizeof body);
    return mk_str_of(in, (size_t)head + sizeof body);
}

/* Starts a request whose head and body have arrived; the client has read none of the body. */
static struct mk_upstream_conn *begin(struct call *call, const char *fields)
{
    fake_init();
    fake.request = request;
    spool.space = SIZE_MAX;
    call_init(call);
    call->is_paused = true;
    struct mk_upstream_conn *l = fake_add(script(fields), -EAGAIN);
    call_start(call);
    call_announce(call);
    assert_int_equal(call->head, 0);
    mk_upstream_request_spool(call->client, request);
    return l;
}

static void read_all(struct call *call)
{
    call->is_paused = false;
    for (unsigned i = 0; i < 100 && call->end == -EAGAIN; i++) {
        call_go(call);
        fake_end_iteration();
    }
    assert_int_equal(call->end, 0);
    assert_int_equal(call->body.len, LENGTH);
    assert_memory_equal(call->body.p, body, LENGTH);
}

static void read_ahead_stalled_reader_frees_connection(void **state)
{
    (void)state;
    struct call call;
    struct mk_upstream_conn *l = begin(&call, "");
    fake_pass(LOOK);
    while (fake_end_iteration())
        continue;
    assert_true(l->is_released);
    assert_int_equal(l->how, MK_UPSTREAM_CONN_KEEP);
    read_all(&call);
    assert_int_equal(spool.n_made, 1);
    call_fini(&call);
}

static void read_ahead_slow_reader_frees_connection(void **state)
{
    (void)state;
    struct call call;
    char buffer[700];
    struct mk_upstream_conn *l = begin(&call, "");
    for (unsigned i = 0; i < 10; i++) { /* the client reads continuously, but never catches up */
        fake_pass(LOOK / 10);
        assert_int_equal(mk_upstream_request_read(call.client, buffer, sizeof buffer), sizeof buffer);
        mk_buf_add(&call.body, mk_str_of(buffer, sizeof buffer));
    }
    while (fake_end_iteration())
        continue;
    assert_true(l->is_released);
    read_all(&call);
    call_fini(&call);
}

static void read_ahead_reader_keeping_up_uses_no_spool(void **state)
{
    (void)state;
    struct call call;
    struct mk_upstream_conn *l = begin(&call, "");
    l->is_gradual = true;
    call.is_paused = false;
    for (l->arrived = l->at; l->arrived < l->in.len;) {
        fake_arrive(l, 3000);
        call_go(&call);
        fake_pass(LOOK);
    }
    assert_int_equal(call.body.len, LENGTH);
    assert_int_equal(spool.n_made, 0);
    call_fini(&call);
}

/* At 10 MB/s, spooling the unread data costs more than waiting for the client. */
static void read_ahead_fast_reader_uses_no_spool(void **state)
{
    (void)state;
    struct call call;
    static char buffer[64 * 1024];
    static const mk_str head = MK_STR_INIT("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
    fake_init();
    fake.request = request;
    call_init(&call);
    call.is_paused = true;
    script("");
    memcpy(in, head.p, head.len);
    struct mk_upstream_conn *l = fake_add(mk_str_of(in, sizeof in), -EAGAIN);
    call_start(&call);
    call_announce(&call);
    mk_upstream_request_spool(call.client, request);
    for (unsigned look = 0; look < 5; look++) {
        for (size_t taken = 0; taken < 3 * 1024 * 1024; l->at = head.len) /* the script is endless */
            taken += (size_t)mk_upstream_request_read(call.client, buffer, sizeof buffer);
        fake_pass(LOOK);
    }
    assert_int_equal(spool.n_made, 0);
    fake_pass(LOOK);
    assert_int_equal(spool.n_made, 1);
    call_fini(&call);
}

static void read_ahead_event_stream_is_not_spooled(void **state)
{
    (void)state;
    static const char *const types[] = {"Content-Type: text/event-stream\r\n",
                                        "content-type: Text/Event-Stream; charset=utf-8\r\n"};
    for (size_t i = 0; i < MK_LEN(types); i++) {
        struct call call;
        struct mk_upstream_conn *l = begin(&call, types[i]);
        fake_pass(LOOK);
        assert_int_equal(spool.n_made, 0);
        assert_false(l->is_released);
        call_fini(&call);
    }
}

static void read_ahead_full_spool_continues_as_reader_reads(void **state)
{
    (void)state;
    struct call call;
    struct mk_upstream_conn *l = begin(&call, "");
    char buffer[1000];
    spool.space = 50 * 1024;
    fake_pass(LOOK);
    while (fake_end_iteration())
        continue;
    assert_false(l->is_released);
    assert_int_equal(spool.len, 50 * 1024);
    assert_int_equal(mk_upstream_request_read(call.client, buffer, sizeof buffer), sizeof buffer);
    mk_buf_add(&call.body, mk_str_of(buffer, sizeof buffer));
    assert_true(fake_end_iteration());
    assert_int_equal(spool.len, 50 * 1024 + sizeof buffer);
    assert_int_equal(call.n_ready, 1); /* the client is not notified, because it still has data to read */
    read_all(&call);
    assert_true(l->is_released);
    call_fini(&call);
}

static void read_ahead_continues_after_thread_write(void **state)
{
    (void)state;
    struct call call;
    struct mk_upstream_conn *l = begin(&call, "");
    spool.refusal = -EAGAIN;
    spool.space = 64 * 1024;
    fake_pass(LOOK);
    assert_int_equal(spool.len, 64 * 1024);
    spool.space = SIZE_MAX;
    spool.on_space(spool.ctx);
    while (fake_end_iteration())
        continue;
    assert_true(l->is_released);
    read_all(&call);
    call_fini(&call);
}

static void read_ahead_notifies_reader_waiting_for_thread(void **state)
{
    (void)state;
    struct call call;
    char buffer[10];
    begin(&call, "");
    fake_pass(LOOK);
    spool.read_error = -EAGAIN;
    assert_int_equal(mk_upstream_request_read(call.client, buffer, sizeof buffer), -EAGAIN);
    spool.read_error = 0;
    unsigned before = call.n_ready;
    spool.on_space(spool.ctx);
    assert_int_equal(call.n_ready, before + 1);
    read_all(&call);
    call_fini(&call);
}

static void read_ahead_truncated_response_delivers_spool_then_error(void **state)
{
    (void)state;
    struct call call;
    fake_init();
    fake.request = request;
    spool.space = SIZE_MAX;
    call_init(&call);
    call.is_paused = true;
    struct mk_upstream_conn *l = fake_add(mk_str_first(script(""), LENGTH / 2), 0);
    call_start(&call);
    call_announce(&call);
    mk_upstream_request_spool(call.client, request);
    fake_pass(LOOK);
    while (fake_end_iteration())
        continue;
    fake_happen(l, MK_READABLE | MK_ENDED);
    assert_true(l->is_released);
    assert_int_equal(l->how, MK_UPSTREAM_CONN_FAILED);
    call.is_paused = false;
    call_go(&call);
    assert_true(call.end < 0);
    assert_true(call.body.len > LENGTH / 2 - 200);
    call_fini(&call);
}

static void read_ahead_spool_read_error_is_permanent(void **state)
{
    (void)state;
    struct call call;
    char buffer[10];
    begin(&call, "");
    fake_pass(LOOK);
    spool.read_error = -EIO;
    assert_int_equal(mk_upstream_request_read(call.client, buffer, sizeof buffer), -EIO);
    spool.read_error = 0;
    /* the spool has a gap */
    assert_int_equal(mk_upstream_request_read(call.client, buffer, sizeof buffer), -EIO);
    call_fini(&call);
}

static void read_ahead_caught_up_reader_leaves_spool(void **state)
{
    (void)state;
    struct call call;
    struct mk_upstream_conn *l = begin(&call, "");
    l->is_gradual = true;
    l->arrived = 100 * 1024;
    fake_pass(LOOK);
    call.is_paused = false;
    call_go(&call);
    assert_false(spool.is_used);
    while (fake_arrive(l, 10000))
        call_go(&call);
    assert_int_equal(call.body.len, LENGTH);
    assert_memory_equal(call.body.p, body, LENGTH);
    assert_int_equal(spool.n_made, 1);
    call_fini(&call);
}

static void read_ahead_free_releases_spool(void **state)
{
    (void)state;
    struct call call;
    struct mk_upstream_conn *l = begin(&call, "");
    spool.space = 1000;
    fake_pass(LOOK);
    assert_true(spool.is_used);
    mk_upstream_request_free(call.client);
    call.client = NULL;
    assert_false(spool.is_used);
    assert_true(l->is_released);
    call_fini(&call);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_ahead_stalled_reader_frees_connection),
        cmocka_unit_test(read_ahead_slow_reader_frees_connection),
        cmocka_unit_test(read_ahead_reader_keeping_up_uses_no_spool),
        cmocka_unit_test(read_ahead_fast_reader_uses_no_spool),
        cmocka_unit_test(read_ahead_event_stream_is_not_spooled),
        cmocka_unit_test(read_ahead_full_spool_continues_as_reader_reads),
        cmocka_unit_test(read_ahead_continues_after_thread_write),
        cmocka_unit_test(read_ahead_notifies_reader_waiting_for_thread),
        cmocka_unit_test(read_ahead_truncated_response_delivers_spool_then_error),
        cmocka_unit_test(read_ahead_spool_read_error_is_permanent),
        cmocka_unit_test(read_ahead_caught_up_reader_leaves_spool),
        cmocka_unit_test(read_ahead_free_releases_spool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

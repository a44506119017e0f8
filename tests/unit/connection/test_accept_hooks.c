/* SPDX-License-Identifier: Apache-2.0 */
/* Accept hooks, which accept or reject connections before HTTP begins. */
#include "connection/accept_hooks.h"

#include <monkey/connection.h>

#include "unit/connection/fixture.h"

#define REQUEST "GET /early HTTP/1.1\r\nHost: a\r\n\r\n"

enum { SHORT_MS = 60, HOOKS_MAX = 3 };

static struct conn_fixture t;
static struct mk_addr client; /* address reported by the kernel */
static struct mk_accept_hook hooks[HOOKS_MAX];
static unsigned n_calls[HOOKS_MAX], n_errors;
static enum mk_verdict verdicts[HOOKS_MAX];
static mk_err set_error;
static char error[256];

/* Returns the verdict in `data`. */
static enum mk_verdict on_accept(struct mk_conn *c, void *data)
{
    enum mk_verdict *v = data;
    (void)c;
    n_calls[v - verdicts]++;
    return *v;
}

/* Reads the line "PEER address\n", which names the client, before the request. */
static enum mk_verdict read_peer(struct mk_conn *c, void *data)
{
    struct mk_addr peer;
    mk_str in = mk_conn_peek(c);
    size_t end = mk_str_find(in, '\n');
    n_calls[0]++;
    assert_null(data);
    if (!mk_str_starts(mk_str_first(MK_STR("PEER "), in.len), mk_str_first(in, 5)))
        return MK_ERROR;
    if (end == MK_STR_NONE)
        return MK_WAIT;
    assert_true(mk_addr_parse(mk_str_skip(mk_str_first(in, end), 5), &peer));
    mk_conn_consume(c, end + 1);
    set_error = mk_conn_set_client_addr(c, &peer);
    return set_error ? MK_ERROR : MK_NEXT;
}

static void write_log(struct mk_log *log, enum mk_log_level level, mk_str text)
{
    (void)log;
    assert_int_equal(level, MK_LOG_ERROR);
    n_errors++;
    snprintf(error, sizeof error, "%.*s", MK_STR_ARG(text));
}

static struct mk_log error_log = {.level = MK_LOG_ERROR, .write = write_log};

static void use(size_t n)
{
    t.manager.accept_hooks = hooks;
    t.manager.n_accept_hooks = n;
}

static void setup(void)
{
    conn_setup(&t);
    memset(n_calls, 0, sizeof n_calls);
    n_errors = 0;
    set_error = 0;
    t.manager.log = &error_log;
    client = (struct mk_addr){.ip = {[10] = 0xff, [11] = 0xff, [12] = 192, [14] = 2, [15] = 7}};
    for (size_t i = 0; i < HOOKS_MAX; i++) {
        hooks[i] = (struct mk_accept_hook){.name = "sample", .on_accept = on_accept, .data = &verdicts[i]};
        verdicts[i] = MK_NEXT;
    }
}

static void setup_with_peers(void)
{
    setup();
    hooks[0] = (struct mk_accept_hook){.name = "peers", .on_accept = read_peer};
    use(1);
}

static void connect_from(const char *text)
{
    conn_open_as(&t, &mk_accept_hooks_ops, &client, text);
}

static void expect_refused(void)
{
    conn_run(&t);
    conn_expect_nothing(&t);
    assert_true(t.ended || t.reset);
    assert_int_equal(t.manager.n_conns, 0);
    assert_int_equal(t.counters.dropped, 1);
    assert_int_equal(t.n_records, 0);
}

/* ---- Verdicts ---- */

static void accept_hooks_run_in_order_before_first_byte(void **state)
{
    (void)state;
    use(3);
    verdicts[2] = MK_ERROR;
    connect_from("");
    for (int i = 0; i < HOOKS_MAX; i++)
        assert_int_equal(n_calls[i], 1);
    expect_refused();
    assert_int_equal(n_errors, 0);
}

static void accept_hooks_stop_after_refusal(void **state)
{
    (void)state;
    use(2);
    verdicts[0] = MK_ERROR;
    connect_from(REQUEST);
    assert_int_equal(n_calls[1], 0);
    expect_refused();
}

static void accept_hooks_accepted_client_is_served_in_same_iteration(void **state)
{
    (void)state;
    use(2);
    connect_from(REQUEST REQUEST);
    assert_int_equal(t.n_records, 2);
    assert_ptr_equal(t.conn->ops, &mk_h1_ops);
    conn_run(&t);
    conn_expect(&t, 200, "early\n");
    conn_expect(&t, 200, "early\n");
    assert_int_equal(n_calls[0], 1);
    assert_int_equal(n_calls[1], 1);
    assert_int_equal(t.counters.dropped, 0);
    conn_send(&t, REQUEST);
    conn_run(&t);
    conn_expect(&t, 200, "early\n");
    assert_int_equal(n_calls[0], 1); /* the hook is called for the connection, not for its requests */
}

static void accept_hooks_accepted_silent_client_times_out(void **state)
{
    (void)state;
    use(1);
    t.limits.head_ms = SHORT_MS;
    connect_from("");
    assert_ptr_equal(t.conn->ops, &mk_h1_ops);
    conn_run_for(&t, SHORT_MS * 3);
    conn_expect_nothing(&t);
    assert_true(t.ended);
    assert_int_equal(t.counters.dropped, 0);
}

static void accept_hooks_invalid_verdict_is_refused_and_reported(void **state)
{
    (void)state;
    use(1);
    verdicts[0] = MK_DONE;
    connect_from(REQUEST);
    expect_refused();
    assert_int_equal(n_errors, 1);
    assert_contains(mk_str_from_c(error), "sample returned 2 from on_accept: expected MK_NEXT");
    verdicts[0] = (enum mk_verdict)77;
    connect_from(REQUEST);
    conn_run(&t);
    assert_true(t.ended || t.reset);
    assert_int_equal(n_errors, 2);
    assert_int_equal(t.manager.n_conns, 0);
}

static void accept_hooks_can_query_worker_and_address(void **state)
{
    (void)state;
    t.manager.worker = (struct mk_worker *)(void *)&t;
    use(1);
    verdicts[0] = MK_WAIT;
    connect_from("");
    assert_ptr_equal(mk_conn_worker(t.conn), &t);
    assert_memory_equal(mk_conn_client_addr(t.conn)->ip, client.ip, 16);
    t.manager.worker = NULL;
}

/* ---- Hooks that wait for input ---- */

static void accept_hooks_consumed_input_is_not_part_of_request(void **state)
{
    (void)state;
    connect_from("PEER 198.51.100.9\n" REQUEST);
    assert_int_equal(n_calls[0], 2);
    assert_int_equal(t.n_records, 1); /* the request is served in the loop iteration in which it arrived */
    conn_run(&t);
    conn_expect(&t, 200, "early\n");
    assert_int_equal(t.conn->peer.ip[12], 198);
}

static void accept_hooks_input_may_arrive_byte_by_byte(void **state)
{
    (void)state;
    static const char all[] = "PEER 2001:db8::1\n" REQUEST;
    connect_from("");
    assert_int_equal(n_calls[0], 1);
    for (size_t i = 0; all[i]; i++) {
        conn_expect_nothing(&t);
        conn_send_bytes(&t, mk_str_of(&all[i], 1));
        conn_run(&t);
    }
    conn_expect(&t, 200, "early\n");
    /* called once on accept, then once for each byte of the PEER line */
    assert_int_equal(n_calls[0], 1 + 17);
    assert_int_equal(t.conn->peer.ip[0], 0x20);
}

static void accept_hooks_are_not_called_without_new_input(void **state)
{
    (void)state;
    connect_from("PEER ");
    unsigned before = n_calls[0];
    for (int i = 0; i < 3; i++) {
        t.conn->ops->advance(t.conn);
        conn_run(&t);
    }
    assert_int_equal(n_calls[0], before);
    assert_int_equal(t.conn->n_saved, 5);
}

static void accept_hooks_next_hook_sees_remaining_input(void **state)
{
    (void)state;
    hooks[1] = hooks[0];
    use(2);
    connect_from("PEER 198.51.100.9\nPEER 198.51.100.10\n" REQUEST);
    conn_run(&t);
    conn_expect(&t, 200, "early\n");
    assert_int_equal(n_calls[0], 3);
    assert_int_equal(t.conn->peer.ip[15], 10);
}

static void accept_hooks_earlier_hooks_are_not_repeated(void **state)
{
    (void)state;
    hooks[1] = hooks[0];
    hooks[0] = (struct mk_accept_hook){.name = "sample", .on_accept = on_accept, .data = &verdicts[1]};
    use(2);
    connect_from("PEER 198");
    conn_send(&t, ".51.100.9\n" REQUEST);
    conn_run(&t);
    conn_expect(&t, 200, "early\n");
    assert_int_equal(n_calls[1], 1);
}

static void accept_hooks_slow_client_is_closed(void **state)
{
    (void)state;
    t.limits.head_ms = SHORT_MS * 2;
    connect_from("PEER 1");
    uint64_t began = mk_clock_ms();
    for (int i = 0; i < 4 && !t.ended; i++) { /* occasional bytes do not restart the timeout */
        conn_send(&t, "1");
        conn_run_for(&t, SHORT_MS / 3);
    }
    conn_run_for(&t, SHORT_MS * 3);
    assert_true(t.ended || t.reset);
    assert_true(mk_clock_ms() - began >= SHORT_MS * 2);
    conn_expect_nothing(&t);
    assert_int_equal(t.manager.n_conns, 0);
    assert_int_equal(t.n_records, 0);
}

static void accept_hooks_have_separate_timeout(void **state)
{
    (void)state;
    t.limits.head_ms = 10000;
    connect_from("PEER 1");
    assert_int_equal(mk_conn_timeout_ms(t.conn, MK_TIMEOUT_ACCEPT_HOOK), 5000);
    assert_int_equal(t.conn->timeout, MK_TIMEOUT_ACCEPT_HOOK);
    conn_send(&t, ".2.3.4\nGET / ");
    conn_run(&t);
    assert_ptr_equal(t.conn->ops, &mk_h1_ops);
    conn_expect_state(&t, MK_CONN_HEAD);
    assert_int_equal(t.conn->timeout, MK_TIMEOUT_HEAD);
    t.limits.head_ms = 1000;
    assert_int_equal(mk_conn_timeout_ms(t.conn, MK_TIMEOUT_ACCEPT_HOOK), 1000);
}

static void accept_hooks_disconnect_leaves_no_record(void **state)
{
    (void)state;
    connect_from("PEER 1");
    shutdown(t.fd, SHUT_WR);
    conn_run(&t);
    assert_int_equal(t.manager.n_conns, 0);
    assert_int_equal(t.n_records, 0);
    assert_int_equal(t.counters.dropped, 0);
    connect_from("PEER 1");
    mk_fd_close(&t.fd);
    conn_run_server(&t);
    assert_int_equal(t.manager.n_conns, 0);
}

static void accept_hooks_half_closed_client_is_served(void **state)
{
    (void)state;
    connect_from("");
    conn_send(&t, "PEER 1.2.3.4\nGET /early HTTP/1.0\r\n\r\n");
    shutdown(t.fd, SHUT_WR);
    conn_run(&t);
    conn_expect(&t, 200, "early\n");
    conn_expect_end(&t, 1, 200, MK_OUTCOME_OK);
}

static void accept_hooks_full_input_buffer_ends_wait(void **state)
{
    (void)state;
    static char long_input[MK_INPUT_BUFFER_SIZE + 1];
    use(1);
    hooks[0] = (struct mk_accept_hook){.name = "sample", .on_accept = on_accept, .data = &verdicts[1]};
    verdicts[1] = MK_WAIT;
    memset(long_input, 'x', sizeof long_input);
    connect_from("");
    conn_send_bytes(&t, mk_str_of(long_input, MK_INPUT_BUFFER_SIZE - 1));
    conn_run(&t);
    assert_int_equal(t.manager.n_conns, 1);
    assert_int_equal(t.conn->n_saved, MK_INPUT_BUFFER_SIZE - 1);
    conn_send(&t, "x");
    expect_refused();
}

static enum mk_verdict consume_too_much(struct mk_conn *c, void *data)
{
    (void)data;
    if (!mk_conn_peek(c).len)
        return MK_WAIT;
    mk_conn_consume(c, SIZE_MAX);
    assert_int_equal(mk_conn_peek(c).len, 0);
    return MK_NEXT;
}

static void accept_hooks_cannot_consume_more_than_input(void **state)
{
    (void)state;
    use(1);
    hooks[0].on_accept = consume_too_much;
    connect_from("some noise");
    conn_send(&t, REQUEST);
    conn_run(&t);
    conn_expect(&t, 200, "early\n");
}

static void accept_hooks_wait_ends_with_server(void **state)
{
    (void)state;
    connect_from("PEER 1");
    mk_conn_close_all(&t.manager, MK_OUTCOME_SHUTDOWN);
    assert_int_equal(t.manager.n_conns, 0);
    assert_int_equal(t.n_records, 0);
}

/* ---- Connections on behalf of another client ---- */

static void setup_with_shares(void)
{
    setup_with_peers();
    mk_client_limits_init(&t.manager.peers, 2);
}

static void accept_hooks_named_client_over_limit_is_refused(void **state)
{
    (void)state;
    int before[2];
    for (int i = 0; i < 2; i++) {
        connect_from("PEER 198.51.100.9\n");
        assert_int_equal(set_error, 0);
        before[i] = t.fd;
        t.fd = -1;
    }
    assert_int_equal(t.manager.peers.n, 1); /* the client is counted, but not the proxy */
    connect_from("PEER 198.51.100.9\n");
    assert_int_equal(set_error, -EDQUOT);
    conn_run(&t);
    assert_true(t.ended || t.reset);
    assert_int_equal(t.counters.dropped, 1);
    connect_from("PEER 198.51.100.10\n");
    assert_int_equal(set_error, 0);
    mk_fd_close(&t.fd);
    mk_fd_close(&before[0]);
    conn_run_server(&t);
    connect_from("PEER 198.51.100.9\n"); /* a slot is free again */
    assert_int_equal(set_error, 0);
    mk_fd_close(&before[1]);
    mk_fd_close(&t.fd);
    conn_run_server(&t);
    assert_int_equal(t.manager.peers.n, 0);
}

static void accept_hooks_peer_naming_itself_counts_once(void **state)
{
    (void)state;
    mk_client_limits_fini(&t.manager.peers);
    mk_client_limits_init(&t.manager.peers, 1);
    connect_from("PEER 192.0.2.7\n" REQUEST);
    assert_int_equal(set_error, 0);
    conn_run(&t);
    conn_expect(&t, 200, "early\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(accept_hooks_run_in_order_before_first_byte, setup),
        fixture_test(accept_hooks_stop_after_refusal, setup),
        fixture_test(accept_hooks_accepted_client_is_served_in_same_iteration, setup),
        fixture_test(accept_hooks_accepted_silent_client_times_out, setup),
        fixture_test(accept_hooks_invalid_verdict_is_refused_and_reported, setup),
        fixture_test(accept_hooks_can_query_worker_and_address, setup),
        fixture_test(accept_hooks_consumed_input_is_not_part_of_request, setup_with_peers),
        fixture_test(accept_hooks_input_may_arrive_byte_by_byte, setup_with_peers),
        fixture_test(accept_hooks_are_not_called_without_new_input, setup_with_peers),
        fixture_test(accept_hooks_next_hook_sees_remaining_input, setup_with_peers),
        fixture_test(accept_hooks_earlier_hooks_are_not_repeated, setup_with_peers),
        fixture_test(accept_hooks_slow_client_is_closed, setup_with_peers),
        fixture_test(accept_hooks_have_separate_timeout, setup_with_peers),
        fixture_test(accept_hooks_disconnect_leaves_no_record, setup_with_peers),
        fixture_test(accept_hooks_half_closed_client_is_served, setup_with_peers),
        fixture_test(accept_hooks_full_input_buffer_ends_wait, setup),
        fixture_test(accept_hooks_cannot_consume_more_than_input, setup),
        fixture_test(accept_hooks_wait_ends_with_server, setup_with_peers),
        fixture_test(accept_hooks_named_client_over_limit_is_refused, setup_with_shares),
        fixture_test(accept_hooks_peer_naming_itself_counts_once, setup_with_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

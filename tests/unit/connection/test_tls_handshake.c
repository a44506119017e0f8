/* SPDX-License-Identifier: Apache-2.0 */
/* The TLS handshake at the start of a connection, before HTTP; the test fakes the TLS layer. */
#include "connection/tls_handshake.h"

#include "unit/connection/fixture.h"

#define HELLO "\x16\x03\x01\x00\x05hello"

static struct conn_fixture t;
static struct {
    mk_err opens, answers;
    const char *protocol;
    unsigned n_opened, n_steps;
    char early[64];
} tls;

static mk_err fake_open(struct mk_stream *s, int fd, const struct mk_tls_domain *domain, mk_str early)
{
    (void)domain;
    tls.n_opened++;
    snprintf(tls.early, sizeof tls.early, "%.*s", MK_STR_ARG(mk_str_skip(early, 5)));
    if (tls.opens)
        return tls.opens;
    assert_int_equal(s->fd, fd);
    s->tls = &tls;
    return 0;
}

static mk_err fake_handshake(struct mk_stream *s, const char **why)
{
    tls.n_steps++;
    *why = "the test says so";
    s->holds = !tls.answers;
    return tls.answers;
}

static void fake_facts(const struct mk_stream *s, struct mk_tls_conn_info *out)
{
    (void)s;
    *out = (struct mk_tls_conn_info){.protocol = mk_str_from_c(tls.protocol)};
}

static const struct mk_tls_module fake = {
    .open = fake_open, .handshake = fake_handshake, .facts = fake_facts};

static void setup(void)
{
    memset(&tls, 0, sizeof tls);
    conn_setup(&t);
    t.manager.tls = &fake;
    site_add(&t.site, "page", MK_STR("content"));
}

static void open_with(mk_str input)
{
    const struct mk_addr peer = {.is_unix = 1};
    conn_open_as(&t, &mk_tls_handshake_ops, &peer, "");
    conn_send_bytes(&t, input);
    conn_run(&t);
}

static void tls_handshake_is_followed_by_http(void **state)
{
    (void)state;
    open_with(MK_STR(HELLO));
    assert_string_equal(tls.early, "hello");
    assert_int_equal(t.counters.secured, 1);
    conn_send(&t, "GET /page HTTP/1.1\r\nHost: a\r\n\r\n");
    conn_run(&t);
    conn_expect(&t, 200, "content");
}

static void tls_handshake_starts_after_first_complete_record(void **state)
{
    (void)state;
    open_with(MK_STR("\x16\x03"));
    conn_expect_state(&t, MK_CONN_TLS);
    conn_send_bytes(&t, MK_STR("\x01\x00\x05hel"));
    conn_run(&t);
    assert_int_equal(tls.n_opened, 0);
    conn_send(&t, "lo");
    conn_run(&t);
    assert_int_equal(tls.n_opened, 1);
    assert_string_equal(tls.early, "hello");
}

static void tls_handshake_may_wait(void **state)
{
    (void)state;
    tls.answers = -EAGAIN;
    open_with(MK_STR(HELLO));
    conn_expect_state(&t, MK_CONN_TLS);
    assert_int_equal(t.conn->timeout, MK_TIMEOUT_HEAD);
    tls.answers = 0;
    conn_send(&t, "GET /page HTTP/1.1\r\nHost: a\r\n\r\n");
    conn_run(&t);
    conn_expect(&t, 200, "content");
}

static void tls_handshake_times_out(void **state)
{
    (void)state;
    t.limits.head_ms = 50;
    tls.answers = -EAGAIN;
    open_with(MK_STR(HELLO));
    conn_run_for(&t, 200);
    assert_true(t.ended || t.reset);
    assert_int_equal(t.counters.unsecured, 1);
}

static void tls_handshake_failure_closes_connection(void **state)
{
    (void)state;
    tls.answers = -EPROTO;
    open_with(MK_STR(HELLO));
    assert_true(t.ended || t.reset);
    conn_expect_nothing(&t);
    assert_int_equal(t.counters.unsecured, 1);
    assert_int_equal(t.n_records, 0);
}

static void tls_handshake_that_cannot_start_closes_connection(void **state)
{
    (void)state;
    tls.opens = -ENOMEM;
    open_with(MK_STR(HELLO));
    assert_true(t.ended || t.reset);
    t.manager.tls = NULL;
    open_with(MK_STR(HELLO));
    assert_true(t.ended || t.reset);
}

static void tls_handshake_plain_http_gets_400(void **state)
{
    (void)state;
    open_with(MK_STR("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    assert_contains(conn_received(&t), "HTTP/1.1 400 Bad Request\r\n");
    assert_contains(conn_received(&t), "HTTPS");
    conn_expect_state(&t, MK_CONN_LINGER);
    assert_int_equal(tls.n_opened, 0);
}

static void tls_handshake_other_input_is_closed(void **state)
{
    (void)state;
    static const mk_str others[] = {MK_STR_INIT("\x15\x03\x01\x00\x02\x02\x28"), MK_STR_INIT("\0\0\0\0"),
                                    MK_STR_INIT("\x16\x03\x01\xff\xff"), MK_STR_INIT("\x80\x2e\x01")};
    for (unsigned i = 0; i < MK_LEN(others); i++) {
        open_with(others[i]);
        assert_true(t.ended || t.reset);
        conn_expect_nothing(&t);
        assert_int_equal(t.counters.unsecured, i + 1);
    }
    assert_int_equal(tls.n_opened, 0);
}

static void tls_handshake_acme_challenge_closes_connection(void **state)
{
    (void)state;
    tls.protocol = "acme-tls/1";
    open_with(MK_STR(HELLO));
    conn_expect_state(&t, MK_CONN_LINGER);
    assert_true(t.ended);
}

static void tls_handshake_quota_delays_handshake(void **state)
{
    (void)state;
    tls.answers = -EAGAIN;
    open_with(MK_STR(HELLO));
    t.manager.handshakes.left = 0; /* other handshakes have used up the limit of this iteration */
    unsigned before = tls.n_steps;
    t.conn->stream.dry = false; /* data has arrived */
    t.conn->ops->advance(t.conn);
    t.conn->ops->advance(t.conn); /* another event in the meantime changes nothing */
    assert_int_equal(tls.n_steps, before);
    assert_true(t.conn->task_set);
    tls.answers = 0;
    conn_run(&t);
    assert_int_equal(tls.n_steps, before + 1);
    assert_int_equal(t.counters.secured, 1);
}

static void tls_handshake_queued_connection_may_close(void **state)
{
    (void)state;
    tls.answers = -EAGAIN;
    open_with(MK_STR(HELLO));
    t.manager.handshakes.left = 0;
    t.conn->stream.dry = false;
    t.conn->ops->advance(t.conn);
    assert_true(t.conn->task_set);
    mk_conn_close(t.conn, MK_OUTCOME_CLIENT_ABORTED);
    conn_run(&t);
    assert_int_equal(t.manager.n_conns, 0);
    assert_null(t.manager.handshakes.first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(tls_handshake_is_followed_by_http, setup),
        fixture_test(tls_handshake_starts_after_first_complete_record, setup),
        fixture_test(tls_handshake_may_wait, setup),
        fixture_test(tls_handshake_times_out, setup),
        fixture_test(tls_handshake_failure_closes_connection, setup),
        fixture_test(tls_handshake_that_cannot_start_closes_connection, setup),
        fixture_test(tls_handshake_plain_http_gets_400, setup),
        fixture_test(tls_handshake_other_input_is_closed, setup),
        fixture_test(tls_handshake_acme_challenge_closes_connection, setup),
        fixture_test(tls_handshake_quota_delays_handshake, setup),
        fixture_test(tls_handshake_queued_connection_may_close, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

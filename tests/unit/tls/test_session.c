/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/session.h"

#include <stdint.h>
#include <time.h>

#include "unit/tls/client_case.h"

time_t __real_time(time_t *out);
time_t __wrap_time(time_t *out);

static int64_t time_offset_s; /* OpenSSL still uses the real time */

time_t __wrap_time(time_t *out)
{
    time_t now = __real_time(NULL) + (time_t)time_offset_s;
    if (out)
        *out = now;
    return now;
}

/* Returns whether the session was resumed; both sides must agree. */
static bool was_resumed(void)
{
    struct mk_tls_conn_info client_info, server_info;
    mk_tls_conn_info_get(&c.s, &client_info);
    mk_tls_conn_info_get(&c.w.s, &server_info);
    assert_int_equal(client_info.resumed, server_info.resumed);
    return client_info.resumed;
}

static bool resumes(const char *name)
{
    tls_client_connect(&c, name);
    bool resumed = was_resumed();
    tls_client_close(&c);
    return resumed;
}

static void go_on(int version)
{
    use_version(version);
    assert_false(resumes("a.example"));
    for (unsigned i = 0; i < 3; i++)
        assert_true(resumes("a.example"));
    c.w.tickets.newest++;
    assert_true(resumes("a.example")); /* the client gets a new ticket, encrypted with the new key */
    c.w.tickets.newest++;
    assert_true(resumes("a.example"));
    c.w.tickets.newest += 2;
    assert_false(resumes("a.example"));
    assert_true(resumes("a.example"));
}

static void session_is_resumed_in_tls_1_3(void **state)
{
    (void)state;
    go_on(TLS1_3_VERSION);
}

static void session_is_resumed_in_tls_1_2(void **state)
{
    (void)state;
    go_on(TLS1_2_VERSION);
}

static void session_is_resumed_for_ip_address(void **state)
{
    (void)state;
    assert_false(resumes("192.0.2.1"));
    assert_true(resumes("192.0.2.1"));
}

/* Several connections of a worker start with the same session. */
static void session_is_shared_by_concurrent_connections(void **state)
{
    (void)state;
    enum { N = 4 };
    struct mk_stream client_info[N];
    struct mk_tls *tls[N];
    int ends[N];
    assert_false(resumes("a.example"));
    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(tls_client_open(&c, "a.example"), 0);
        assert_int_equal(mk_tls_stream_handshake(&c.s, &c.why), -EAGAIN);
        client_info[i] = c.s;
        tls[i] = c.s.tls;
        ends[i] = c.at_client;
    }
    for (unsigned i = 0; i < N; i++) {
        c.s = client_info[i];
        tls[i]->stream = &c.s;
        c.at_client = ends[i];
        assert_int_equal(tls_client_accept(&c), 0);
        assert_int_equal(tls_client_handshake(&c), 0);
        assert_true(SSL_session_reused(tls[i]->ssl));
        assert_int_equal(tls_client_relay_and_read(&c, &c.s, (char[1]){0}, 1),
                         -EAGAIN); /* the client receives the ticket */
        tls_client_close(&c);
    }
    assert_true(resumes("a.example"));
}

static void session_survives_connection_reset(void **state)
{
    (void)state;
    char buffer[16];
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        use_version(version);
        assert_false(resumes("a.example"));
        tls_client_connect(&c, "a.example");
        mk_fd_close(&c.at_client);
        assert_int_equal(tls_client_read(&c.s, buffer, sizeof buffer), -ECONNRESET);
        tls_client_close(&c);
        assert_true(resumes("a.example"));
        mk_tls_session_free(c.session);
        c.session = NULL;
    }
}

/* ---- Limits of resumption ---- */

static void session_of_other_name_is_not_resumed(void **state)
{
    (void)state;
    assert_false(resumes("a.example"));
    assert_false(resumes("x.b.example"));
    assert_true(resumes("x.b.example"));
    assert_int_equal(tls_client_try_connect(&c, "other.example"), -EPROTO);
}

/* The client of another upstream, or a client after a reload, may trust other authorities. */
static void session_is_not_shared_between_clients(void **state)
{
    (void)state;
    assert_false(resumes("a.example"));
    tls_client_load(&c);
    assert_false(resumes("a.example"));
    assert_true(resumes("a.example"));
    struct issuer other = tls_client_issuer(&c.w, "other", NULL, (struct subject){0});
    c.rules.authority = other.file;
    tls_client_load(&c);
    assert_int_equal(tls_client_try_connect(&c, "a.example"), -EPROTO);
    tls_client_issuer_free(&other);
}

/* Each session leads to the next, and none of them verifies the certificate again. */
static void session_ends_with_certificate(void **state)
{
    (void)state;
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        use_version(version);
        assert_false(resumes("a.example"));
        time_offset_s = 29 * TLS_CLIENT_DAY;
        assert_true(resumes("a.example"));
        time_offset_s = 31 * TLS_CLIENT_DAY;
        assert_false(resumes("a.example"));
        time_offset_s = 0;
        mk_tls_session_free(c.session);
        c.session = NULL;
    }
}

static void session_ends_with_authority(void **state)
{
    (void)state;
    struct issuer between = tls_client_issuer(&c.w, "between", &c.authority, (struct subject){.days = 3});
    struct mk_tls_keypair pair =
        tls_client_keypair(&c.w, "chained", &between, (struct subject){.names = "DNS:a.example"});
    FILE *f = fopen(pair.certificate, "a");
    assert_true(PEM_write_X509(f, between.x));
    fclose(f);
    tls_client_serve(&c, pair);
    assert_false(resumes("a.example"));
    time_offset_s = 2 * TLS_CLIENT_DAY;
    assert_true(resumes("a.example"));
    time_offset_s = 4 * TLS_CLIENT_DAY;
    assert_false(resumes("a.example"));
    time_offset_s = 0;
    tls_client_issuer_free(&between);
}

static void session_without_verification_does_not_end(void **state)
{
    (void)state;
    tls_client_serve(&c, tls_client_keypair(&c.w, "unknown", NULL, (struct subject){.days = 1}));
    c.rules.verifies = false;
    tls_client_load(&c);
    assert_false(resumes("a.example"));
    time_offset_s = 2 * TLS_CLIENT_DAY;
    assert_true(resumes("a.example"));
    time_offset_s = 0;
}

/* If the session were kept, a server that cannot handle it would never be reachable again. */
static void session_is_dropped_after_failed_handshake(void **state)
{
    (void)state;
    char buffer[4096];
    assert_false(resumes("a.example"));
    assert_non_null(c.session);
    assert_int_equal(tls_client_open(&c, "a.example"), 0);
    assert_int_equal(mk_tls_stream_handshake(&c.s, &c.why), -EAGAIN);
    assert_true(recv(c.at_client, buffer, sizeof buffer, 0) > 0);
    mk_fd_close(&c.at_client);
    c.s.dry = false;
    assert_int_equal(mk_tls_stream_handshake(&c.s, &c.why), -EPROTO);
    assert_null(c.session);
    tls_client_close(&c);
    assert_false(resumes("a.example"));
}

static void session_not_offered_survives_failed_handshake(void **state)
{
    (void)state;
    assert_false(resumes("a.example"));
    struct mk_tls_session *kept = c.session;
    c.session = NULL;
    assert_int_equal(tls_client_open(&c, "a.example"), 0);
    c.session = kept; /* another connection has stored this session in the meantime */
    mk_fd_close(&c.at_client);
    assert_true(mk_tls_stream_handshake(&c.s, &c.why) != -EAGAIN);
    assert_ptr_equal(c.session, kept);
    tls_client_close(&c);
    assert_true(resumes("a.example"));
}

static void session_needs_tickets(void **state)
{
    (void)state;
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        use_version(version);
        c.w.rules.tickets = NULL;
        tls_client_serve(&c, c.w.pair);
        assert_false(resumes("a.example"));
        assert_null(c.session);
        assert_false(resumes("a.example"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(session_is_resumed_in_tls_1_3, setup),
        fixture_test(session_is_resumed_in_tls_1_2, setup),
        fixture_test(session_is_resumed_for_ip_address, setup),
        fixture_test(session_is_shared_by_concurrent_connections, setup),
        fixture_test(session_survives_connection_reset, setup),
        fixture_test(session_of_other_name_is_not_resumed, setup),
        fixture_test(session_is_not_shared_between_clients, setup),
        fixture_test(session_ends_with_certificate, setup),
        fixture_test(session_ends_with_authority, setup),
        fixture_test(session_without_verification_does_not_end, setup),
        fixture_test(session_is_dropped_after_failed_handshake, setup),
        fixture_test(session_not_offered_survives_failed_handshake, setup),
        fixture_test(session_needs_tickets, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

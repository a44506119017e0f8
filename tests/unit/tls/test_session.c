/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/session.h"

#include "unit/later.h"
#include "unit/tls/callcase.h"

/* Both sides must agree on that. */
static bool was_resumed(void)
{
    struct mk_tls_conn_info ours, its;
    mk_tls_conn_info_get(&c.s, &ours);
    mk_tls_conn_info_get(&c.w.s, &its);
    assert_int_equal(ours.resumed, its.resumed);
    return ours.resumed;
}

static bool resumes(const char *name)
{
    calls_connect(&c, name);
    bool resumed = was_resumed();
    calls_end(&c);
    return resumed;
}

static void go_on(int version)
{
    use_version(version);
    assert_false(resumes("a.example"));
    for (unsigned i = 0; i < 3; i++)
        assert_true(resumes("a.example"));
    c.w.tickets.newest++;
    assert_true(resumes("a.example")); /* and gets a new ticket, sealed with the new key */
    c.w.tickets.newest++;
    assert_true(resumes("a.example"));
    c.w.tickets.newest += 2;
    assert_false(resumes("a.example"));
    assert_true(resumes("a.example"));
}

static void the_next_connection_goes_on(void **state)
{
    (void)state;
    go_on(TLS1_3_VERSION);
}

static void and_in_tls_1_2(void **state)
{
    (void)state;
    go_on(TLS1_2_VERSION);
}

static void an_address_has_sessions_too(void **state)
{
    (void)state;
    assert_false(resumes("192.0.2.1"));
    assert_true(resumes("192.0.2.1"));
}

/* Several connections of a worker begin with the same one. */
static void many_at_once(void **state)
{
    (void)state;
    enum { N = 4 };
    struct mk_stream ours[N];
    struct mk_tls *tls[N];
    int ends[N];
    assert_false(resumes("a.example"));
    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(calls_dial(&c, "a.example"), 0);
        assert_int_equal(mk_tls_stream_handshake(&c.s, &c.why), -EAGAIN);
        ours[i] = c.s;
        tls[i] = c.s.tls;
        ends[i] = c.at_client;
    }
    for (unsigned i = 0; i < N; i++) {
        c.s = ours[i];
        tls[i]->stream = &c.s;
        c.at_client = ends[i];
        assert_int_equal(calls_accept(&c), 0);
        assert_int_equal(calls_agree(&c), 0);
        assert_true(SSL_session_reused(tls[i]->ssl));
        assert_int_equal(calls_await(&c, &c.s, (char[1]){0}, 1), -EAGAIN); /* takes the ticket */
        calls_end(&c);
    }
    assert_true(resumes("a.example"));
}

static void a_server_that_is_cut_off_keeps_its_session(void **state)
{
    (void)state;
    char room[16];
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        use_version(version);
        assert_false(resumes("a.example"));
        calls_connect(&c, "a.example");
        mk_fd_close(&c.at_client);
        assert_int_equal(calls_hear(&c.s, room, sizeof room), -ECONNRESET);
        calls_end(&c);
        assert_true(resumes("a.example"));
        mk_tls_session_free(c.session);
        c.session = NULL;
    }
}

/* ---- What they are not good for ---- */

static void another_name_is_verified(void **state)
{
    (void)state;
    assert_false(resumes("a.example"));
    assert_false(resumes("x.b.example"));
    assert_true(resumes("x.b.example"));
    assert_int_equal(calls_try(&c, "other.example"), -EPROTO);
}

/* Of another upstream, or after a reload: it may trust others. */
static void another_client_verifies_by_its_own_rules(void **state)
{
    (void)state;
    assert_false(resumes("a.example"));
    calls_load(&c);
    assert_false(resumes("a.example"));
    assert_true(resumes("a.example"));
    struct issuer other = calls_issuer(&c.w, "other", NULL, (struct subject){0});
    c.rules.authority = other.file;
    calls_load(&c);
    assert_int_equal(calls_try(&c, "a.example"), -EPROTO);
    calls_issuer_free(&other);
}

/* Each session leads to the next one, and none of them verifies the certificate again. */
static void certificates_that_end_are_verified_again(void **state)
{
    (void)state;
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        use_version(version);
        assert_false(resumes("a.example"));
        later_s = 29 * CALLS_DAY;
        assert_true(resumes("a.example"));
        later_s = 31 * CALLS_DAY;
        assert_false(resumes("a.example"));
        later_s = 0;
        mk_tls_session_free(c.session);
        c.session = NULL;
    }
}

static void so_are_those_of_authorities(void **state)
{
    (void)state;
    struct issuer between = calls_issuer(&c.w, "between", &c.authority, (struct subject){.days = 3});
    struct mk_tls_keypair pair =
        calls_pair(&c.w, "chained", &between, (struct subject){.names = "DNS:a.example"});
    FILE *f = fopen(pair.certificate, "a");
    assert_true(PEM_write_X509(f, between.x));
    fclose(f);
    calls_serve(&c, pair);
    assert_false(resumes("a.example"));
    later_s = 2 * CALLS_DAY;
    assert_true(resumes("a.example"));
    later_s = 4 * CALLS_DAY;
    assert_false(resumes("a.example"));
    later_s = 0;
    calls_issuer_free(&between);
}

static void what_is_not_verified_does_not_end(void **state)
{
    (void)state;
    calls_serve(&c, calls_pair(&c.w, "unknown", NULL, (struct subject){.days = 1}));
    c.rules.verifies = false;
    calls_load(&c);
    assert_false(resumes("a.example"));
    later_s = 2 * CALLS_DAY;
    assert_true(resumes("a.example"));
    later_s = 0;
}

/* Otherwise a server that chokes on a session would never be reached again. */
static void a_handshake_that_fails_forgets_it(void **state)
{
    (void)state;
    char room[4096];
    assert_false(resumes("a.example"));
    assert_non_null(c.session);
    assert_int_equal(calls_dial(&c, "a.example"), 0);
    assert_int_equal(mk_tls_stream_handshake(&c.s, &c.why), -EAGAIN);
    assert_true(recv(c.at_client, room, sizeof room, 0) > 0);
    mk_fd_close(&c.at_client);
    c.s.dry = false;
    assert_int_equal(mk_tls_stream_handshake(&c.s, &c.why), -EPROTO);
    assert_null(c.session);
    calls_end(&c);
    assert_false(resumes("a.example"));
}

static void unless_it_did_not_offer_it(void **state)
{
    (void)state;
    assert_false(resumes("a.example"));
    struct mk_tls_session *kept = c.session;
    c.session = NULL;
    assert_int_equal(calls_dial(&c, "a.example"), 0);
    c.session = kept; /* of a connection that was made meanwhile */
    mk_fd_close(&c.at_client);
    assert_true(mk_tls_stream_handshake(&c.s, &c.why) != -EAGAIN);
    assert_ptr_equal(c.session, kept);
    calls_end(&c);
    assert_true(resumes("a.example"));
}

static void servers_without_tickets_have_none(void **state)
{
    (void)state;
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        use_version(version);
        c.w.rules.tickets = NULL;
        calls_serve(&c, c.w.pair);
        assert_false(resumes("a.example"));
        assert_null(c.session);
        assert_false(resumes("a.example"));
    }
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, start, harness_stop)
    const struct CMUnitTest tests[] = {
        CASE(the_next_connection_goes_on),
        CASE(and_in_tls_1_2),
        CASE(an_address_has_sessions_too),
        CASE(many_at_once),
        CASE(a_server_that_is_cut_off_keeps_its_session),
        CASE(another_name_is_verified),
        CASE(another_client_verifies_by_its_own_rules),
        CASE(certificates_that_end_are_verified_again),
        CASE(so_are_those_of_authorities),
        CASE(what_is_not_verified_does_not_end),
        CASE(a_handshake_that_fails_forgets_it),
        CASE(unless_it_did_not_offer_it),
        CASE(servers_without_tickets_have_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

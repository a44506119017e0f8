/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/connect_error.h"

#include "unit/tls/client_case.h"

static char buffer[4096];

/* Expects that the reason contains `part`, and that another handshake call reports the same reason. */
static void expect_error_text(const char *part)
{
    assert_contains(mk_str_from_c(c.why), part);
    const char *again;
    assert_true(mk_tls_stream_handshake(&c.s, &again) != 0);
    assert_string_equal(again, c.why);
}

static void expect_failure(const char *name, const char *part)
{
    assert_int_equal(tls_client_try_connect(&c, name), -EPROTO);
    expect_error_text(part);
    tls_client_close(&c);
}

static void serve(const struct issuer *by, struct subject s)
{
    tls_client_serve(&c, tls_client_keypair(&c.w, "other", by, s));
}

/* ---- Certificates ---- */

static void connect_error_untrusted_authority(void **state)
{
    (void)state;
    struct issuer other = tls_client_issuer(&c.w, "Other Authority", NULL, (struct subject){0});
    serve(&other, (struct subject){.names = "DNS:a.example"});
    expect_failure("a.example",
                   "from an authority that is not trusted, CN=Other Authority: add that authority to the "
                   "file of trusted authorities");
    tls_client_issuer_free(&other);
}

static void connect_error_untrusted_chain(void **state)
{
    (void)state;
    struct issuer other = tls_client_issuer(&c.w, "Other Authority", NULL, (struct subject){0});
    struct mk_tls_keypair pair =
        tls_client_keypair(&c.w, "chained", &other, (struct subject){.names = "DNS:a.example"});
    FILE *f = fopen(pair.certificate, "a");
    assert_true(PEM_write_X509(f, other.x));
    fclose(f);
    tls_client_serve(&c, pair);
    expect_failure("a.example", "not trusted, CN=Other Authority");
    tls_client_issuer_free(&other);
}

static void connect_error_self_signed(void **state)
{
    (void)state;
    serve(NULL, (struct subject){.names = "DNS:a.example"});
    expect_failure("a.example",
                   "its certificate CN=other is self-signed and not trusted: add it to the file");
    c.rules.authority = c.w.pair.certificate;
    tls_client_load(&c);
    tls_client_connect(&c, "a.example");
}

static void connect_error_name_mismatch(void **state)
{
    (void)state;
    expect_failure("c.example",
                   "is for a.example, *.b.example, 192.0.2.1, 2001:db8::1, not for c.example: set the name");
    expect_failure("x.x.b.example", ", not for x.x.b.example");
    expect_failure("192.0.2.7", ", not for 192.0.2.7");
    serve(&c.authority, (struct subject){.names = "DNS:w*.b.example"});
    expect_failure("www.b.example", "is for w*.b.example, not");
    serve(&c.authority, (struct subject){0});
    expect_failure("a.example", "is for CN=other, not for a.example");
}

static void connect_error_many_names_are_truncated(void **state)
{
    (void)state;
    char names[8192] = "";
    for (unsigned i = 0; i < 200; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%sDNS:host-%u.example", i ? "," : "",
                 i);
    serve(&c.authority, (struct subject){.names = names});
    assert_int_equal(tls_client_try_connect(&c, "c.example"), -EPROTO);
    assert_contains(mk_str_from_c(c.why), "host-0.example, host-1.example, ");
    assert_contains(mk_str_from_c(c.why), " and others, not for c.example");
    assert_true(strlen(c.why) < 700);
}

static void connect_error_control_characters_are_escaped(void **state)
{
    (void)state;
    serve(&c.authority, (struct subject){.names = "DNS:a\033[31m\n.example"});
    expect_failure("c.example", "is for a\\x1b[31m\\x0a.example, not");
}

static void connect_error_expired(void **state)
{
    (void)state;
    /* Sets the certificate directly, since our server refuses to load an expired one. */
    SSL_CTX *ctx = c.w.context->ctx;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *old = tls_client_sign(key, "old", &c.authority,
                                (struct subject){.names = "DNS:a.example", .from = -20, .days = -10});
    assert_true(SSL_CTX_use_certificate(ctx, old) && SSL_CTX_use_PrivateKey(ctx, key));
    expect_failure("a.example", "the certificate CN=old expired on 20");
    expect_failure("a.example", " UTC: the server needs a new one");
    X509_free(old);
    old = tls_client_sign(key, "new", &c.authority, (struct subject){.names = "DNS:a.example", .from = 10});
    assert_true(SSL_CTX_use_certificate(ctx, old) && SSL_CTX_use_PrivateKey(ctx, key));
    expect_failure("a.example", "the certificate CN=new is not valid before 20");
    expect_failure("a.example", ": check the clocks");
    X509_free(old);
    EVP_PKEY_free(key);
}

static void connect_error_wrong_key_usage(void **state)
{
    (void)state;
    serve(&c.authority, (struct subject){.names = "DNS:a.example", .usage = "clientAuth"});
    /* The reason is "unsuitable" or "unsupported", depending on the version of OpenSSL. */
    expect_failure("a.example", "OpenSSL rejects the certificate CN=other: un");
}

static void connect_error_none_without_verification(void **state)
{
    (void)state;
    c.rules = (struct mk_tls_client_settings){.authority = "/nowhere"};
    tls_client_load(&c);
    serve(NULL, (struct subject){.names = "DNS:a.example", .usage = "clientAuth"});
    tls_client_connect(&c, "c.example");
}

/* ---- Servers with another protocol ---- */

static void expect_answer(mk_str bytes, const char *part)
{
    assert_int_equal(tls_client_open(&c, "a.example"), 0);
    assert_int_equal(mk_tls_stream_handshake(&c.s, &c.why), -EAGAIN);
    assert_true(recv(c.at_client, buffer, sizeof buffer, 0) > 0);
    assert_int_equal(send(c.at_client, bytes.p, bytes.len, 0), bytes.len);
    assert_int_equal(shutdown(c.at_client, SHUT_WR), 0);
    mk_err e = -EAGAIN;
    for (unsigned i = 0; i < 2 && e == -EAGAIN; i++) { /* EOF is a separate event */
        c.s.dry = false;
        e = mk_tls_stream_handshake(&c.s, &c.why);
    }
    assert_int_equal(e, -EPROTO);
    expect_error_text(part);
    tls_client_close(&c);
}

static void connect_error_server_without_tls(void **state)
{
    (void)state;
    const char *part = "it may expect connections without TLS";
    expect_answer(MK_STR("HTTP/1.1 400 Bad Request\r\n\r\n"), part);
    expect_answer(MK_STR("SSH-2.0-OpenSSH_9.2\r\n"), part);
    expect_answer(MK_STR("220 mail.example ESMTP\r\n"), part);
    expect_answer(MK_STR("GET / HTTP/1.1\r\n\r\n"), part);
    expect_answer(MK_STR("{}"), part);
    expect_answer(MK_STR(""), part);
}

static void connect_error_alerts_are_explained(void **state)
{
    (void)state;
    static const struct {
        unsigned char alert;
        const char *part;
    } all[] = {
        {40, "it supports none of our ciphers"},
        {70, "it supports neither TLS 1.2 nor TLS 1.3"},
        {80, "internal error"},
        {112, "it has no certificate for the name a.example"},
        {120, "it does not support HTTP/1.1"},
    };
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        char alert[] = {0x15, 3, 3, 0, 2, 2, (char)all[i].alert};
        expect_answer(mk_str_of(alert, sizeof alert), all[i].part);
    }
}

static void connect_error_reset_during_handshake(void **state)
{
    (void)state;
    assert_int_equal(tls_client_open(&c, "a.example"), 0);
    assert_int_equal(mk_tls_stream_handshake(&c.s, &c.why), -EAGAIN);
    mk_fd_close(&c.at_client); /* closes with the ClientHello unread */
    c.s.dry = false;
    assert_int_equal(mk_tls_stream_handshake(&c.s, &c.why), -ECONNRESET);
    expect_error_text("it closed the connection during the handshake");
}

/* ---- Client certificates ---- */

static void require_certificates(void)
{
    c.w.rules.clients = MK_TLS_CLIENTS_REQUIRED;
    c.w.rules.client_authority = c.authority.file;
    tls_client_serve(&c, c.w.pair);
}

static void show_certificate(const struct issuer *by)
{
    struct mk_tls_keypair pair =
        tls_client_keypair(&c.w, "client", by, (struct subject){.usage = "clientAuth"});
    c.rules.certificate = pair.certificate;
    tls_client_load(&c);
}

static void connect_mutual_tls_succeeds(void **state)
{
    (void)state;
    struct mk_tls_conn_info facts;
    require_certificates();
    show_certificate(&c.authority);
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        use_version(version);
        tls_client_connect(&c, "a.example");
        mk_tls_conn_info_get(&c.w.s, &facts);
        assert_str(facts.client_subject, "CN=client");
        tls_client_close(&c);
    }
}

/* In TLS 1.3, the client finishes the handshake before the server has received the client's certificate. */
static void fail_later(const char *part)
{
    const char *unheard;
    use_version(TLS1_3_VERSION);
    for (unsigned writes = 0; writes < 2; writes++) {
        assert_int_equal(tls_client_try_connect(&c, "a.example"), 0);
        assert_int_equal(c.s.ops->write(&c.s, MK_STR("hello"), false), 5);
        tls_client_relay_all(&c);
        c.w.s.dry = false;
        assert_int_equal(mk_tls_stream_handshake(&c.w.s, &unheard), -EPROTO);
        tls_client_relay_all(&c);
        if (writes) { /* a write notices the close first */
            mk_fd_close(&c.at_client);
            assert_int_equal(c.s.ops->write(&c.s, MK_STR("more"), false), -EPIPE);
        } else {
            assert_int_equal(tls_client_read(&c.s, buffer, sizeof buffer), -EPROTO);
        }
        assert_true(mk_tls_stream_handshake(&c.s, &c.why) < 0);
        expect_error_text(part);
        tls_client_close(&c);
    }
}

static void connect_error_client_certificate_required(void **state)
{
    (void)state;
    require_certificates();
    fail_later("it requires a client certificate: set one");
    use_version(TLS1_2_VERSION);
    expect_failure("a.example", "it requires a client certificate: set one");
}

static void connect_error_client_certificate_rejected(void **state)
{
    (void)state;
    struct issuer other = tls_client_issuer(&c.w, "Other Authority", NULL, (struct subject){0});
    require_certificates();
    show_certificate(&other);
    fail_later("it rejects our client certificate: ");
    use_version(TLS1_2_VERSION);
    expect_failure("a.example", "it rejects our client certificate: ");
    tls_client_issuer_free(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(connect_error_untrusted_authority, setup),
        fixture_test(connect_error_untrusted_chain, setup),
        fixture_test(connect_error_self_signed, setup),
        fixture_test(connect_error_name_mismatch, setup),
        fixture_test(connect_error_many_names_are_truncated, setup),
        fixture_test(connect_error_control_characters_are_escaped, setup),
        fixture_test(connect_error_expired, setup),
        fixture_test(connect_error_wrong_key_usage, setup),
        fixture_test(connect_error_none_without_verification, setup),
        fixture_test(connect_error_server_without_tls, setup),
        fixture_test(connect_error_alerts_are_explained, setup),
        fixture_test(connect_error_reset_during_handshake, setup),
        fixture_test(connect_mutual_tls_succeeds, setup),
        fixture_test(connect_error_client_certificate_required, setup),
        fixture_test(connect_error_client_certificate_rejected, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

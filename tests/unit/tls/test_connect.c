/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/connect.h"

#include "base/mem.h"
#include "unit/tls/client_case.h"

enum { MUCH = 2 << 20, ROOM = 1 << 16 };

static char buffer[ROOM];

static void use_12_or_13(unsigned version)
{
    use_version(version == 12 ? TLS1_2_VERSION : TLS1_3_VERSION);
}

static ssize_t write_text(struct mk_stream *s, const char *text)
{
    ssize_t n = s->ops->write(s, mk_str_from_c(text), false);
    tls_client_relay_all(&c);
    return n;
}

static void expect(struct mk_stream *s, const char *text)
{
    ssize_t n = tls_client_read(s, buffer, sizeof buffer);
    assert_int_equal(n, strlen(text));
    assert_memory_equal(buffer, text, strlen(text));
}

/* ---- The handshake ---- */

static void connect_supports_tls_1_2_and_1_3(void **state)
{
    (void)state;
    struct mk_tls_conn_info facts;
    for (unsigned version = 12; version <= 13; version++) {
        use_12_or_13(version);
        tls_client_connect(&c, "a.example");
        mk_tls_conn_info_get(&c.s, &facts);
        assert_str(facts.version, version == 12 ? "TLSv1.2" : "TLSv1.3");
        assert_str(facts.protocol, "http/1.1");
        assert_false(facts.client_subject.p || facts.kernel || facts.context);
        mk_tls_conn_info_get(&c.w.s, &facts);
        assert_str(facts.protocol, "http/1.1");
        assert_string_equal(c.w.server_name, "a.example");
        tls_client_close(&c);
    }
}

static void connect_rejects_older_versions(void **state)
{
    (void)state;
    assert_int_equal(SSL_CTX_get_min_proto_version(c.client->ctx), TLS1_2_VERSION);
}

static void connect_verifies_name_and_sends_sni(void **state)
{
    (void)state;
    tls_client_connect(&c, "x.b.example");
    assert_string_equal(c.w.server_name, "x.b.example");
    tls_client_close(&c);
    tls_client_connect(&c, "A.Example.");
    assert_string_equal(c.w.server_name, "a.example");
}

static void connect_verifies_address_without_sni(void **state)
{
    (void)state;
    static const char *const addresses[] = {"192.0.2.1", "2001:db8::1", "2001:DB8:0::1"};
    for (unsigned i = 0; i < 3; i++) {
        tls_client_connect(&c, addresses[i]);
        assert_string_equal(c.w.server_name, "");
        tls_client_close(&c);
    }
    assert_int_equal(tls_client_try_connect(&c, "192.0.2.2"), -EPROTO);
}

static void connect_invalid_name_keeps_descriptor_open(void **state)
{
    (void)state;
    char name[512] = {0};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    memset(name, 'x', sizeof name - 1);
    assert_int_equal(mk_tls_connect(&c.s, fd, c.client, name, &c.session, false), -ENOMEM);
    assert_int_equal(close(fd), 0);
}

static void connect_handshake_may_be_split_anywhere(void **state)
{
    (void)state;
    for (unsigned version = 12; version <= 13; version++)
        for (c.piece = 1; c.piece < 2000; c.piece = c.piece * 3 + 1) {
            use_12_or_13(version);
            tls_client_connect(&c, "a.example");
            tls_client_close(&c);
        }
}

static void connect_last_flight_is_sent_with_first_data(void **state)
{
    (void)state;
    const char *why;
    assert_int_equal(tls_client_try_connect(&c, "a.example"), 0);
    assert_int_equal(c.server_error, -EAGAIN);
    assert_int_equal(c.s.ops->write(&c.s, MK_STR("hello"), false), 5);
    tls_client_relay_all(&c);
    c.w.s.dry = false;
    assert_int_equal(mk_tls_stream_handshake(&c.w.s, &why), 0);
    expect(&c.w.s, "hello");
}

static void connect_last_flight_is_sent_before_waiting(void **state)
{
    (void)state;
    const char *why;
    for (unsigned version = 12; version <= 13; version++) {
        use_12_or_13(version);
        assert_int_equal(tls_client_try_connect(&c, "a.example"), 0);
        assert_int_equal(tls_client_read(&c.s, buffer, sizeof buffer), -EAGAIN);
        tls_client_relay_all(&c);
        c.w.s.dry = false;
        if (version == 13)
            assert_int_equal(mk_tls_stream_handshake(&c.w.s, &why), 0);
        write_text(&c.w.s, "I begin");
        expect(&c.s, "I begin");
        tls_client_close(&c);
    }
}

static void connect_last_flight_is_sent_at_close(void **state)
{
    (void)state;
    const char *why;
    assert_int_equal(tls_client_try_connect(&c, "a.example"), 0);
    c.s.ops->close(&c.s);
    tls_client_relay_all(&c);
    c.w.s.dry = false;
    assert_int_equal(mk_tls_stream_handshake(&c.w.s, &why), 0);
    assert_int_equal(tls_client_read(&c.w.s, buffer, sizeof buffer), 0);
}

static void connect_data_with_handshake_is_buffered(void **state)
{
    (void)state;
    const char *why;
    use_12_or_13(12);
    assert_int_equal(tls_client_open(&c, "a.example"), 0);
    assert_int_equal(tls_client_accept(&c), 0);
    assert_int_equal(mk_tls_stream_handshake(&c.s, &c.why), -EAGAIN);
    mk_err e = -EAGAIN;
    for (int i = 0; i < 10 && e; i++) {
        c.w.s.dry = false;
        (void)tls_client_relay_piece(c.at_client, c.at_server, c.piece);
        e = mk_tls_stream_handshake(&c.w.s, &why);
        if (!e)
            assert_int_equal(c.w.s.ops->write(&c.w.s, MK_STR("I begin"), false), 7);
        (void)tls_client_relay_piece(c.at_server, c.at_client, c.piece);
        c.s.dry = false;
        (void)mk_tls_stream_handshake(&c.s, &c.why);
    }
    assert_true(c.s.holds);
    assert_int_equal(c.s.ops->read(&c.s, buffer, sizeof buffer),
                     7); /* the stream is readable without an event */
}

/* ---- Data ---- */

static char pattern(size_t at)
{
    return (char)(at * 7 + at / 251 + at / 65537);
}

struct direction {
    struct mk_stream *from, *to;
    size_t sent, received;
};

static void push(struct direction *direction, size_t size)
{
    static char large[200000];
    size = mk_min(mk_min(size, sizeof large), MUCH - direction->sent);
    for (size_t i = 0; i < size; i++)
        large[i] = pattern(direction->sent + i);
    ssize_t n =
        size ? direction->from->ops->write(direction->from, mk_str_of(large, size), size % 3 == 0) : 0;
    assert_true(n >= 0 || n == -EAGAIN);
    direction->sent += n > 0 ? (size_t)n : 0;
}

static void pull(struct direction *direction, size_t cap)
{
    ssize_t n = tls_client_read(direction->to, buffer, mk_min(cap, sizeof buffer));
    assert_true(n > 0 || n == -EAGAIN);
    for (ssize_t i = 0; i < n; i++)
        assert_int_equal(buffer[i], pattern(direction->received + (size_t)i));
    direction->received += n > 0 ? (size_t)n : 0;
}

/* Sends data in any order and size, with records split anywhere: none is lost, duplicated or changed. */
static void exchange_random_data(unsigned seed)
{
    struct direction directions[2] = {{.from = &c.s, .to = &c.w.s}, {.from = &c.w.s, .to = &c.s}};
    uint64_t r = seed;
    while (directions[0].received < MUCH || directions[1].received < MUCH) {
        r = r * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        struct direction *direction = &directions[r >> 63];
        size_t size = 1 + (size_t)((r >> 20) % (r >> 40 & 1 ? 100 : 150000));
        switch (r >> 60 & 3) {
        case 0:
        case 1:
            push(direction, size);
            break;
        case 2:
            pull(direction, size);
            break;
        default:
            c.piece = 1 + size / 2;
            (void)tls_client_relay(&c);
        }
    }
}

static void connect_data_arrives_exactly_once(void **state)
{
    (void)state;
    for (unsigned version = 12; version <= 13; version++) {
        use_12_or_13(version);
        tls_client_connect(&c, "a.example");
        exchange_random_data(version);
        c.piece = TLS_CLIENT_PIECE;
        tls_client_close(&c);
    }
}

static void connect_tiny_records_yield(void **state)
{
    (void)state;
    unsigned n = 0, n_iterations = 0;
    tls_client_connect(&c, "a.example");
    for (unsigned i = 0; i < 200; i++)
        assert_int_equal(c.w.s.ops->write(&c.w.s, MK_STR("x"), false), 1);
    tls_client_relay_all(&c);
    c.s.dry = false;
    do {
        ssize_t got = c.s.ops->read(&c.s, buffer, sizeof buffer);
        assert_true(got > 0);
        n += (unsigned)got;
        n_iterations++;
    } while (c.s.holds);
    assert_int_equal(n, 200);
    assert_true(n_iterations > 2 && n_iterations < 20);
}

/* ---- Close ---- */

static void connect_close_notify_reads_as_eof(void **state)
{
    (void)state;
    for (unsigned version = 12; version <= 13; version++) {
        use_12_or_13(version);
        tls_client_connect(&c, "a.example");
        assert_int_equal(c.w.s.ops->write(&c.w.s, MK_STR("last"), true), 4);
        c.w.s.ops->close(&c.w.s);
        tls_client_relay_all(&c);
        expect(&c.s, "last");
        assert_int_equal(tls_client_read(&c.s, buffer, sizeof buffer), 0);
        assert_int_equal(tls_client_read(&c.s, buffer, sizeof buffer), 0);
        tls_client_close(&c);
    }
}

static void connect_eof_without_close_notify_is_an_error(void **state)
{
    (void)state;
    for (unsigned version = 12; version <= 13; version++) {
        use_12_or_13(version);
        tls_client_connect(&c, "a.example");
        write_text(&c.w.s, "half of it");
        assert_int_equal(shutdown(c.at_client, SHUT_WR), 0);
        expect(&c.s, "half of it");
        assert_int_equal(tls_client_read(&c.s, buffer, sizeof buffer), -ECONNRESET);
        assert_int_equal(c.s.ops->read(&c.s, buffer, sizeof buffer), -ECONNRESET);
        assert_int_equal(c.s.ops->write(&c.s, MK_STR("x"), false), -ECONNRESET);
        assert_int_equal(mk_tls_stream_handshake(&c.s, &c.why), -ECONNRESET);
        assert_contains(mk_str_from_c(c.why), "without close_notify");
        tls_client_close(&c);
    }
}

static void connect_eof_within_record_is_an_error(void **state)
{
    (void)state;
    char sealed[256];
    tls_client_connect(&c, "a.example");
    assert_int_equal(c.w.s.ops->write(&c.w.s, MK_STR("all of it"), false), 9);
    c.w.s.ops->close(&c.w.s);
    ssize_t n = recv(c.at_server, sealed, sizeof sealed, 0);
    /* close_notify lacks its last byte */
    assert_int_equal(send(c.at_client, sealed, (size_t)n - 1, 0), n - 1);
    assert_int_equal(shutdown(c.at_client, SHUT_WR), 0);
    expect(&c.s, "all of it");
    assert_int_equal(tls_client_read(&c.s, buffer, sizeof buffer), -ECONNRESET);
}

static void connect_server_may_send_after_our_shutdown(void **state)
{
    (void)state;
    for (unsigned version = 12; version <= 13; version++) {
        use_12_or_13(version);
        tls_client_connect(&c, "a.example");
        assert_int_equal(c.s.ops->write(&c.s, MK_STR("last "), true), 5);
        c.s.ops->shutdown(&c.s);
        assert_false(c.s.shutdown_pending);
        tls_client_relay_all(&c);
        expect(&c.w.s, "last ");
        assert_int_equal(tls_client_read(&c.w.s, buffer, sizeof buffer), 0);
        write_text(&c.w.s, "heard");
        expect(&c.s, "heard");
        c.w.s.ops->shutdown(&c.w.s);
        tls_client_relay_all(&c);
        assert_int_equal(tls_client_read(&c.s, buffer, sizeof buffer), 0);
        tls_client_close(&c);
    }
}

static void connect_client_may_send_after_server_shutdown(void **state)
{
    (void)state;
    tls_client_connect(&c, "a.example");
    c.w.s.ops->shutdown(&c.w.s);
    tls_client_relay_all(&c);
    assert_int_equal(tls_client_read(&c.s, buffer, sizeof buffer), 0);
    assert_int_equal(write_text(&c.s, "still heard"), 11);
    expect(&c.w.s, "still heard");
}

static void connect_shutdown_waits_for_buffer_space(void **state)
{
    (void)state;
    char none[16];
    tls_client_connect(&c, "a.example");
    while (c.s.ops->write(&c.s, mk_str_of(buffer, sizeof buffer), false) > 0)
        ;
    c.s.ops->shutdown(&c.s);
    assert_true(c.s.shutdown_pending);
    assert_int_equal(tls_client_read(&c.s, none, sizeof none), -EAGAIN);
    ssize_t n;
    do {
        tls_client_relay(&c);
        n = tls_client_read(&c.w.s, buffer, sizeof buffer);
        (void)tls_client_read(&c.s, none, sizeof none);
    } while (n > 0 || n == -EAGAIN);
    assert_int_equal(n, 0);
    assert_false(c.s.shutdown_pending);
}

static void connect_closed_server_is_an_error_without_sigpipe(void **state)
{
    (void)state;
    tls_client_connect(&c, "a.example");
    mk_fd_close(&c.at_client);
    assert_int_equal(c.s.ops->write(&c.s, MK_STR("x"), false), -EPIPE);
    assert_int_equal(c.s.ops->write(&c.s, MK_STR("x"), false), -EPIPE);
    assert_int_equal(tls_client_read(&c.s, buffer, sizeof buffer), -ECONNRESET);
}

/* A 413, for example, arrives before the whole body has been sent. */
static void connect_early_response_is_read_after_close(void **state)
{
    (void)state;
    for (unsigned version = 12; version <= 13; version++) {
        use_12_or_13(version);
        tls_client_connect(&c, "a.example");
        assert_int_equal(c.w.s.ops->write(&c.w.s, MK_STR("too much"), true), 8);
        c.w.s.ops->close(&c.w.s);
        tls_client_relay_all(&c);
        mk_fd_close(&c.at_client);
        assert_int_equal(c.s.ops->write(&c.s, MK_STR("more"), false), -EPIPE);
        expect(&c.s, "too much");
        assert_int_equal(tls_client_read(&c.s, buffer, sizeof buffer), 0);
        c.s.ops->shutdown(&c.s);
        assert_false(c.s.shutdown_pending);
        assert_int_equal(c.s.ops->write(&c.s, MK_STR("more"), false), -EPIPE);
        tls_client_close(&c);
    }
}

static void connect_tampered_record_fails_connection(void **state)
{
    (void)state;
    tls_client_connect(&c, "a.example");
    assert_int_equal(send(c.at_client, "\x17\x03\x03\0\x20 this was not encrypted by us ok?", 37, 0), 37);
    assert_int_equal(tls_client_read(&c.s, buffer, sizeof buffer), -EPROTO);
    assert_int_equal(c.s.ops->write(&c.s, MK_STR("x"), false), -EPROTO);
}

/* ---- Other server behavior ---- */

/* Creates an OpenSSL server at the other end of the client's socket. */
static SSL *make_server(SSL_CTX **ctx, int version)
{
    *ctx = SSL_CTX_new(TLS_server_method());
    assert_true(SSL_CTX_use_certificate_file(*ctx, c.w.pair.certificate, SSL_FILETYPE_PEM));
    assert_true(SSL_CTX_use_PrivateKey_file(*ctx, c.w.pair.certificate, SSL_FILETYPE_PEM));
    SSL_CTX_set_max_proto_version(*ctx, version);
    assert_int_equal(tls_client_open(&c, "a.example"), 0);
    SSL *ssl = SSL_new(*ctx);
    SSL_set_fd(ssl, c.at_client);
    SSL_set_accept_state(ssl);
    mk_err e = -EAGAIN;
    for (int i = 0; i < 10 && e; i++) {
        c.s.dry = false;
        e = mk_tls_stream_handshake(&c.s, &c.why);
        (void)SSL_do_handshake(ssl);
    }
    assert_int_equal(e, 0);
    assert_int_equal(c.s.ops->write(&c.s, MK_STR("hello"), false), 5);
    assert_int_equal(SSL_read(ssl, buffer, sizeof buffer), 5);
    return ssl;
}

static void free_server(SSL *ssl, SSL_CTX *ctx)
{
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    ERR_clear_error();
}

static void connect_key_updates_are_accepted(void **state)
{
    (void)state;
    SSL_CTX *ctx;
    SSL *ssl = make_server(&ctx, TLS1_3_VERSION);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED), 1);
        assert_int_equal(SSL_write(ssl, "answer", 6), 6);
        expect(&c.s, "answer");
        assert_int_equal(c.s.ops->write(&c.s, MK_STR("more"), false), 4);
        assert_int_equal(SSL_read(ssl, buffer, sizeof buffer), 4);
    }
    free_server(ssl, ctx);
}

static void connect_endless_key_updates_fail_connection(void **state)
{
    (void)state;
    SSL_CTX *ctx;
    SSL *ssl = make_server(&ctx, TLS1_3_VERSION);
    ssize_t n = -EAGAIN;
    for (unsigned i = 0; i < 1000 && n == -EAGAIN; i++) {
        assert_int_equal(SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
        assert_int_equal(SSL_do_handshake(ssl), 1);
        n = tls_client_read(&c.s, buffer, sizeof buffer);
    }
    assert_int_equal(n, -EPROTO);
    free_server(ssl, ctx);
}

static void connect_renegotiation_is_rejected(void **state)
{
    (void)state;
    SSL_CTX *ctx;
    SSL *ssl = make_server(&ctx, TLS1_2_VERSION);
    struct mk_tls_conn_info facts;
    mk_tls_conn_info_get(&c.s, &facts);
    assert_str(facts.protocol, ""); /* the server does not support ALPN */
    assert_int_equal(SSL_renegotiate(ssl), 1);
    (void)SSL_do_handshake(ssl);
    assert_int_equal(tls_client_read(&c.s, buffer, sizeof buffer), -EAGAIN);
    assert_int_equal(SSL_read(ssl, buffer, sizeof buffer), -1);
    assert_int_equal(ERR_GET_REASON(ERR_peek_last_error()), SSL_R_NO_RENEGOTIATION);
    free_server(ssl, ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(connect_supports_tls_1_2_and_1_3, setup),
        fixture_test(connect_rejects_older_versions, setup),
        fixture_test(connect_verifies_name_and_sends_sni, setup),
        fixture_test(connect_verifies_address_without_sni, setup),
        fixture_test(connect_invalid_name_keeps_descriptor_open, setup),
        fixture_test(connect_handshake_may_be_split_anywhere, setup),
        fixture_test(connect_last_flight_is_sent_with_first_data, setup),
        fixture_test(connect_last_flight_is_sent_before_waiting, setup),
        fixture_test(connect_last_flight_is_sent_at_close, setup),
        fixture_test(connect_data_with_handshake_is_buffered, setup),
        fixture_test(connect_data_arrives_exactly_once, setup),
        fixture_test(connect_tiny_records_yield, setup),
        fixture_test(connect_close_notify_reads_as_eof, setup),
        fixture_test(connect_eof_without_close_notify_is_an_error, setup),
        fixture_test(connect_eof_within_record_is_an_error, setup),
        fixture_test(connect_server_may_send_after_our_shutdown, setup),
        fixture_test(connect_client_may_send_after_server_shutdown, setup),
        fixture_test(connect_shutdown_waits_for_buffer_space, setup),
        fixture_test(connect_closed_server_is_an_error_without_sigpipe, setup),
        fixture_test(connect_early_response_is_read_after_close, setup),
        fixture_test(connect_tampered_record_fails_connection, setup),
        fixture_test(connect_key_updates_are_accepted, setup),
        fixture_test(connect_endless_key_updates_fail_connection, setup),
        fixture_test(connect_renegotiation_is_rejected, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

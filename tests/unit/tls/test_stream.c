/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/stream.h"

#include "base/mem.h"
#include "unit/tls/fixture.h"

enum { LARGE = 3 << 20, ROOM = 1 << 16 };

static struct tls_fixture w;
static char buffer[ROOM];

static void setup(void)
{
    tls_fixture_setup(&w);
    tls_fixture_load(&w);
}

static void check_client(const char *text)
{
    int n = SSL_read(w.client, buffer, sizeof buffer);
    assert_true(n > 0);
    assert_str(mk_str_of(buffer, (size_t)n), text);
}

static void exchange_data(const char *version)
{
    struct mk_tls_conn_info facts;
    tls_fixture_connect(&w);
    mk_tls_conn_info_get(&w.s, &facts);
    assert_str(facts.version, version);
    assert_str(facts.server_name, "Own.Example");
    assert_string_equal(w.server_name, "own.example");
    assert_ptr_equal(facts.context, w.context);
    assert_int_equal(tls_fixture_read(&w, buffer, sizeof buffer), -EAGAIN);
    assert_int_equal(SSL_write(w.client, "hello", 5), 5);
    assert_int_equal(tls_fixture_read(&w, buffer, sizeof buffer), 5);
    assert_memory_equal(buffer, "hello", 5);
    assert_true(w.s.dry && !w.s.holds);
    assert_int_equal(w.s.ops->write(&w.s, MK_STR("answer"), false), 6);
    check_client("answer");
}

static void stream_transfers_both_ways_in_tls_1_3(void **state)
{
    (void)state;
    exchange_data("TLSv1.3");
}

static void stream_transfers_both_ways_in_tls_1_2(void **state)
{
    (void)state;
    SSL_CTX_set_max_proto_version(w.clients, TLS1_2_VERSION);
    exchange_data("TLSv1.2");
}

static void stream_early_bytes_are_processed_first(void **state)
{
    (void)state;
    const char *why;
    char hello[4096];
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    w.fd = ends[1];
    tls_fixture_set_client(&w);
    assert_int_equal(SSL_do_handshake(w.client), -1);
    ssize_t n = recv(ends[0], hello, sizeof hello, 0);
    assert_true(n > 100);
    assert_int_equal(mk_tls_stream_open(&w.s, ends[0], &w.domain, mk_str_of(hello, (size_t)n)), 0);
    assert_int_equal(tls_fixture_handshake(&w, &why), 0);
}

static void stream_drained_socket_is_not_read(void **state)
{
    (void)state;
    tls_fixture_connect(&w);
    w.s.dry = true;
    assert_int_equal(SSL_write(w.client, "hello", 5), 5);
    assert_int_equal(w.s.ops->read(&w.s, buffer, sizeof buffer), -EAGAIN);
    assert_int_equal(tls_fixture_read(&w, buffer, sizeof buffer), 5);
}

/* No event announces bytes that TLS has already read from the socket. */
static void full_read_leaves_stream_readable_while_tls_has_more(void **state)
{
    (void)state;
    tls_fixture_connect(&w);
    assert_int_equal(SSL_write(w.client, "hello", 5), 5);
    mk_stream_on_input(&w.s, false);
    assert_int_equal(mk_stream_read(&w.s, buffer, 4), 4);
    assert_true(mk_stream_is_readable(&w.s));
    assert_int_equal(mk_stream_read(&w.s, buffer, 4), 1);
    assert_false(mk_stream_is_readable(&w.s));
}

/* A single event announces the last bytes and the FIN, without a close_notify before it. */
static void stream_eof_is_found_after_short_read(void **state)
{
    (void)state;
    tls_fixture_connect(&w);
    assert_int_equal(SSL_write(w.client, "hello", 5), 5);
    assert_int_equal(shutdown(w.fd, SHUT_WR), 0);
    mk_stream_on_input(&w.s, true);
    assert_int_equal(mk_stream_read(&w.s, buffer, sizeof buffer), 5);
    assert_true(mk_stream_is_readable(&w.s));
    assert_int_equal(mk_stream_read(&w.s, buffer, sizeof buffer), 0);
}

/* No event announces a close_notify, which need not be followed by a FIN. */
static void stream_close_notify_is_found_without_taking_data(void **state)
{
    (void)state;
    tls_fixture_connect(&w);
    mk_stream_on_input(&w.s, false);
    assert_false(mk_stream_check_end(&w.s));
    assert_false(mk_stream_is_readable(&w.s));
    assert_int_equal(SSL_write(w.client, "hello", 5), 5);
    mk_stream_on_input(&w.s, false);
    for (unsigned i = 0; i < 3; i++)
        assert_false(mk_stream_check_end(&w.s));
    assert_int_equal(SSL_shutdown(w.client), 0);
    mk_stream_on_input(&w.s, false);
    assert_false(mk_stream_check_end(&w.s)); /* the close_notify follows data */
    assert_true(mk_stream_is_readable(&w.s));
    assert_int_equal(mk_stream_read(&w.s, buffer, 5), 5);
    assert_memory_equal(buffer, "hello", 5);
    assert_true(mk_stream_check_end(&w.s));
    assert_true(w.s.ended);
    assert_int_equal(mk_stream_read(&w.s, buffer, sizeof buffer), 0);
}

static void stream_tiny_records_yield(void **state)
{
    (void)state;
    unsigned n = 0, n_iterations = 0;
    tls_fixture_connect(&w);
    for (unsigned i = 0; i < 200; i++)
        assert_int_equal(SSL_write(w.client, "x", 1), 1);
    w.s.dry = false;
    do {
        ssize_t got = w.s.ops->read(&w.s, buffer, sizeof buffer);
        assert_true(got > 0);
        n += (unsigned)got;
        n_iterations++;
    } while (w.s.holds);
    assert_int_equal(n, 200);
    assert_true(n_iterations > 2 && n_iterations < 20);
}

/* ---- Full sockets ---- */

static char pattern(size_t at)
{
    return (char)(at * 7 + at / 251 + at / 65537);
}

static char *make_pattern(void)
{
    char *large = mk_mem_alloc(LARGE);
    assert_non_null(large);
    for (size_t i = 0; i < LARGE; i++)
        large[i] = pattern(i);
    return large;
}

/* Reads a piece at the client and compares it with the pattern at this position. Returns the next
 * position. */
static size_t read_piece(size_t at)
{
    int n = SSL_read(w.client, buffer, 1 + (int)(at % 40000));
    for (int i = 0; i < n; i++)
        assert_int_equal(buffer[i], pattern(at + (size_t)i));
    ERR_clear_error();
    return at + (n > 0 ? (size_t)n : 0);
}

static void stream_data_arrives_exactly_once(void **state)
{
    (void)state;
    char *large = make_pattern();
    size_t sent = 0, received = 0;
    unsigned full = 0;
    tls_fixture_connect(&w);
    while (received < LARGE) {
        size_t offered = mk_min(LARGE - sent, 1 + sent % 150000);
        ssize_t n =
            sent < LARGE ? w.s.ops->write(&w.s, mk_str_of(large + sent, offered), sent % 3 == 0) : -EAGAIN;
        assert_true(n > 0 || n == -EAGAIN);
        if (n > 0)
            sent += (size_t)n;
        else
            full++;
        if (n < 0 || sent % 5 == 0)
            received = read_piece(received);
        if (sent == LARGE) /* the read flushes a remainder that waits for more data, because none follows */
            assert_true(w.s.ops->read(&w.s, buffer, sizeof buffer) == -EAGAIN);
    }
    assert_int_equal(sent, LARGE);
    assert_true(full > 10);
    mk_mem_free(large);
}

static void stream_files_arrive_exactly_once(void **state)
{
    (void)state;
    char *large = make_pattern();
    size_t sent = 0, received = 0;
    folder_add(&w.folder, "file", mk_str_of(large, LARGE));
    mk_mem_free(large);
    int file = openat(w.folder.fd, "file", O_RDONLY);
    tls_fixture_connect(&w);
    while (received < LARGE) {
        ssize_t n = w.s.ops->send_file(&w.s, file, sent, 1 << 20);
        if (sent == LARGE)
            assert_int_equal(n, 0);
        else
            assert_true(n > 0 || n == -EAGAIN);
        sent += n > 0 ? (size_t)n : 0;
        received = read_piece(received);
    }
    assert_int_equal(lseek(file, 0, SEEK_CUR), 0);
    close(file);
    assert_int_equal(w.s.ops->send_file(&w.s, file, 0, 2), -EBADF);
}

static void stream_small_write_waits_for_more(void **state)
{
    (void)state;
    tls_fixture_connect(&w);
    assert_int_equal(w.s.ops->write(&w.s, MK_STR("head "), true), 5);
    while (SSL_read(w.client, buffer, sizeof buffer) > 0) /* session tickets */
        fail_msg("it did not wait");
    assert_int_equal(w.s.ops->write(&w.s, MK_STR("content"), false), 7);
    check_client("head ");
    check_client("content");
    assert_int_equal(w.s.ops->write(&w.s, MK_STR("alone"), true), 5);
    assert_int_equal(tls_fixture_read(&w, buffer, sizeof buffer),
                     -EAGAIN); /* no further bytes have arrived */
    check_client("alone");
}

/* ---- Close ---- */

static void stream_shutdown_sends_close_notify(void **state)
{
    (void)state;
    tls_fixture_connect(&w);
    w.s.ops->shutdown(&w.s);
    assert_int_equal(SSL_read(w.client, buffer, sizeof buffer), 0);
    assert_int_equal(SSL_get_error(w.client, 0), SSL_ERROR_ZERO_RETURN);
    assert_int_equal(SSL_write(w.client, "heard", 5), 5);
    assert_int_equal(tls_fixture_read(&w, buffer, sizeof buffer), 5);
    w.s.ops->close(&w.s);
    assert_int_equal(w.s.fd, -1);
}

static void stream_shutdown_waits_for_buffer_space(void **state)
{
    char none[16];
    (void)state;
    tls_fixture_connect(&w);
    while (w.s.ops->write(&w.s, mk_str_of(buffer, sizeof buffer), false) > 0)
        ;
    w.s.ops->shutdown(&w.s);
    assert_true(w.s.shutdown_pending);
    assert_int_equal(tls_fixture_read(&w, none, sizeof none), -EAGAIN);
    assert_true(w.s.shutdown_pending);
    for (int i = 0; i < 1000 && SSL_get_shutdown(w.client) != SSL_RECEIVED_SHUTDOWN; i++) {
        while (SSL_read(w.client, buffer, sizeof buffer) > 0)
            ;
        (void)tls_fixture_read(&w, none, sizeof none);
    }
    assert_false(w.s.shutdown_pending);
    assert_int_equal(SSL_get_shutdown(w.client), SSL_RECEIVED_SHUTDOWN);
    assert_int_equal(recv(w.fd, none, sizeof none, 0), 0);
    tls_fixture_close(&w);
}

static void stream_close_sends_close_notify(void **state)
{
    (void)state;
    tls_fixture_connect(&w);
    assert_int_equal(w.s.ops->write(&w.s, MK_STR("last"), true), 4);
    w.s.ops->close(&w.s);
    check_client("last");
    assert_int_equal(SSL_read(w.client, buffer, sizeof buffer), 0);
    assert_int_equal(SSL_get_error(w.client, 0), SSL_ERROR_ZERO_RETURN);
}

static void stream_end_of_peer_reads_as_eof(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        tls_fixture_connect(&w);
        assert_int_equal(SSL_write(w.client, "last", 4), 4);
        if (round)
            SSL_shutdown(w.client);
        shutdown(w.fd, SHUT_WR);
        assert_int_equal(tls_fixture_read(&w, buffer, sizeof buffer), 4);
        assert_int_equal(tls_fixture_read(&w, buffer, sizeof buffer), 0);
        assert_int_equal(w.s.ops->write(&w.s, MK_STR("still heard"), false), 11);
        check_client("still heard");
        tls_fixture_close(&w);
    }
}

static void stream_closed_peer_is_an_error_without_sigpipe(void **state)
{
    (void)state;
    tls_fixture_connect(&w);
    mk_fd_close(&w.fd);
    assert_int_equal(w.s.ops->write(&w.s, MK_STR("x"), false), -EPIPE);
    assert_int_equal(w.s.ops->write(&w.s, MK_STR("x"), false), -EPIPE);
    assert_int_equal(tls_fixture_read(&w, buffer, sizeof buffer), -EPIPE);
}

static void stream_tampered_record_fails_connection(void **state)
{
    (void)state;
    tls_fixture_connect(&w);
    assert_int_equal(send(w.fd, "\x17\x03\x03\0\x20 this was not encrypted by us ok?", 37, 0), 37);
    assert_int_equal(tls_fixture_read(&w, buffer, sizeof buffer), -EPROTO);
    assert_int_equal(w.s.ops->write(&w.s, MK_STR("x"), false), -EPROTO);
    assert_true(SSL_read(w.client, buffer, sizeof buffer) <= 0); /* the client has received the alert */
    assert_int_equal(ERR_GET_REASON(ERR_peek_last_error()), SSL_R_SSLV3_ALERT_BAD_RECORD_MAC);
    ERR_clear_error();
}

/* ---- Key updates ---- */

static mk_err update_keys(unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        assert_int_equal(SSL_key_update(w.client, SSL_KEY_UPDATE_REQUESTED), 1);
        assert_int_equal(SSL_do_handshake(w.client), 1);
        ssize_t n = i % 16 ? -EAGAIN : tls_fixture_read(&w, buffer, sizeof buffer);
        if (n != -EAGAIN)
            return (mk_err)n;
    }
    return 0;
}

static void stream_key_updates_are_accepted(void **state)
{
    (void)state;
    tls_fixture_connect(&w);
    assert_int_equal(update_keys(5), 0);
    assert_int_equal(SSL_write(w.client, "hello", 5), 5);
    assert_int_equal(tls_fixture_read(&w, buffer, sizeof buffer), 5);
    assert_int_equal(w.s.ops->write(&w.s, MK_STR("answer"), false), 6);
    check_client("answer");
}

static void stream_endless_key_updates_fail_connection(void **state)
{
    (void)state;
    tls_fixture_connect(&w);
    assert_int_equal(update_keys(1000), -EPROTO);
}

/* ---- Sessions ---- */

/* Returns whether the session was resumed, and stores the ticket of this connection for the next one. */
static bool resumes(SSL_SESSION **session)
{
    struct mk_tls_conn_info facts;
    assert_int_equal(tls_fixture_accept(&w, mk_str_of(NULL, 0)), 0);
    tls_fixture_set_client(&w);
    if (*session)
        assert_int_equal(SSL_set_session(w.client, *session), 1);
    const char *why;
    assert_int_equal(tls_fixture_handshake(&w, &why), 0);
    assert_int_equal(w.s.ops->write(&w.s, MK_STR("x"), false), 1);
    check_client("x");
    mk_tls_conn_info_get(&w.s, &facts);
    SSL_SESSION_free(*session);
    *session = SSL_get1_session(w.client);
    SSL_shutdown(w.client);
    tls_fixture_close(&w);
    return facts.resumed;
}

static void tickets(int version)
{
    SSL_SESSION *session = NULL;
    SSL_CTX_set_max_proto_version(w.clients, version);
    assert_false(resumes(&session));
    assert_true(resumes(&session) && resumes(&session));
    w.tickets.newest++;
    assert_true(resumes(&session)); /* the previous key is still accepted, and the ticket is renewed */
    w.tickets.newest++;
    assert_true(resumes(&session));
    w.tickets.newest += 2;
    assert_false(resumes(&session));
    memset(&w.tickets.keys, 0, sizeof w.tickets.keys);
    SSL_SESSION_free(session);
}

static void stream_tickets_follow_key_rotation_in_tls_1_2(void **state)
{
    (void)state;
    tickets(TLS1_2_VERSION);
}

static void stream_tickets_follow_key_rotation_in_tls_1_3(void **state)
{
    (void)state;
    tickets(TLS1_3_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(stream_transfers_both_ways_in_tls_1_3, setup),
        fixture_test(stream_transfers_both_ways_in_tls_1_2, setup),
        fixture_test(stream_early_bytes_are_processed_first, setup),
        fixture_test(stream_drained_socket_is_not_read, setup),
        fixture_test(full_read_leaves_stream_readable_while_tls_has_more, setup),
        fixture_test(stream_eof_is_found_after_short_read, setup),
        fixture_test(stream_close_notify_is_found_without_taking_data, setup),
        fixture_test(stream_tiny_records_yield, setup),
        fixture_test(stream_data_arrives_exactly_once, setup),
        fixture_test(stream_files_arrive_exactly_once, setup),
        fixture_test(stream_small_write_waits_for_more, setup),
        fixture_test(stream_shutdown_sends_close_notify, setup),
        fixture_test(stream_shutdown_waits_for_buffer_space, setup),
        fixture_test(stream_close_sends_close_notify, setup),
        fixture_test(stream_end_of_peer_reads_as_eof, setup),
        fixture_test(stream_closed_peer_is_an_error_without_sigpipe, setup),
        fixture_test(stream_tampered_record_fails_connection, setup),
        fixture_test(stream_key_updates_are_accepted, setup),
        fixture_test(stream_endless_key_updates_fail_connection, setup),
        fixture_test(stream_tickets_follow_key_rotation_in_tls_1_2, setup),
        fixture_test(stream_tickets_follow_key_rotation_in_tls_1_3, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

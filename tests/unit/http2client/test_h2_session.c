/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions with a scripted server on a real socket: opening, identifiers of streams, windows, GOAWAY, refusals,
 * and the end. */
#include "http2client/h2_session.h"

#include <netinet/tcp.h>

#include "http2client/h2_codec.h"
#include "http2client/h2_session_stream.h"
#include "unit/upstream/fixture.h"

enum { PREFACE = 24, CALLS = 3 };

bool mk_upstream_is_tls(const struct mk_upstream *u)
{
    return u->tls;
}

static struct notification notified[CALLS];
static struct mk_upstream_conn *conns[CALLS];
static int server_fd = -1;

static void close_server(void *p)
{
    (void)p;
    mk_fd_close(&server_fd);
}

static void setup(void)
{
    upstream_setup(1);
    harness_defer(close_server, NULL);
    upstream.http2 = upstreams.http2 = &mk_h2_session_module;
    start_pool();
}

static void iterate(void)
{
    for (int i = 0; i < 5; i++)
        assert_int_equal(mk_loop_run_once(&worker.loop, 1), 0);
}

static void send_bytes(mk_str bytes)
{
    assert_int_equal(write(server_fd, bytes.p, bytes.len), (ssize_t)bytes.len);
    iterate();
}

/* Reads what the client has sent. */
static mk_str receive(char *buf, size_t cap)
{
    iterate();
    ssize_t n = recv(server_fd, buf, cap, MSG_DONTWAIT);
    return mk_str_of(buf, n > 0 ? (size_t)n : 0);
}

/* Finds the n-th frame of that type. */
static struct mk_h2_frame find_frame(mk_str text, enum mk_h2_type type, unsigned n, mk_str *payload)
{
    while (text.len >= MK_H2_FRAME_HEAD) {
        struct mk_h2_frame f = mk_h2_frame_parse(text);
        *payload = mk_str_first(mk_str_skip(text, MK_H2_FRAME_HEAD), f.length);
        if (f.type == type && n-- == 0)
            return f;
        text = mk_str_skip(text, MK_H2_FRAME_HEAD + f.length);
    }
    *payload = MK_STR_NULL;
    return (struct mk_h2_frame){.type = 0xff};
}

static void send_settings(uint32_t streams_max)
{
    char buf[32];
    struct mk_buf out = mk_buf_fixed(buf, sizeof buf);
    mk_h2_frame_emit_head(&out, 6, MK_H2_SETTINGS, 0, 0);
    mk_h2_frame_emit_setting(&out, MK_H2_MAX_CONCURRENT_STREAMS, streams_max);
    send_bytes(mk_buf_str(&out));
}

static void open_session(uint32_t streams_max)
{
    char buf[256];
    conns[0] = acquire(&notified[0]);
    iterate();
    server_fd = accept_from(0);
    mk_str got = receive(buf, sizeof buf);
    assert_true(mk_str_starts(got, MK_STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")));
    assert_int_equal(mk_upstream_conn_state(conns[0]), -EAGAIN);
    send_settings(streams_max);
    assert_int_equal(mk_upstream_conn_state(conns[0]), 0);
}

static void release(unsigned i)
{
    mk_upstream_conn_release(conns[i], MK_UPSTREAM_CONN_CLOSE);
    conns[i] = NULL;
}

/* Sends a request without a body, or with one of `length` bytes that follows. */
static void request(unsigned i, int64_t length)
{
    char text[256];
    const char *problem;
    struct mk_buf out = mk_buf_fixed(text, sizeof text);
    struct mk_header host = {MK_STR("Host"), MK_STR("a")};
    struct mk_upstream_request_options options = {.upstream = &upstream,
                                                  .method = MK_STR("POST"),
                                                  .target = MK_STR("/"),
                                                  .headers = &host,
                                                  .n_headers = 1,
                                                  .length = length};
    assert_int_equal(mk_h2_codec.write_head(&out, &options, &problem), 0);
    assert_int_equal(mk_upstream_conn_write(conns[i], mk_buf_str(&out), false), (ssize_t)out.len);
}

static void session_opens_with_the_first_settings(void **state)
{
    (void)state;
    open_session(100);
    release(0);
}

static void session_that_gets_no_settings_fails_after_connect_timeout(void **state)
{
    (void)state;
    settings.connect_ms = 20;
    conns[0] = acquire(&notified[0]);
    iterate();
    server_fd = accept_from(0);
    for (int i = 0; mk_upstream_conn_state(conns[0]) == -EAGAIN && i < 100; i++)
        assert_int_equal(mk_loop_run_once(&worker.loop, 10), 0);
    assert_int_equal(mk_upstream_conn_state(conns[0]), -ETIMEDOUT);
    release(0);
}

static void streams_get_odd_identifiers_in_the_order_of_their_heads(void **state)
{
    char buf[1024];
    mk_str payload;
    (void)state;
    open_session(100);
    conns[1] = acquire(&notified[1]);
    assert_int_equal(mk_upstream_conn_state(conns[1]), 0);
    request(1, 0);
    request(0, 0);
    mk_str got = receive(buf, sizeof buf);
    assert_int_equal(find_frame(got, MK_H2_HEADERS, 0, &payload).stream, 1);
    assert_int_equal(find_frame(got, MK_H2_HEADERS, 1, &payload).stream, 3);
    assert_int_equal(worker.n_logged, 0);
    release(0);
    release(1);
}

static void stream_beyond_the_limit_opens_another_session(void **state)
{
    (void)state;
    open_session(1);
    conns[1] = acquire(&notified[1]);
    iterate();
    assert_int_equal(mk_upstream_conn_state(conns[1]), -EAGAIN);
    int second = accept_from(0);
    release(0);
    release(1);
    close(second);
}

static void stream_that_ends_early_is_cancelled(void **state)
{
    char buf[1024];
    mk_str payload;
    (void)state;
    open_session(100);
    request(0, 0);
    (void)receive(buf, sizeof buf);
    release(0);
    mk_str got = receive(buf, sizeof buf);
    struct mk_h2_frame f = find_frame(got, MK_H2_RST_STREAM, 0, &payload);
    assert_int_equal(f.stream, 1);
    assert_int_equal(mk_h2_frame_read_u32(payload), MK_H2_CANCEL);
}

static void body_waits_for_the_window_of_its_stream(void **state)
{
    static char body[MK_H2_FRAME_HEAD + MK_CODEC_PIECE_MAX], buf[200 * 1024];
    (void)state;
    open_session(100);
    request(0, MK_CODEC_PIECE_MAX + 1);
    mk_h2_frame_write_head(body, MK_CODEC_PIECE_MAX, MK_H2_DATA, 0, 0);
    ssize_t n = mk_upstream_conn_write(conns[0], mk_str_of(body, sizeof body), false);
    assert_true(n > 0);
    while (n < (ssize_t)sizeof body) { /* the output buffer is smaller than the piece */
        (void)receive(buf, sizeof buf);
        ssize_t more = mk_upstream_conn_write(conns[0], mk_str_of(body + n, sizeof body - (size_t)n), false);
        assert_true(more > 0);
        n += more;
    }
    mk_h2_frame_write_head(body, 1, MK_H2_DATA, 0, 0);
    assert_int_equal(mk_upstream_conn_write(conns[0], mk_str_of(body, MK_H2_FRAME_HEAD + 1), false),
                     MK_H2_FRAME_HEAD);
    assert_int_equal(mk_upstream_conn_write(conns[0], mk_str_of(body, 1), false), -EAGAIN);
    notified[0].which = 0;
    struct mk_buf out = mk_buf_fixed(buf, sizeof buf);
    mk_h2_frame_emit_window_update(&out, 1, 10);
    mk_h2_frame_emit_window_update(&out, 0, 10);
    send_bytes(mk_buf_str(&out));
    assert_true(notified[0].which & MK_WRITABLE);
    assert_int_equal(mk_upstream_conn_write(conns[0], mk_str_of(body, 1), false), 1);
    release(0);
}

static void send_data(size_t n)
{
    static char frame[MK_H2_FRAME_HEAD + MK_H2_FRAME_MAX];
    while (n) {
        size_t part = mk_min(n, MK_H2_FRAME_MAX);
        mk_h2_frame_write_head(frame, (uint32_t)part, MK_H2_DATA, 0, 1);
        send_bytes(mk_str_of(frame, MK_H2_FRAME_HEAD + part));
        n -= part;
    }
}

/* Opens a stream whose response has begun. */
static void open_response(void)
{
    static const char head[] = {0, 0, 1, MK_H2_HEADERS, MK_H2_END_HEADERS, 0, 0, 0, 1, (char)0x88};
    char buf[1024];
    open_session(100);
    assert_int_equal(setsockopt(server_fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)), 0);
    request(0, 0);
    (void)receive(buf, sizeof buf);
    send_bytes(mk_str_of(head, sizeof head));
}

static void read_bytes(size_t n)
{
    static char buf[4096];
    while (n) {
        ssize_t got = mk_upstream_conn_read(conns[0], buf, mk_min(n, sizeof buf));
        assert_true(got > 0);
        n -= (size_t)got;
    }
}

static void read_all(void)
{
    char buf[4096];
    while (mk_upstream_conn_read(conns[0], buf, sizeof buf) > 0)
        ;
}

/* The windows that the stream got since the last call. */
static uint32_t returned_window(void)
{
    char buf[4096];
    mk_str got = receive(buf, sizeof buf), payload;
    uint32_t sum = 0;
    struct mk_h2_frame f;
    for (unsigned i = 0; f = find_frame(got, MK_H2_WINDOW_UPDATE, i, &payload), f.type != 0xff; i++)
        sum += f.stream ? mk_h2_frame_read_u32(payload) : 0;
    return sum;
}

static void reader_that_stops_gets_no_wide_window_again(void **state)
{
    (void)state;
    open_response();
    send_data(40000);
    read_all();
    assert_int_equal(returned_window(), MK_H2_SESSION_WIDE_WINDOW - MK_H2_SESSION_STREAM_WINDOW + 40000);
    assert_int_equal(pool->n_http2_wide, 1);
    send_data(200000);
    read_bytes(150000);
    assert_int_equal(returned_window(), 0);
    assert_int_equal(pool->n_http2_wide, 1); /* the server may still send the rest of the window */
    send_data(MK_H2_SESSION_WIDE_WINDOW - 200000);
    read_bytes(60000);
    assert_int_equal(pool->n_http2_wide, 0);
    assert_true(returned_window() <= MK_H2_SESSION_STREAM_WINDOW);
    read_all();
    assert_int_equal(pool->n_http2_wide, 1); /* the reader has caught up */
    release(0);
    assert_int_equal(pool->n_http2_wide, 0);
}

static void few_streams_have_a_wide_window_at_once(void **state)
{
    (void)state;
    open_response();
    pool->n_http2_wide = MK_H2_SESSION_WIDE_STREAMS_MAX;
    send_data(40000);
    read_all();
    assert_in_range(returned_window(), MK_H2_SESSION_STREAM_WINDOW / 2, 40000);
    release(0);
    assert_int_equal(pool->n_http2_wide, MK_H2_SESSION_WIDE_STREAMS_MAX);
    pool->n_http2_wide = 0;
}

static void queue_takes_no_more_memory_than_its_data_needs(void **state)
{
    (void)state;
    open_response();
    for (int i = 0; i < 3; i++) {
        send_data(60000);
        const struct mk_h2_session_stream *s = conns[0]->h2;
        assert_true(s->to - s->from > 60000 && s->cap < 80000);
        read_all();
        assert_ptr_equal(s->queue, s->inline_queue);
        assert_true(s->cap < 1024);
    }
    release(0);
}

static void goaway_marks_later_streams_as_unprocessed(void **state)
{
    char buf[64];
    (void)state;
    open_session(100);
    conns[1] = acquire(&notified[1]);
    request(0, 0);
    request(1, 0);
    iterate();
    struct mk_buf out = mk_buf_fixed(buf, sizeof buf);
    mk_h2_frame_emit_goaway(&out, 1, MK_H2_NO_ERROR);
    send_bytes(mk_buf_str(&out));
    assert_int_equal(mk_upstream_conn_read(conns[0], buf, sizeof buf), -EAGAIN);
    assert_int_equal(mk_upstream_conn_read(conns[1], buf, sizeof buf), -ESTALE);
    assert_true(mk_upstream_conn_is_unprocessed(conns[1]));
    release(1);
    release(0);
}

static void end_of_the_socket_fails_all_streams(void **state)
{
    char buf[64];
    (void)state;
    open_session(100);
    conns[1] = acquire(&notified[1]);
    request(0, 0);
    request(1, 0);
    iterate();
    mk_fd_close(&server_fd);
    iterate();
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(mk_upstream_conn_read(conns[i], buf, sizeof buf), -ECONNRESET);
        assert_false(mk_upstream_conn_is_unprocessed(conns[i]));
        release(i);
    }
    conns[2] = acquire(&notified[2]); /* a new session */
    iterate();
    server_fd = accept_from(0);
    release(2);
}

static void idle_session_is_closed_with_goaway(void **state)
{
    char buf[1024];
    mk_str payload;
    (void)state;
    upstream.idle_ms = 10;
    open_session(100);
    release(0);
    (void)receive(buf, sizeof buf);
    assert_false(upstream.http2->sweep(&pool->backends[0], worker.loop.now_ms + 1000));
    mk_str got = receive(buf, sizeof buf);
    assert_int_equal(find_frame(got, MK_H2_GOAWAY, 0, &payload).type, MK_H2_GOAWAY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(session_opens_with_the_first_settings, setup),
        fixture_test(session_that_gets_no_settings_fails_after_connect_timeout, setup),
        fixture_test(streams_get_odd_identifiers_in_the_order_of_their_heads, setup),
        fixture_test(stream_beyond_the_limit_opens_another_session, setup),
        fixture_test(stream_that_ends_early_is_cancelled, setup),
        fixture_test(body_waits_for_the_window_of_its_stream, setup),
        fixture_test(reader_that_stops_gets_no_wide_window_again, setup),
        fixture_test(few_streams_have_a_wide_window_at_once, setup),
        fixture_test(queue_takes_no_more_memory_than_its_data_needs, setup),
        fixture_test(goaway_marks_later_streams_as_unprocessed, setup),
        fixture_test(end_of_the_socket_fails_all_streams, setup),
        fixture_test(idle_session_is_closed_with_goaway, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

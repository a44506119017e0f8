/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1 responses: framing, failing sources, files, and slow clients. */
#include "unit/child.h"
#include "unit/connection/conn_case.h"

enum { SCRATCH = MK_SEND_QUEUE_BUFFER };

static void request_source(const char *target, const char *version)
{
    char head[256];
    snprintf(head, sizeof head, "GET %s HTTP/%s\r\nHost: a\r\n\r\n", target, version);
    conn_open(&t, head);
}

/* Expects a response of n bytes from a source. */
static void expect_source(size_t n, bool chunked, bool closes)
{
    struct h1_response r;
    assert_int_equal(conn_response(&t, &r, false), H1_RESPONSE_COMPLETE);
    assert_int_equal(r.status, 200);
    assert_int_equal(r.content.len, n);
    for (size_t i = 0; i < n; i++)
        if (r.content.p[i] != handlers_byte(i))
            fail_msg("byte %zu is wrong", i);
    assert_int_equal(mk_headers_has(&r.fields, MK_HEADER_TRANSFER_ENCODING), chunked);
    assert_int_equal(r.closes, closes);
    h1_response_fini(&r);
}

/* ---- Framing ---- */

static const size_t sizes[] = {0, 1, 100, 4096, 60000, SCRATCH - 200, SCRATCH, SCRATCH + 1, 500000};

static void h1_output_known_length_uses_content_length(void **state)
{
    (void)state;
    for (size_t i = 0; i < MK_LEN(sizes); i++) {
        char target[64];
        snprintf(target, sizeof target, "/source?n=%zu", sizes[i]);
        request_source(target, "1.1");
        conn_run(&t);
        expect_source(sizes[i], false, false);
        conn_expect_state(&t, MK_CONN_IDLE);
        mk_fd_close(&t.fd);
        conn_run_server(&t);
    }
}

static void h1_output_unknown_length_is_chunked(void **state)
{
    (void)state;
    for (size_t i = 0; i < MK_LEN(sizes); i++) {
        char target[64];
        snprintf(target, sizeof target, "/source?n=%zu&unknown=1", sizes[i]);
        request_source(target, "1.1");
        conn_send(&t, GET("/early"));
        conn_run(&t);
        expect_source(sizes[i], true, false);
        conn_expect(&t, 200, "early\n");
        conn_expect_nothing(&t);
    }
}

static void h1_output_http10_body_ends_with_connection(void **state)
{
    (void)state;
    for (size_t i = 0; i < MK_LEN(sizes); i++) {
        char target[64];
        snprintf(target, sizeof target, "/source?n=%zu&unknown=1", sizes[i]);
        t.n_records = 0;
        request_source(target, "1.0");
        conn_run(&t);
        assert_true(t.ended && !t.reset);
        expect_source(sizes[i], false, true);
        conn_expect_end(&t, 1, 200, MK_OUTCOME_OK);
        assert_int_equal(t.content_sent[0], sizes[i]);
    }
}

static void h1_output_source_may_wait(void **state)
{
    (void)state;
    request_source("/drip?n=5&ms=10", "1.1");
    conn_send(&t, GET("/early"));
    while (t.n_records < 2)
        conn_run_for(&t, 10);
    expect_source(5, true, false);
    conn_expect(&t, 200, "early\n");
}

/* ---- Sources that break their promises ---- */

static void h1_output_short_source_truncates_response(void **state)
{
    (void)state;
    struct h1_response r;
    conn_open(&t, GET("/liar?n=200000&has=100000") GET("/early"));
    conn_run(&t);
    assert_int_equal(conn_response(&t, &r, false), H1_RESPONSE_PARTIAL);
    assert_true(r.content.len <= 100000);
    h1_response_fini(&r);
    conn_expect_end(&t, 1, 200, MK_OUTCOME_FAILED); /* the second request gets no response */
}

/* Expects the error page of this status. Returns whether the connection closes. */
static bool expect_page(unsigned status)
{
    struct h1_response r;
    char number[16];
    snprintf(number, sizeof number, "<h1>%u", status);
    assert_int_equal(conn_response(&t, &r, false), H1_RESPONSE_COMPLETE);
    assert_int_equal(r.status, status);
    assert_non_null(memmem(r.content.p, r.content.len, number, strlen(number)));
    bool closes = r.closes;
    h1_response_fini(&r);
    return closes;
}

static void h1_output_source_failing_early_gets_500(void **state)
{
    (void)state;
    static const char *const requests[] = {
        GET("/liar?n=1000&has=600") GET("/early"),
        GET("/liar?n=1000&has=0") GET("/early"),
        GET("/broken?n=1000&unknown=1") GET("/early"),
        "GET /broken?n=1000&unknown=1 HTTP/1.0\r\n\r\n",
    };
    for (size_t i = 0; i < MK_LEN(requests); i++) {
        t.n_records = 0;
        conn_open(&t, requests[i]);
        conn_run(&t);
        assert_true(expect_page(500));
        conn_expect_end(&t, 1, 500, MK_OUTCOME_FAILED);
    }
}

static void h1_output_source_failing_early_gets_status_of_handler(void **state)
{
    (void)state;
    static const unsigned statuses[] = {400, 413, 502, 504, 599};
    for (size_t i = 0; i < MK_LEN(statuses); i++) {
        char target[128];
        snprintf(target, sizeof target, "/broken?n=%u&unknown=%d&status=%u", i % 2 ? 1 : 1000, i > 2,
                 statuses[i]);
        t.n_records = 0;
        request_source(target, "1.1");
        conn_send(&t, GET("/early"));
        conn_run(&t);
        assert_false(expect_page(statuses[i]));
        conn_expect(&t, 200, "early\n");
        assert_int_equal(t.statuses[0], statuses[i]);
        assert_int_equal(t.outcomes[0], MK_OUTCOME_OK);
    }
    request_source("/broken?status=502", "1.0");
    conn_run(&t);
    assert_true(expect_page(502));
}

static void h1_output_source_failing_late_keeps_status(void **state)
{
    (void)state;
    struct h1_response r;
    request_source("/broken?n=200000&status=502", "1.1");
    conn_run(&t);
    assert_int_equal(conn_response(&t, &r, false), H1_RESPONSE_PARTIAL);
    h1_response_fini(&r);
    conn_expect_end(&t, 1, 200, MK_OUTCOME_FAILED);
}

static void h1_output_unread_body_closes_connection_after_error(void **state)
{
    (void)state;
    conn_open(&t, "POST /broken?status=502 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n");
    conn_run(&t);
    assert_true(expect_page(502));
    conn_send(&t, "hello");
    conn_run(&t);
    conn_expect_end(&t, 1, 502, MK_OUTCOME_OK);
}

static void h1_output_failure_keeps_earlier_responses(void **state)
{
    (void)state;
    static const char *const requests[] = {
        GET("/early") GET("/early") GET("/broken?n=1000"),
        GET("/early") GET("/early") GET("/broken?n=200000&unknown=1"),
    };
    for (size_t i = 0; i < MK_LEN(requests); i++) {
        conn_open(&t, requests[i]);
        conn_run(&t);
        conn_expect(&t, 200, "early\n");
        conn_expect(&t, 200, "early\n");
        assert_true(t.ended || t.reset);
    }
}

static void h1_output_long_source_is_cut(void **state)
{
    (void)state;
    request_source("/liar?n=1000&has=2000", "1.1");
    conn_send(&t, GET("/early"));
    conn_run(&t);
    expect_source(1000, false, false);
    conn_expect(&t, 200, "early\n");
    request_source("/liar?n=100000&has=200000", "1.1");
    conn_run(&t);
    expect_source(100000, false, false);
}

static void h1_output_source_failing_late_truncates_response(void **state)
{
    (void)state;
    static const char *const requests[] = {GET("/broken?n=200000") GET("/early"),
                                           GET("/broken?n=200000&unknown=1") GET("/early")};
    for (size_t i = 0; i < MK_LEN(requests); i++) {
        struct h1_response r;
        t.n_records = 0;
        conn_open(&t, requests[i]);
        conn_run(&t);
        assert_int_equal(conn_response(&t, &r, false), H1_RESPONSE_PARTIAL);
        assert_true(r.content.len < 100001);
        h1_response_fini(&r);
        conn_expect_end(&t, 1, 200, MK_OUTCOME_FAILED);
        assert_true(t.content_sent[0] <= 100000);
    }
}

/* ---- Heads ---- */

static void h1_output_oversized_head_becomes_500(void **state)
{
    (void)state;
    request_source("/mad?n=100000", "1.1");
    conn_send(&t, GET("/early"));
    conn_run(&t);
    struct h1_response r;
    assert_int_equal(conn_response(&t, &r, false), H1_RESPONSE_COMPLETE);
    assert_int_equal(r.status, 500);
    assert_true(r.closes);
    h1_response_fini(&r);
    conn_expect_end(&t, 1, 500, MK_OUTCOME_FAILED);
}

static void h1_output_large_head_is_sent(void **state)
{
    (void)state;
    request_source("/mad?n=50000", "1.1");
    conn_run(&t);
    conn_expect(&t, 200, "mad\n");
}

static void h1_output_large_head_is_sent_after_others(void **state)
{
    (void)state;
    conn_open(&t, GET("/source?n=30000") GET("/mad?n=50000") GET("/source?n=30000") GET("/mad?n=100000")
                      GET("/early"));
    conn_run(&t);
    expect_source(30000, false, false);
    conn_expect(&t, 200, "mad\n");
    expect_source(30000, false, false);
    assert_true(expect_page(500));
    conn_expect_end(&t, 4, 500, MK_OUTCOME_FAILED);
}

static enum mk_verdict answer_with(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)request;
    assert_int_equal(mk_response_set_status(response, *(unsigned *)data), 0);
    assert_int_equal(mk_response_set_body(response, MK_STR("text")), 0);
    return MK_DONE;
}

static void h1_output_some_statuses_have_no_body(void **state)
{
    (void)state;
    static const struct mk_handler handler = {.name = "status", .handle = answer_with};
    static unsigned statuses[] = {204, 304, 205, 200, 599, 418, 299};
    struct mk_route route = {.pattern = {.text = MK_STR("/*"), .kind = MK_PATTERN_ALL}, .handler = &handler};
    t.site.host.routes = &route;
    t.site.host.n_routes = 1;
    for (size_t i = 0; i < MK_LEN(statuses); i++) {
        struct h1_response r;
        route.data = &statuses[i];
        conn_open(&t, GET("/") GET("/"));
        conn_run(&t);
        for (int twice = 0; twice < 2; twice++) {
            assert_int_equal(conn_response(&t, &r, false), H1_RESPONSE_COMPLETE);
            assert_int_equal(r.status, statuses[i]);
            assert_int_equal(r.content.len, i < 2 ? 0 : 4);
            assert_int_equal(mk_headers_has(&r.fields, MK_HEADER_CONTENT_LENGTH), i >= 2);
            h1_response_fini(&r);
        }
        conn_expect_nothing(&t);
    }
}

/* ---- Interim responses ---- */

#define HINT "HTTP/1.1 103 Early Hints\r\nX-Hint: "

/* Parses the received interim responses, each with a header of `size` bytes. Returns their number. */
static unsigned parse_hints(size_t size)
{
    unsigned n = 0;
    for (; mk_str_starts(conn_received(&t), MK_STR(HINT)); n++) {
        mk_str rest = mk_str_skip(conn_received(&t), sizeof HINT - 1 + size);
        assert_true(mk_str_starts(rest, MK_STR("\r\n\r\n")));
        t.read += sizeof HINT - 1 + size + 4;
    }
    return n;
}

static void h1_output_interim_responses_precede_head(void **state)
{
    (void)state;
    conn_open(&t, GET("/early") GET("/hint?n=3&ms=100") GET("/hint?n=0") GET("/early"));
    conn_run(&t);
    conn_expect(&t, 200, "early\n");
    assert_int_equal(parse_hints(10), 3); /* sent while the handler waits */
    conn_expect_nothing(&t);
    while (t.n_records < 4)
        conn_run_for(&t, 10);
    conn_expect(&t, 200, "3\n");
    conn_expect(&t, 200, "0\n");
    conn_expect(&t, 200, "early\n");
    conn_open(&t, "HEAD /hint?n=1 HTTP/1.1\r\nHost: a\r\n\r\n");
    while (t.n_records < 5)
        conn_run_for(&t, 10);
    assert_int_equal(parse_hints(10), 1);
    conn_expect_for(&t, true, 200, "");
}

static void h1_output_http10_gets_no_interim_responses(void **state)
{
    (void)state;
    request_source("/hint?n=3", "1.0");
    while (t.n_records < 1)
        conn_run_for(&t, 10);
    conn_expect(&t, 200, "0\n");
}

static void h1_output_interim_responses_are_bounded(void **state)
{
    (void)state;
    char text[16];
    unsigned n = 0;
    conn_open(&t, "");
    conn_set_send_buffer(&t, 1);
    conn_send(&t, GET("/hint?n=100&size=8000&ms=1"));
    while (t.n_records < 1)
        conn_run_for(&t, 10);
    n = parse_hints(8000);
    assert_true(n > 1 && n < 10);
    snprintf(text, sizeof text, "%u\n", n);
    conn_expect(&t, 200, text);
}

/* ---- Files ---- */

static void add_file(const char *name, size_t n)
{
    struct mk_buf text = mk_buf_growing(1 << 22);
    assert_true(mk_buf_reserve(&text, n));
    for (size_t i = 0; i < n; i++)
        mk_buf_add_char(&text, handlers_byte(i));
    site_add(&t.site, name, mk_buf_str(&text));
    mk_buf_free(&text);
}

static void h1_output_files_are_sent_from_memory_and_disk(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 1000, 1024, 1025, 100000, 3000000};
    for (size_t i = 0; i < MK_LEN(lengths); i++) {
        char name[32], target[64];
        snprintf(name, sizeof name, "f%zu.bin", i);
        add_file(name, lengths[i]);
        snprintf(target, sizeof target, "/%s", name);
        for (int twice = 0; twice < 2; twice++) {
            request_source(target, "1.1");
            conn_send(&t, GET("/early"));
            conn_run_until_received(&t, lengths[i]);
            expect_source(lengths[i], false, false);
            conn_expect(&t, 200, "early\n");
        }
        request_source(target, "1.0");
        conn_run_until_received(&t, lengths[i]);
        expect_source(lengths[i], false, true);
    }
}

static void h1_output_cached_response_equals_uncached(void **state)
{
    (void)state;
    struct h1_response ready, other;
    add_file("f.html", 100);
    conn_open(&t, GET("/f.html") "GET /f.html HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    conn_run(&t);
    assert_int_equal(conn_response(&t, &ready, false), H1_RESPONSE_COMPLETE);
    assert_int_equal(conn_response(&t, &other, false), H1_RESPONSE_COMPLETE);
    assert_int_equal(ready.fields.n + 1, other.fields.n);
    for (unsigned i = 0; i < ready.fields.n; i++)
        assert_true(
            mk_str_eq(mk_headers_find(&other.fields, ready.fields.at[i].name), ready.fields.at[i].value));
    assert_true(mk_str_eq(mk_buf_str(&ready.content), mk_buf_str(&other.content)));
    h1_response_fini(&ready);
    h1_response_fini(&other);
}

static void h1_output_ranges_of_file_are_sent(void **state)
{
    (void)state;
    struct h1_response r;
    add_file("f.bin", 100000);
    conn_open(&t, "GET /f.bin HTTP/1.1\r\nHost: a\r\nRange: bytes=10-19,50000-50009\r\n\r\n" GET("/early"));
    conn_run_until_received(&t, 300);
    assert_int_equal(conn_response(&t, &r, false), H1_RESPONSE_COMPLETE);
    assert_int_equal(r.status, 206);
    char part[10];
    for (size_t i = 0; i < sizeof part; i++)
        part[i] = handlers_byte(50000 + i);
    assert_non_null(memmem(r.content.p, r.content.len, part, sizeof part));
    h1_response_fini(&r);
    conn_expect(&t, 200, "early\n");
}

static void h1_output_shrinking_file_truncates_response(void **state)
{
    (void)state;
    char buffer[PATH_MAX];
    add_file("f.bin", 3000000);
    request_source("/f.bin", "1.1");
    conn_run_server(&t);
    conn_expect_state(&t, MK_CONN_SEND); /* the client has not read the response yet */
    assert_int_equal(truncate(folder_path(&t.site.folder, "f.bin", buffer), 1000), 0);
    conn_run_until_received(&t, 4000000);
    struct h1_response r;
    assert_int_equal(conn_response(&t, &r, false), H1_RESPONSE_PARTIAL);
    assert_int_equal(r.content.len, t.content_sent[0]);
    assert_true(t.content_sent[0] < 3000000);
    h1_response_fini(&r);
    conn_expect_end(&t, 1, 200, MK_OUTCOME_FAILED);
    request_source("/f.bin", "1.1"); /* a new request gets the new file */
    conn_run(&t);
    expect_source(1000, false, false);
}

/* ---- Slow clients ---- */

static void h1_output_source_is_pulled_at_client_speed(void **state)
{
    (void)state;
    conn_open(&t, "");
    conn_set_send_buffer(&t, 10000);
    conn_send(&t, GET("/source?n=3000000&unknown=1"));
    conn_run_server(&t);
    conn_expect_state(&t, MK_CONN_SEND);
    const struct handlers_source *s = t.conn->h1->d.x->response.content.source_ctx;
    uint64_t pulled = s->at;
    assert_in_range(pulled, 1, 300000);
    conn_run_server(&t);
    assert_true(s->at == pulled); /* the server does not pull from the source */
    conn_run_until_received(&t, 3000000);
    expect_source(3000000, true, false);
    assert_int_equal(t.n_records, 1);
}

static void h1_output_echo_stops_reading_when_client_does(void **state)
{
    (void)state;
    static char piece[4096];
    conn_open(&t, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
    conn_set_send_buffer(&t, 10000);
    size_t sent = 0;
    for (int i = 0; i < 2000 && sent < 1000000; i++) {
        ssize_t n = send(t.fd, piece, mk_min(sizeof piece, 1000000 - sent), MSG_DONTWAIT);
        sent += n > 0 ? (size_t)n : 0;
        assert_int_equal(mk_loop_run_once(&t.loop, 0), 0);
    }
    /* sending blocks, because the server does not read, and the kernel's buffers are full */
    assert_true(sent < 900000);
    while (sent < 1000000) {
        ssize_t n = send(t.fd, piece, mk_min(sizeof piece, 1000000 - sent), MSG_DONTWAIT);
        sent += n > 0 ? (size_t)n : 0;
        conn_run(&t);
    }
    while (t.n_records == 0)
        conn_run_for(&t, 5);
    struct h1_response r;
    assert_int_equal(conn_response(&t, &r, false), H1_RESPONSE_COMPLETE);
    assert_int_equal(r.content.len, 1000000);
    h1_response_fini(&r);
}

static void h1_output_any_socket_buffer_size_works(void **state)
{
    (void)state;
    static const int buffer_sizes[] = {1, 5000, 20000, 100000};
    for (size_t i = 0; i < MK_LEN(buffer_sizes); i++) {
        conn_open(&t, "");
        conn_set_send_buffer(&t, buffer_sizes[i]);
        conn_send(&t, GET("/source?n=200000") GET("/source?n=100000&unknown=1") GET("/early"));
        conn_run_until_received(&t, 300000);
        expect_source(200000, false, false);
        expect_source(100000, true, false);
        conn_expect(&t, 200, "early\n");
        conn_expect_nothing(&t);
    }
}

/* Requests small responses until the socket is full and some of them are queued. The input then ends with the
 * first letter of another request. */
static void fill_up(void)
{
    add_file("small.bin", 900);
    conn_open(&t, "G");
    conn_set_send_buffer(&t, 1);
    for (int i = 0; i < 100 && mk_send_queue_is_empty(&t.conn->out); i++) {
        conn_send(&t, "ET /small.bin HTTP/1.1\r\nHost: a\r\n\r\n" GET("/small.bin") "G");
        conn_run_server(&t);
    }
    assert_false(mk_send_queue_is_empty(&t.conn->out));
    conn_expect_state(&t, MK_CONN_HEAD);
}

static unsigned count_answers(void)
{
    unsigned n = 0;
    for (struct h1_response r; conn_response(&t, &r, false) == H1_RESPONSE_COMPLETE; n++)
        h1_response_fini(&r);
    return n;
}

static void h1_output_response_waits_for_queued_ones(void **state)
{
    (void)state;
    char request[] = GET("/small.bin");
    struct mk_buf all = mk_buf_growing(1 << 16);
    add_file("small.bin", 900);
    /* Sends a single batch whose last request waits: the head of its response is written while the batch is
     * unsent. */
    for (int i = 0; i < 25; i++)
        mk_buf_add(&all, mk_str_from_c(request));
    mk_buf_add(&all, MK_STR(GET("/slow?ms=40") GET("/early")));
    conn_open(&t, "");
    conn_set_send_buffer(&t, 1);
    conn_send_bytes(&t, mk_buf_str(&all));
    conn_run_server(&t);
    assert_false(mk_send_queue_is_empty(&t.conn->out));
    conn_expect_state(&t, MK_CONN_DISPATCH);
    uint64_t until = mk_clock_ms() + 100;
    while (mk_clock_ms() < until)
        assert_int_equal(mk_loop_run_once(&t.loop, 5), 0);
    conn_expect_state(&t, MK_CONN_SEND);
    conn_run_until_received(&t, 25 * 900);
    for (int i = 0; i < 25; i++)
        expect_source(900, false, false);
    conn_expect(&t, 200, "slow\n");
    conn_expect(&t, 200, "early\n");
    mk_buf_free(&all);
}

static void h1_output_queued_responses_do_not_wait_for_handler(void **state)
{
    (void)state;
    char request[] = GET("/small.bin");
    struct mk_buf all = mk_buf_growing(1 << 16);
    add_file("small.bin", 900);
    for (int i = 0; i < 25; i++)
        mk_buf_add(&all, mk_str_from_c(request));
    mk_buf_add(&all, MK_STR(GET("/never")));
    conn_open(&t, "");
    conn_set_send_buffer(&t, 1);
    conn_send_bytes(&t, mk_buf_str(&all));
    conn_run_server(&t);
    assert_false(mk_send_queue_is_empty(&t.conn->out));
    conn_run(&t);
    for (int i = 0; i < 25; i++)
        expect_source(900, false, false);
    conn_expect_state(&t, MK_CONN_DISPATCH);
    mk_buf_free(&all);
}

static void h1_output_queued_response_never_reaches_other_client(void **state)
{
    (void)state;
    char request[] = GET("/small.bin");
    struct mk_buf all = mk_buf_growing(1 << 16);
    add_file("small.bin", 900);
    for (int i = 0; i < 25; i++)
        mk_buf_add(&all, mk_str_from_c(request));
    mk_buf_add(&all, MK_STR(GET("/never")));
    t.limits.request.handler_ms = 40;
    conn_open(&t, "");
    conn_set_send_buffer(&t, 1);
    conn_send_bytes(&t, mk_buf_str(&all));
    conn_run_server(&t);
    assert_false(mk_send_queue_is_empty(&t.conn->out));
    int slow = t.fd;
    t.fd = -1;
    uint64_t until = mk_clock_ms() + 150;
    while (mk_clock_ms() < until) /* the handler times out, but its 504 has to wait */
        assert_int_equal(mk_loop_run_once(&t.loop, 5), 0);
    assert_int_equal(t.manager.out.len, 0);
    conn_open(&t, GET("/early"));
    conn_run(&t);
    conn_expect(&t, 200, "early\n");
    conn_expect_nothing(&t);
    mk_fd_close(&t.fd);
    conn_run_server(&t);
    t.fd = slow;
    mk_buf_clear(&t.received);
    t.read = 0;
    conn_run_until_received(&t, 25 * 900);
    for (int i = 0; i < 25; i++)
        expect_source(900, false, false);
    conn_expect(&t, 504, NULL);
    conn_expect_nothing(&t);
    mk_buf_free(&all);
}

static void h1_output_full_queue_delays_next_request(void **state)
{
    (void)state;
    fill_up();
    unsigned before = t.n_records;
    t.site.web.on_record = NULL;
    uint64_t requests = t.counters.requests;
    conn_send(&t, "ET /early HTTP/1.1\r\nHost: a\r\n\r\n");
    conn_run_server(&t);
    assert_int_equal(t.counters.requests, requests);
    assert_null(t.conn->h1);
    conn_run_until_received(&t, 1);
    assert_int_equal(count_answers(), before + (unsigned)(t.counters.requests - requests));
    assert_true(t.counters.requests > requests);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(h1_output_known_length_uses_content_length, setup),
        fixture_test(h1_output_unknown_length_is_chunked, setup),
        fixture_test(h1_output_http10_body_ends_with_connection, setup),
        fixture_test(h1_output_source_may_wait, setup),
        fixture_test(h1_output_short_source_truncates_response, setup),
        fixture_test(h1_output_source_failing_early_gets_500, setup),
        fixture_test(h1_output_source_failing_early_gets_status_of_handler, setup),
        fixture_test(h1_output_source_failing_late_keeps_status, setup),
        fixture_test(h1_output_unread_body_closes_connection_after_error, setup),
        fixture_test(h1_output_failure_keeps_earlier_responses, setup),
        fixture_test(h1_output_long_source_is_cut, setup),
        fixture_test(h1_output_source_failing_late_truncates_response, setup),
        fixture_test(h1_output_oversized_head_becomes_500, setup),
        fixture_test(h1_output_large_head_is_sent, setup),
        fixture_test(h1_output_large_head_is_sent_after_others, setup),
        fixture_test(h1_output_some_statuses_have_no_body, setup),
        fixture_test(h1_output_interim_responses_precede_head, setup),
        fixture_test(h1_output_http10_gets_no_interim_responses, setup),
        fixture_test(h1_output_interim_responses_are_bounded, setup),
        fixture_test(h1_output_files_are_sent_from_memory_and_disk, setup),
        fixture_test(h1_output_cached_response_equals_uncached, setup),
        fixture_test(h1_output_ranges_of_file_are_sent, setup),
        fixture_test(h1_output_shrinking_file_truncates_response, setup),
        fixture_test(h1_output_source_is_pulled_at_client_speed, setup),
        fixture_test(h1_output_echo_stops_reading_when_client_does, setup),
        fixture_test(h1_output_any_socket_buffer_size_works, setup),
        fixture_test(h1_output_response_waits_for_queued_ones, setup),
        fixture_test(h1_output_queued_responses_do_not_wait_for_handler, setup),
        fixture_test(h1_output_queued_response_never_reaches_other_client, setup),
        fixture_test(h1_output_full_queue_delays_next_request, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

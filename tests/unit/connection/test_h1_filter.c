/* SPDX-License-Identifier: Apache-2.0 */
/* Response bodies that plugins create or change: filters, raw responses, and files of plugins. */
#include "unit/connection/fixture.h"
#include "unit/wrap_page_cache.h"
#include "web/filter.h"

enum { LARGE = 3000000 };

static struct conn_fixture t;
static unsigned n_closed;

#define GET(target) "GET " target " HTTP/1.1\r\nHost: a\r\n\r\n"

/* ---- Filters ---- */

/* Shifts each byte by one letter, or fails after a few bytes. */
struct shift {
    uint64_t at, fails_at;
    unsigned naps; /* number of -EAGAIN results before each pull; the filter resumes the request itself */
    unsigned napped;
    struct mk_request *request;
};

static ssize_t pull_shifted(void *ctx, struct mk_filter_next *next, char *buffer, size_t cap)
{
    struct shift *s = ctx;
    if (s->at >= s->fails_at)
        return -EPIPE;
    if (s->napped < s->naps) {
        s->napped++;
        mk_request_resume(s->request);
        return -EAGAIN;
    }
    s->napped = 0;
    ssize_t n = mk_filter_next_read(next, buffer, cap);
    for (ssize_t i = 0; i < n; i++)
        buffer[i]++;
    s->at += n > 0 ? (uint64_t)n : 0;
    return n;
}

static void on_close(void *ctx)
{
    (void)ctx;
    n_closed++;
}

static const struct mk_filter_ops shift_ops = {.read = pull_shifted, .close = on_close};

static struct {
    uint64_t fails_at;
    unsigned naps, filters;
    bool keeps_length, always;
} plan;

static void on_response(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)data;
    for (unsigned i = 0; i < plan.filters; i++) {
        if (!plan.always && !mk_response_will_send_body(request, response))
            return;
        struct shift *s = mk_request_alloc(request, sizeof *s);
        assert_non_null(s);
        *s = (struct shift){.fails_at = plan.fails_at, .naps = plan.naps, .request = request};
        int64_t length = plan.keeps_length ? mk_response_length(response) : MK_LENGTH_UNKNOWN;
        assert_int_equal(mk_response_add_filter(response, &shift_ops, s, length), 0);
    }
}

static const struct mk_plugin plugin = {.name = "filter", .on_response = on_response};
static const struct mk_hook hook = {.plugin = &plugin};

static void setup(void)
{
    conn_setup(&t);
    t.site.host.hooks.response = (struct mk_hook_list){.at = &hook, .n = 1};
    memset(&plan, 0, sizeof plan);
    plan.filters = 1;
    plan.fails_at = UINT64_MAX;
    n_closed = 0;
}

static void add_file(const char *name, size_t n)
{
    struct mk_buf text = mk_buf_growing(1 << 22);
    assert_true(mk_buf_reserve(&text, n));
    for (size_t i = 0; i < n; i++)
        mk_buf_add_char(&text, handlers_byte(i));
    site_add(&t.site, name, mk_buf_str(&text));
    mk_buf_free(&text);
}

/* Expects a response of n bytes, each shifted `by` letters. */
static void expect_shifted(size_t n, int by, bool chunked)
{
    struct h1_response r;
    assert_int_equal(conn_response(&t, &r, false), H1_RESPONSE_COMPLETE);
    assert_int_equal(r.status, 200);
    assert_int_equal(r.content.len, n);
    for (size_t i = 0; i < n; i++)
        if (r.content.p[i] != handlers_byte(i) + by)
            fail_msg("byte %zu is wrong", i);
    assert_int_equal(mk_headers_has(&r.fields, MK_HEADER_TRANSFER_ENCODING), chunked);
    h1_response_fini(&r);
}

static void filter_handles_every_kind_of_body(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 1000, 1025, 100000, LARGE};
    for (size_t i = 0; i < MK_LEN(sizes); i++) {
        char requests[256];
        snprintf(requests, sizeof requests,
                 "GET /source?n=%zu HTTP/1.1\r\nHost: a\r\n\r\n"
                 "GET /source?n=%zu&unknown=1 HTTP/1.1\r\nHost: a\r\n\r\n" GET("/f%zu.bin"),
                 sizes[i], sizes[i], i);
        char name[32];
        snprintf(name, sizeof name, "f%zu.bin", i);
        add_file(name, sizes[i]);
        conn_open(&t, requests);
        conn_run_until_received(&t, 3 * sizes[i]);
        expect_shifted(sizes[i], 1, true);
        expect_shifted(sizes[i], 1, true);
        expect_shifted(sizes[i], 1, true);
        conn_expect_nothing(&t);
    }
    assert_int_equal(n_closed, 3 * MK_LEN(sizes));
}

static void filter_stacks_and_may_keep_length(void **state)
{
    (void)state;
    add_file("f.bin", 5000);
    plan.filters = 3;
    plan.keeps_length = true;
    conn_open(&t, GET("/f.bin") GET("/source?n=5000") GET("/early"));
    conn_run(&t);
    expect_shifted(5000, 3, false);
    expect_shifted(5000, 3, false);
    conn_expect(&t, 200, "hduo|\r"); /* "early\n" */
    assert_int_equal(n_closed, 9);
    conn_expect_state(&t, MK_CONN_IDLE);
}

static void filter_may_wait(void **state)
{
    (void)state;
    add_file("f.bin", 200000);
    plan.naps = 2;
    conn_open(&t, GET("/f.bin") GET("/source?n=1000"));
    conn_run_until_received(&t, 201000);
    expect_shifted(200000, 1, true);
    expect_shifted(1000, 1, true);
    assert_int_equal(t.manager.helper.n_threads, 0); /* no thread was started to read from the disk */
}

static void filter_waits_for_source(void **state)
{
    (void)state;
    conn_open(&t, GET("/drip?n=3&ms=10"));
    while (t.n_records < 1)
        conn_run_for(&t, 10);
    expect_shifted(3, 1, true);
}

static void filter_http10_body_ends_with_connection(void **state)
{
    (void)state;
    struct h1_response r;
    add_file("f.bin", 5000);
    conn_open(&t, "GET /f.bin HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    conn_run(&t);
    assert_true(t.ended && !t.reset);
    assert_int_equal(conn_response(&t, &r, false), H1_RESPONSE_COMPLETE);
    assert_int_equal(r.content.len, 5000);
    assert_true(r.closes);
    h1_response_fini(&r);
}

static void filter_without_body_is_not_pulled(void **state)
{
    (void)state;
    add_file("f.bin", 5000);
    for (int always = 0; always < 2; always++) {
        plan.always = always;
        conn_open(&t, "HEAD /f.bin HTTP/1.1\r\nHost: a\r\n\r\n"
                      "GET /f.bin HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\n\r\n");
        conn_run(&t);
        conn_expect_for(&t, true, 200, "");
        conn_expect(&t, 304, "");
        conn_expect_nothing(&t);
        conn_expect_state(&t, MK_CONN_IDLE);
        mk_fd_close(&t.fd);
        conn_run_server(&t);
    }
    assert_int_equal(n_closed, 2);
}

static void filter_failing_at_once_gets_500(void **state)
{
    (void)state;
    add_file("f.bin", 5000);
    plan.fails_at = 0;
    static const char *const requests[] = {GET("/f.bin"), GET("/source?n=1000"), GET("/early")};
    for (size_t i = 0; i < MK_LEN(requests); i++) {
        t.n_records = 0;
        conn_open(&t, requests[i]);
        conn_run(&t);
        conn_expect(&t, 500, ""); /* the error page fails in the same way */
        conn_expect_end(&t, 1, 500, MK_OUTCOME_FAILED);
    }
    assert_int_equal(n_closed, 6);
}

static void filter_failing_later_truncates_response(void **state)
{
    (void)state;
    struct h1_response r;
    add_file("f.bin", LARGE);
    plan.fails_at = 200000;
    conn_open(&t, GET("/f.bin"));
    conn_run_until_received(&t, LARGE);
    assert_int_equal(conn_response(&t, &r, false), H1_RESPONSE_PARTIAL);
    h1_response_fini(&r);
    conn_expect_end(&t, 1, 200, MK_OUTCOME_FAILED);
    t.n_records = 0;
    conn_open(&t, "GET /f.bin HTTP/1.0\r\n\r\n");
    conn_run_until_received(&t, LARGE);
    assert_true(t.ended || t.reset);
    assert_int_equal(t.outcomes[0], MK_OUTCOME_FAILED);
    assert_int_equal(n_closed, 2);
}

static void filter_source_error_is_passed_on(void **state)
{
    (void)state;
    struct h1_response r;
    conn_open(&t, GET("/liar?n=1000&has=600"));
    conn_run(&t);
    conn_expect(&t, 500, NULL);
    conn_open(&t, GET("/broken?n=400000"));
    conn_run(&t);
    assert_int_equal(conn_response(&t, &r, false), H1_RESPONSE_PARTIAL);
    h1_response_fini(&r);
    assert_int_equal(n_closed, 3); /* the error page of the first request was filtered too */
}

static void filter_is_closed_when_client_disconnects(void **state)
{
    (void)state;
    conn_open(&t, "");
    conn_set_send_buffer(&t, 1);
    conn_send(&t, GET("/source?n=3000000"));
    conn_run_server(&t);
    conn_expect_state(&t, MK_CONN_SEND);
    assert_int_equal(n_closed, 0);
    mk_fd_close(&t.fd);
    conn_run_server(&t);
    assert_int_equal(n_closed, 1);
    assert_int_equal(t.outcomes[0], MK_OUTCOME_CLIENT_ABORTED);
}

/* ---- Pages not in the page cache ---- */

static void filter_cold_file_is_read_by_thread(void **state)
{
    (void)state;
    add_file("cold.bin", LARGE);
    page_cache_miss_next();
    conn_open(&t, GET("/cold.bin") GET("/cold.bin"));
    conn_run_until_received(&t, LARGE);
    while (t.n_records < 2)
        conn_run_for(&t, 5);
    expect_shifted(LARGE, 1, true);
    expect_shifted(LARGE, 1, true);
    assert_true(t.counters.cold_reads > 0);
}

static void filter_cold_file_without_thread_blocks(void **state)
{
    (void)state;
    add_file("cold.bin", LARGE);
    page_cache_miss_next();
    struct mk_loop broken = {.epoll_fd = -1}; /* threads cannot wake this loop when they finish */
    t.manager.helper.loop = &broken;
    conn_open(&t, GET("/cold.bin"));
    conn_run_until_received(&t, LARGE);
    expect_shifted(LARGE, 1, true);
    assert_int_equal(t.counters.cold_reads, 0);
    t.manager.helper.loop = &t.loop;
}

/* ---- Files of a handler ---- */

static enum mk_verdict send_file(struct mk_request *request, struct mk_response *response, void *data)
{
    uint64_t n = handlers_number(request, "n", 0), from = handlers_number(request, "from", 0);
    (void)data;
    int fd = mk_request_open(request, MK_STR("/f.bin"));
    assert_true(fd >= 0);
    return mk_response_set_body_file(response, fd, from, n) ? MK_ERROR : MK_DONE;
}

/* Returns the whole text at once, then the end; fails after a '!'. */
static ssize_t pull_raw(void *ctx, char *buffer, size_t cap)
{
    mk_str *left = ctx;
    size_t n = left->len;
    assert_true(n <= cap);
    if (n == 0)
        return left->p[-1] == '!' ? -EIO : 0;
    memcpy(buffer, left->p, n);
    *left = mk_str_skip(*left, n);
    return (ssize_t)n;
}

static const struct mk_body_source_ops raw_ops = {.read = pull_raw, .close = on_close};

static enum mk_verdict speak_raw(struct mk_request *request, struct mk_response *response, void *data)
{
    mk_str *text = mk_request_alloc(request, sizeof *text);
    assert_non_null(text);
    *text = mk_str_from_c(*(const char *const *)data);
    assert_int_equal(mk_response_set_status(response, 203), 0);
    return mk_response_set_raw_source(response, &raw_ops, text) ? MK_ERROR : MK_DONE;
}

static struct mk_request *seen;
static struct mk_addr local;

static enum mk_verdict respond_local_addr(struct mk_request *request, struct mk_response *response,
                                          void *data)
{
    (void)data;
    seen = request;
    assert_int_equal(mk_request_local_addr(request, &local), 0);
    return mk_response_set_body_nocopy(response, MK_STR("local")) ? MK_ERROR : MK_DONE;
}

static const char *raw_text;

static const struct mk_handler file_handler = {.name = "file", .handle = send_file},
                               raw_handler = {.name = "raw", .handle = speak_raw},
                               local_handler = {.name = "local", .handle = respond_local_addr};

static const struct mk_route own_routes[] = {
    {.pattern = {.text = MK_STR_INIT("/file"), .kind = MK_PATTERN_EXACT}, .handler = &file_handler},
    {.pattern = {.text = MK_STR_INIT("/raw"), .kind = MK_PATTERN_EXACT},
     .handler = &raw_handler,
     .data = &raw_text},
    {.pattern = {.text = MK_STR_INIT("/local"), .kind = MK_PATTERN_EXACT}, .handler = &local_handler},
    {.pattern = {.text = MK_STR_INIT("/early"), .kind = MK_PATTERN_EXACT}, .handler = &handlers_all[4]},
};

static void setup_own_file(void)
{
    setup();
    plan.filters = 0;
    t.site.host.routes = own_routes;
    t.site.host.n_routes = MK_LEN(own_routes);
    add_file("f.bin", LARGE);
}

static void file_of_handler_is_sent(void **state)
{
    (void)state;
    unsigned fds = mk_fd_count_open();
    conn_open(&t, GET("/file?n=3000000") GET("/file?n=0") "HEAD /file?n=7 HTTP/1.1\r\nHost: a\r\n\r\n" GET(
                      "/file?n=1000&from=23") GET("/early"));
    conn_run_until_received(&t, LARGE + 1000);
    expect_shifted(LARGE, 0, false);
    conn_expect(&t, 200, "");
    conn_expect_for(&t, true, 200, "");
    expect_shifted(1000, 0, false);
    conn_expect(&t, 200, "early\n");
    mk_fd_close(&t.fd);
    conn_run_server(&t);
    assert_int_equal(mk_fd_count_open(), fds);
}

static void file_of_handler_may_be_cold(void **state)
{
    (void)state;
    page_cache_miss_next();
    conn_open(&t, GET("/file?n=3000000") GET("/early"));
    conn_run_until_received(&t, LARGE);
    while (t.n_records < 2)
        conn_run_for(&t, 5);
    expect_shifted(LARGE, 0, false);
    conn_expect(&t, 200, "early\n");
    assert_true(t.counters.cold_reads > 0);
}

static void file_of_handler_client_disconnects_during_cold_read(void **state)
{
    (void)state;
    unsigned fds = mk_fd_count_open();
    page_cache_miss_next();
    conn_open(&t, GET("/file?n=3000000"));
    mk_fd_close(&t.fd);
    while (t.n_records < 1)
        assert_int_equal(mk_loop_run_once(&t.loop, 5), 0);
    mk_offload_fini(&t.manager.helper); /* the thread holds its own reference to the file */
    assert_int_equal(mk_offload_init(&t.manager.helper, &t.loop), 0);
    conn_run_server(&t);
    assert_true(mk_fd_count_open() <= fds + 1);
}

static void file_of_handler_too_short_truncates_response(void **state)
{
    (void)state;
    struct h1_response r;
    conn_open(&t, GET("/file?n=3000001"));
    conn_run_until_received(&t, LARGE);
    assert_int_equal(conn_response(&t, &r, false), H1_RESPONSE_PARTIAL);
    assert_int_equal(r.content.len, LARGE);
    h1_response_fini(&r);
    conn_expect_end(&t, 1, 200, MK_OUTCOME_FAILED);
}

static void file_of_handler_is_filtered(void **state)
{
    (void)state;
    plan.filters = 2;
    conn_open(&t, GET("/file?n=200000") GET("/file?n=200000"));
    conn_run_until_received(&t, 400000);
    expect_shifted(200000, 2, true);
    expect_shifted(200000, 2, true);
    assert_int_equal(n_closed, 4);
}

/* ---- Raw responses ---- */

static void raw_response_is_sent_unchanged(void **state)
{
    (void)state;
    static const char *const requests[] = {GET("/raw") GET("/early"), "HEAD /raw HTTP/1.1\r\nHost: a\r\n\r\n",
                                           "GET /raw HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"};
    raw_text = "HTTP/1.1 200 Very Fine\r\nX-Own: 1\r\n\r\nbody";
    plan.filters = 1; /* not added: a raw response does not count as having a body */
    for (size_t i = 0; i < MK_LEN(requests); i++) {
        t.n_records = 0;
        conn_open(&t, requests[i]);
        conn_run(&t);
        assert_str(conn_received(&t), raw_text);
        assert_true(t.ended && !t.reset);
        assert_int_equal(t.n_records, 1);
        assert_int_equal(t.statuses[0], 203);
        assert_int_equal(t.outcomes[0], MK_OUTCOME_OK);
        assert_int_equal(t.content_sent[0], strlen(raw_text));
    }
    assert_int_equal(n_closed, 3);
}

static void raw_response_follows_earlier_responses(void **state)
{
    (void)state;
    raw_text = "raw";
    conn_open(&t, GET("/early") GET("/early") GET("/raw"));
    conn_run(&t);
    conn_expect(&t, 200, "early\n");
    conn_expect(&t, 200, "early\n");
    assert_str(conn_received(&t), "raw");
    assert_true(t.ended);
}

static void raw_response_source_error_gets_500(void **state)
{
    (void)state;
    raw_text = "HTTP/1.1 200 OK\r\n\r\nhalf!";
    conn_open(&t, GET("/raw"));
    conn_run(&t);
    conn_expect(&t, 500, NULL); /* the server had not sent anything yet */
    conn_expect_end(&t, 1, 500, MK_OUTCOME_FAILED);
    assert_int_equal(n_closed, 1);
}

static void raw_response_may_be_empty(void **state)
{
    (void)state;
    raw_text = &"\n"[1];
    conn_open(&t, GET("/raw"));
    conn_run(&t);
    conn_expect_end(&t, 1, 203, MK_OUTCOME_OK);
}

/* ---- Local address ---- */

static void local_address_is_available(void **state)
{
    (void)state;
    conn_open(&t, GET("/local"));
    conn_run(&t);
    conn_expect(&t, 200, "local");
    assert_non_null(seen);
    assert_int_equal(local.is_unix, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(filter_handles_every_kind_of_body, setup),
        fixture_test(filter_stacks_and_may_keep_length, setup),
        fixture_test(filter_may_wait, setup),
        fixture_test(filter_waits_for_source, setup),
        fixture_test(filter_http10_body_ends_with_connection, setup),
        fixture_test(filter_without_body_is_not_pulled, setup),
        fixture_test(filter_failing_at_once_gets_500, setup),
        fixture_test(filter_failing_later_truncates_response, setup),
        fixture_test(filter_source_error_is_passed_on, setup),
        fixture_test(filter_is_closed_when_client_disconnects, setup),
        fixture_test(filter_cold_file_is_read_by_thread, setup),
        fixture_test(filter_cold_file_without_thread_blocks, setup),
        fixture_test(file_of_handler_is_sent, setup_own_file),
        fixture_test(file_of_handler_may_be_cold, setup_own_file),
        fixture_test(file_of_handler_client_disconnects_during_cold_read, setup_own_file),
        fixture_test(file_of_handler_too_short_truncates_response, setup_own_file),
        fixture_test(file_of_handler_is_filtered, setup_own_file),
        fixture_test(raw_response_is_sent_unchanged, setup_own_file),
        fixture_test(raw_response_follows_earlier_responses, setup_own_file),
        fixture_test(raw_response_source_error_gets_500, setup_own_file),
        fixture_test(raw_response_may_be_empty, setup_own_file),
        fixture_test(local_address_is_available, setup_own_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Sends requests through the whole server without a socket. */
#include <monkey/body_source.h>
#include <monkey/request_ref.h>
#include <monkey/test_client.h>
#include <stdlib.h>

#include "lib/embed.h"

static mk_str text(const char *s)
{
    return mk_str_from_c(s);
}

#define assert_text(actual, expected)                                                                        \
    do {                                                                                                     \
        mk_str seen = (actual);                                                                              \
        if (!mk_str_eq(seen, text(expected)))                                                                \
            fail_msg("\"%.*s\" is not \"%s\"", MK_STR_ARG(seen), (expected));                                \
    } while (0)

/* Echoes the request body in chunks. */
static enum mk_verdict echo(struct mk_request *request, struct mk_response *response, void *data)
{
    static char buffer[100000];
    size_t *len = mk_request_data(request);
    ssize_t n;
    (void)data;
    if (!len) {
        len = mk_request_alloc(request, sizeof *len);
        *len = 0;
        mk_request_set_data(request, len);
    }
    while (*len < sizeof buffer && (n = mk_request_read(request, buffer + *len, sizeof buffer - *len)) > 0)
        *len += (size_t)n;
    if (n == -EAGAIN)
        return MK_WAIT;
    mk_response_add_header(response, MK_STR("X-Type"), mk_request_header(request, MK_STR("Content-Type")));
    mk_response_set_body(response, mk_str_of(buffer, *len));
    return MK_DONE;
}

static struct mk_server *set_up(void)
{
    struct mk_server *s = mk_server_new(NULL);
    assert_int_equal(mk_server_add_route(s, "GET /hello", respond_hello, NULL), 0);
    assert_int_equal(mk_server_add_route(s, "POST /echo", echo, NULL), 0);
    return s;
}

static void test_client_needs_no_socket(void **state)
{
    (void)state;
    struct mk_server *s = set_up();
    struct mk_test_client *p = mk_test_client_open(s);
    struct mk_test_client_response a;
    assert_non_null(p);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(mk_test_client_request(p, "GET", "/hello", NULL, 0, MK_STR_NULL, &a), 0);
        assert_int_equal(a.status, 200);
        assert_text(a.body, "hello");
        assert_text(mk_test_client_header(&a, MK_STR("content-length")), "5");
        assert_null(mk_test_client_header(&a, MK_STR("X-Nothing")).p);
    }
    assert_int_equal(mk_test_client_request(p, "GET", "/missing", NULL, 0, MK_STR_NULL, &a), 0);
    assert_int_equal(a.status, 404);
    assert_int_equal(mk_test_client_request(p, "HEAD", "/hello", NULL, 0, MK_STR_NULL, &a), 0);
    assert_int_equal(a.body.len, 0);
    mk_test_client_close(p);
    mk_server_free(s);
}

static void test_client_transfers_bodies_in_both_directions(void **state)
{
    (void)state;
    struct mk_server *s = set_up();
    struct mk_test_client *p = mk_test_client_open(s);
    struct mk_test_client_response a;
    char *large = malloc(90000);
    const struct mk_header type = {MK_STR_INIT("Content-Type"), MK_STR_INIT("text/x")};
    memset(large, 'x', 90000);
    assert_int_equal(mk_test_client_request(p, "POST", "/echo", &type, 1, mk_str_of(large, 90000), &a), 0);
    assert_int_equal(a.status, 200);
    assert_int_equal(a.body.len, 90000);
    assert_memory_equal(a.body.p, large, 90000);
    assert_text(mk_test_client_header(&a, MK_STR("X-Type")), "text/x");
    assert_int_equal(mk_test_client_request(p, "POST", "/echo", NULL, 0, MK_STR(""), &a), 0);
    assert_int_equal(a.body.len, 0);
    free(large);
    mk_test_client_close(p);
    mk_server_free(s);
}

static void test_client_reopens_closed_connection(void **state)
{
    (void)state;
    struct mk_server *s = set_up();
    struct mk_test_client *p = mk_test_client_open(s);
    struct mk_test_client_response a;
    const struct mk_header last = {MK_STR_INIT("Connection"), MK_STR_INIT("close")};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(mk_test_client_request(p, "GET", "/hello", &last, 1, MK_STR_NULL, &a), 0);
        assert_text(a.body, "hello");
    }
    mk_test_client_close(p);
    mk_server_free(s);
}

/* After such an error, the server lingers on the connection, while the next request opens another one. */
static void test_client_gets_response_after_error_that_closes(void **state)
{
    (void)state;
    struct mk_test_client_response answer;
    struct mk_server *s = mk_server_new(NULL);
    assert_int_equal(mk_server_set(s, "SERVER", "MaxBodySize", "10"), 0);
    assert_int_equal(mk_server_add_route(s, "/hello", respond_hello, NULL), 0);
    struct mk_test_client *p = mk_test_client_open(s);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(
            mk_test_client_request(p, "POST", "/hello", NULL, 0, MK_STR("more than ten bytes"), &answer), 0);
        assert_int_equal(answer.status, 413);
        assert_int_equal(mk_test_client_request(p, "GET", "/%00", NULL, 0, MK_STR_NULL, &answer), 0);
        assert_int_equal(answer.status, 400);
        assert_int_equal(mk_test_client_request(p, "GET", "/hello", NULL, 0, MK_STR_NULL, &answer), 0);
        assert_int_equal(answer.status, 200);
    }
    mk_test_client_close(p);
    mk_server_free(s);
}

static void test_client_refuses_invalid_requests(void **state)
{
    (void)state;
    struct mk_server *s = set_up();
    struct mk_test_client *p = mk_test_client_open(s);
    struct mk_test_client_response a;
    const struct mk_header odd = {MK_STR_INIT("X"), MK_STR_INIT("1\r\nY: 2")};
    assert_int_equal(mk_test_client_request(p, "GET", "/a b", NULL, 0, MK_STR_NULL, &a), -EINVAL);
    assert_int_equal(mk_test_client_request(p, "G\nT", "/", NULL, 0, MK_STR_NULL, &a), -EINVAL);
    assert_int_equal(mk_test_client_request(p, "GET", "/", &odd, 1, MK_STR_NULL, &a), -EINVAL);
    assert_int_equal(mk_test_client_request(p, "GET", "/hello", NULL, 0, MK_STR_NULL, &a), 0);
    mk_test_client_close(p);
    mk_server_free(s);
}

static void test_client_sends_raw_bytes(void **state)
{
    (void)state;
    struct mk_server *s = set_up();
    struct mk_test_client *p = mk_test_client_open(s);
    assert_int_equal(mk_test_client_send(p, MK_STR("GET /hel")), 0);
    assert_int_equal(mk_test_client_step(p, 0), 1);
    assert_int_equal(mk_test_client_received(p).len, 0);
    assert_int_equal(mk_test_client_send(p, MK_STR("lo HTTP/1.0\r\n\r\n")), 0);
    while (mk_test_client_step(p, 100) == 1)
        ;
    assert_true(mk_str_starts(mk_test_client_received(p), MK_STR("HTTP/1.1 200 OK\r\n")));
    assert_true(mk_str_ends(mk_test_client_received(p), MK_STR("\r\n\r\nhello")));
    assert_int_equal(mk_test_client_send(p, MK_STR("x")), -ECONNRESET);
    mk_test_client_close(p);
    mk_server_free(s);
}

/* ---- Over HTTP/2 ---- */

static struct mk_test_client *open_http2(struct mk_server *s)
{
    struct mk_test_client *p = mk_test_client_open(s);
    assert_non_null(p);
    if (!HAS_HTTP2) {
        assert_int_equal(mk_test_client_use_http2(p), -EOPNOTSUPP);
        mk_test_client_close(p);
        mk_server_free(s);
        skip();
    }
    assert_int_equal(mk_test_client_use_http2(p), 0);
    return p;
}

static enum mk_verdict name_protocol(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)data;
    mk_response_set_body(response, mk_request_header(request, MK_STR("Host")));
    mk_response_add_header(response, MK_STR("X-Protocol"),
                           mk_request_version(request) == 20 ? MK_STR("2") : MK_STR("1"));
    return MK_DONE;
}

static void test_client_supports_http2(void **state)
{
    (void)state;
    struct mk_server *s = set_up();
    struct mk_test_client_response a;
    const struct mk_header host = {MK_STR_INIT("Host"), MK_STR_INIT("example.org")};
    assert_int_equal(mk_server_add_route(s, "GET /protocol", name_protocol, NULL), 0);
    struct mk_test_client *p = open_http2(s);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(mk_test_client_request(p, "GET", "/protocol", &host, 1, MK_STR_NULL, &a), 0);
        assert_int_equal(a.status, 200);
        assert_text(a.body, "example.org");
        assert_text(mk_test_client_header(&a, MK_STR("X-Protocol")), "2");
        assert_true(mk_str_find(a.headers, ':') > 0);
    }
    assert_int_equal(mk_test_client_request(p, "GET", "/missing", NULL, 0, MK_STR_NULL, &a), 0);
    assert_int_equal(a.status, 404);
    assert_int_equal(mk_test_client_request(p, "HEAD", "/hello", NULL, 0, MK_STR_NULL, &a), 0);
    assert_int_equal(a.body.len, 0);
    assert_text(mk_test_client_header(&a, MK_STR("Content-Length")), "5");
    assert_int_equal(mk_test_client_request(p, "GET", "/a b", NULL, 0, MK_STR_NULL, &a), -EINVAL);
    assert_int_equal(mk_test_client_use_http2(p), 0);
    assert_int_equal(mk_test_client_request(p, "GET", "/hello", NULL, 0, MK_STR_NULL, &a), 0);
    assert_text(a.body, "hello");
    mk_test_client_close(p);
    mk_server_free(s);
}

/* The body exhausts both windows repeatedly, in either direction. */
static void test_client_http2_body_exceeds_windows(void **state)
{
    (void)state;
    struct mk_server *s = set_up();
    struct mk_test_client *p = open_http2(s);
    struct mk_test_client_response a;
    char *large = malloc(100000);
    for (size_t i = 0; i < 100000; i++)
        large[i] = (char)('a' + i % 23);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(mk_test_client_request(p, "POST", "/echo", NULL, 0, mk_str_of(large, 100000), &a),
                         0);
        assert_int_equal(a.body.len, 100000);
        assert_memory_equal(a.body.p, large, 100000);
    }
    assert_int_equal(mk_test_client_request(p, "POST", "/echo", NULL, 0, MK_STR(""), &a), 0);
    assert_int_equal(a.body.len, 0);
    free(large);
    mk_test_client_close(p);
    mk_server_free(s);
}

/* Fails late, after a part of the body has been sent. */
static ssize_t break_off(void *ctx, char *buffer, size_t cap)
{
    size_t *sent = ctx;
    memset(buffer, 'x', cap);
    *sent += cap;
    return *sent < 1000000 ? (ssize_t)cap : -EIO;
}

static enum mk_verdict decline(struct mk_request *request, struct mk_response *response, void *data)
{
    static const struct mk_body_source_ops ops = {.read = break_off};
    size_t *sent = mk_request_alloc(request, sizeof *sent);
    (void)data;
    *sent = 0;
    mk_response_set_body_source(response, &ops, sent, MK_LENGTH_UNKNOWN);
    return MK_DONE;
}

static void test_client_reports_aborted_response(void **state)
{
    (void)state;
    struct mk_server *s = set_up();
    struct mk_test_client_response a;
    assert_int_equal(mk_server_add_route(s, "GET /abort", decline, NULL), 0);
    struct mk_test_client *p = open_http2(s);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(mk_test_client_request(p, "GET", "/abort", NULL, 0, MK_STR_NULL, &a), -ECONNRESET);
        assert_int_equal(mk_test_client_request(p, "GET", "/hello", NULL, 0, MK_STR_NULL, &a), 0);
        assert_text(a.body, "hello");
    }
    mk_test_client_close(p);
    mk_server_free(s);
}

static void test_client_http2_may_be_disabled(void **state)
{
    (void)state;
    struct mk_server *s = set_up();
    assert_int_equal(mk_server_set(s, "SERVER", "HTTP2", "off"), 0);
    struct mk_test_client *p = mk_test_client_open(s);
    struct mk_test_client_response a;
    assert_int_equal(mk_test_client_use_http2(p), -EOPNOTSUPP);
    assert_int_equal(mk_test_client_request(p, "GET", "/hello", NULL, 0, MK_STR_NULL, &a), 0);
    mk_test_client_close(p);
    mk_server_free(s);
}

/* ---- With threads, and without a server ---- */

static const char key;

static void *resume(void *ctx)
{
    struct mk_request_ref *t = ctx;
    usleep(2000);
    (void)mk_request_ref_resume(t, NULL, NULL);
    mk_request_ref_free(t);
    return NULL;
}

static enum mk_verdict answer_later(struct mk_request *request, struct mk_response *response, void *data)
{
    pthread_t thread;
    struct mk_request_ref *t = mk_request_attached(request, &key) ? NULL : mk_request_ref_new(request);
    if (!t)
        return respond_hello(request, response, data);
    assert_int_equal(mk_request_attach(request, &key, t, NULL), 0);
    pthread_create(&thread, NULL, resume, t);
    pthread_detach(thread);
    return MK_WAIT;
}

static void test_client_waits_for_other_threads(void **state)
{
    (void)state;
    struct mk_server *s = set_up();
    struct mk_test_client_response a;
    assert_int_equal(mk_server_add_route(s, "GET /later", answer_later, NULL), 0);
    struct mk_test_client *p = mk_test_client_open(s);
    assert_int_equal(mk_test_client_request(p, "GET", "/later", NULL, 0, MK_STR_NULL, &a), 0);
    assert_text(a.body, "hello");
    mk_test_client_close(p);
    mk_server_free(s);
}

static void test_client_may_outlive_its_server(void **state)
{
    (void)state;
    struct mk_server *s = set_up();
    struct mk_test_client_response a;
    struct mk_test_client *p = mk_test_client_open(s), *other = mk_test_client_open(s);
    assert_int_equal(mk_test_client_send(other, MK_STR("GET /hello HTTP/1.1\r\n")), 0);
    mk_server_free(s);
    assert_int_equal(mk_test_client_request(p, "GET", "/hello", NULL, 0, MK_STR_NULL, &a), -ESHUTDOWN);
    assert_int_equal(mk_test_client_send(p, MK_STR("x")), -ECONNRESET);
    assert_int_equal(mk_test_client_step(p, 0), -ESHUTDOWN);
    assert_int_equal(mk_test_client_use_http2(p), -ESHUTDOWN);
    assert_int_equal(mk_test_client_use_http2(NULL), -EINVAL);
    mk_test_client_close(p);
    mk_test_client_close(other);
    mk_test_client_close(NULL);
}

static void test_client_is_unavailable_for_server_in_threads(void **state)
{
    (void)state;
    struct mk_server *s = set_up();
    assert_int_equal(mk_server_start(s, 1), 0);
    assert_null(mk_test_client_open(s));
    assert_holds(mk_server_error(s), "was started");
    mk_server_free(s);
    assert_null(mk_test_client_open(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_client_needs_no_socket),
        cmocka_unit_test(test_client_transfers_bodies_in_both_directions),
        cmocka_unit_test(test_client_reopens_closed_connection),
        cmocka_unit_test(test_client_gets_response_after_error_that_closes),
        cmocka_unit_test(test_client_refuses_invalid_requests),
        cmocka_unit_test(test_client_sends_raw_bytes),
        cmocka_unit_test(test_client_supports_http2),
        cmocka_unit_test(test_client_http2_body_exceeds_windows),
        cmocka_unit_test(test_client_reports_aborted_response),
        cmocka_unit_test(test_client_http2_may_be_disabled),
        cmocka_unit_test(test_client_waits_for_other_threads),
        cmocka_unit_test(test_client_may_outlive_its_server),
        cmocka_unit_test(test_client_is_unavailable_for_server_in_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

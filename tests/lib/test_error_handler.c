/* SPDX-License-Identifier: Apache-2.0 */
/* mk_server_set_error_handler(): the program responds to errors, over HTTP/1.1 and HTTP/2. */
#include "lib/embed.h"

#include <monkey/test_client.h>
#include <monkey/timer.h>

struct handler {
    struct mk_timer timer;
    struct mk_request *request;
    unsigned n_calls;
    enum mk_verdict verdict; /* 0: responds */
    unsigned status;         /* 0: unchanged */
    bool waits, has_waited;
};

static void on_due(struct mk_timer *t)
{
    struct handler *h = MK_CONTAINER(t, struct handler, timer);
    h->has_waited = true;
    mk_request_resume(h->request);
}

static enum mk_verdict wait_once(struct handler *h, struct mk_request *request)
{
    h->request = request;
    mk_timer_init(&h->timer, on_due);
    mk_timer_set(&h->timer, mk_request_worker(request), 10);
    return MK_WAIT;
}

/* Responds with the body "STATUS PHRASE METHOD PATH". */
static enum mk_verdict respond(struct mk_request *request, struct mk_response *response, void *data)
{
    struct handler *h = data;
    char text[256];
    unsigned status = mk_response_status(response);
    h->n_calls++;
    if (h->status)
        assert_int_equal(mk_response_set_status(response, h->status), 0);
    if (h->verdict)
        return h->verdict;
    if (h->waits && !h->has_waited)
        return wait_once(h, request);
    assert_int_equal(mk_response_length(response), 0);
    assert_null(mk_response_header(response, MK_STR("Content-Type")).p);
    snprintf(text, sizeof text, "%u %.*s %.*s %.*s", status, MK_STR_ARG(mk_status_phrase(status)),
             MK_STR_ARG(mk_request_method_name(request)), MK_STR_ARG(mk_request_path(request)));
    assert_int_equal(mk_response_set_header(response, MK_STR("Content-Type"), MK_STR("text/x-error")), 0);
    assert_int_equal(mk_response_set_body(response, mk_str_from_c(text)), 0);
    return MK_DONE;
}

static enum mk_verdict reject(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)request;
    mk_response_set_status(response, *(const unsigned *)data);
    mk_response_add_header(response, MK_STR("X-Reason"), MK_STR("tea"));
    mk_response_add_header(response, MK_STR("Content-Type"), MK_STR("text/html"));
    mk_response_set_body(response, MK_STR("dropped"));
    return MK_ERROR;
}

static const unsigned teapot = 418, too_much = 503;

static ssize_t fail_to_read(void *ctx, char *buf, size_t cap)
{
    (void)ctx, (void)buf, (void)cap;
    return -EPIPE;
}

/* The source fails before anything is sent. */
static enum mk_verdict fail_late(struct mk_request *request, struct mk_response *response, void *data)
{
    static const struct mk_body_source_ops ops = {.read = fail_to_read};
    (void)request, (void)data;
    mk_response_fail(response, 502);
    return mk_response_set_body_source(response, &ops, NULL, MK_LENGTH_UNKNOWN) ? MK_ERROR : MK_DONE;
}

struct case_ {
    struct mk_server *s;
    struct mk_test_client *client;
    struct handler handler;
    struct mk_test_client_response a;
};

static void set_up(struct case_ *c, bool is_http2)
{
    *c = (struct case_){.s = mk_server_new(NULL)};
    assert_non_null(c->s);
    assert_int_equal(mk_server_set_error_handler(c->s, reject, NULL), 0);
    assert_int_equal(mk_server_set_error_handler(c->s, respond, &c->handler), 0); /* replaces the first */
    assert_int_equal(mk_server_set(c->s, "SERVER", "ErrorFormat", "json"), 0);
    assert_int_equal(mk_server_set(c->s, "SERVER", "MaxBodySize", "10"), 0);
    assert_int_equal(mk_server_add_route(c->s, "GET,PUT /hello", respond_hello, NULL), 0);
    assert_int_equal(mk_server_add_route(c->s, "/teapot", reject, (void *)(uintptr_t)&teapot), 0);
    assert_int_equal(mk_server_add_route(c->s, "/busy", reject, (void *)(uintptr_t)&too_much), 0);
    assert_int_equal(mk_server_add_route(c->s, "/late", fail_late, NULL), 0);
    c->client = mk_test_client_open(c->s);
    assert_non_null(c->client);
    if (is_http2)
        assert_int_equal(mk_test_client_use_http2(c->client), 0);
}

static void tear_down(struct case_ *c)
{
    mk_test_client_close(c->client);
    mk_server_free(c->s);
}

static void ask(struct case_ *c, const char *method, const char *target, const char *body)
{
    c->handler.n_calls = 0;
    assert_int_equal(mk_test_client_request(c->client, method, target, NULL, 0, mk_str_from_c(body), &c->a),
                     0);
}

static void expect(struct case_ *c, unsigned status, const char *type, const char *body)
{
    mk_str found = mk_test_client_header(&c->a, MK_STR("Content-Type"));
    assert_int_equal(c->a.status, status);
    assert_int_equal(c->a.body.len, strlen(body));
    assert_memory_equal(c->a.body.p, body, strlen(body));
    assert_int_equal(found.len, strlen(type));
    assert_memory_equal(found.p, type, found.len);
}

static void expect_header(struct case_ *c, const char *name, const char *value)
{
    mk_str found = mk_test_client_header(&c->a, mk_str_from_c(name));
    assert_int_equal(found.len, strlen(value));
    assert_memory_equal(found.p, value, found.len);
}

/* Runs the test over both protocols, if the library has both. */
static void over_both(void (*test)(struct case_ *c))
{
    for (int is_http2 = 0; is_http2 <= HAS_HTTP2; is_http2++) {
        struct case_ c;
        set_up(&c, is_http2);
        test(&c);
        tear_down(&c);
    }
}

static void check_errors(struct case_ *c)
{
    ask(c, "GET", "/hello", NULL);
    assert_int_equal(c->handler.n_calls, 0);
    ask(c, "GET", "/none?q", NULL);
    expect(c, 404, "text/x-error", "404 Not Found GET /none");
    ask(c, "DELETE", "/hello", NULL);
    expect(c, 405, "text/x-error", "405 Method Not Allowed DELETE /hello");
    expect_header(c, "Allow", "GET, HEAD, PUT, OPTIONS");
    ask(c, "PUT", "/hello", "12345678901");
    expect(c, 413, "text/x-error", "413 Content Too Large PUT /hello");
    ask(c, "GET", "/teapot", NULL);
    expect(c, 418, "text/x-error", "418  GET /teapot");
    expect_header(c, "X-Reason", "tea");
    ask(c, "GET", "/late", NULL);
    expect(c, 502, "text/x-error", "502 Bad Gateway GET /late");
    assert_int_equal(c->handler.n_calls, 1);
}

static void error_handler_responds_to_errors_of_server_and_handlers(void **state)
{
    (void)state;
    over_both(check_errors);
}

static void check_head(struct case_ *c)
{
    ask(c, "HEAD", "/none", NULL);
    expect(c, 404, "text/x-error", "");
    expect_header(c, "Content-Length", "24");
}

static void error_handler_responds_to_head_without_a_body(void **state)
{
    (void)state;
    over_both(check_head);
}

static const char not_found[] =
    "{\"title\":\"Not Found\",\"status\":404,\"detail\":\"The resource does not exist.\"}\n";

static void check_next(struct case_ *c)
{
    c->handler.verdict = MK_NEXT;
    ask(c, "GET", "/none", NULL);
    expect(c, 404, "application/problem+json", not_found);
    c->handler.status = 404;
    ask(c, "GET", "/busy", NULL);
    expect(c, 404, "application/problem+json", not_found);
    expect_header(c, "X-Reason", "tea");
    c->handler.verdict = MK_ERROR;
    ask(c, "GET", "/busy", NULL);
    expect(c, 404, "application/problem+json", not_found);
    assert_int_equal(c->handler.n_calls, 1);
}

static void error_handler_leaves_the_page_to_the_server(void **state)
{
    (void)state;
    over_both(check_next);
}

static void check_status(struct case_ *c)
{
    c->handler.status = 200;
    ask(c, "GET", "/none", NULL);
    expect(c, 200, "text/x-error", "404 Not Found GET /none");
}

static void error_handler_may_change_the_status(void **state)
{
    (void)state;
    over_both(check_status);
}

static void check_invalid(struct case_ *c)
{
    c->handler.verdict = (enum mk_verdict)99;
    ask(c, "GET", "/none", NULL);
    assert_int_equal(c->a.status, 500);
    assert_int_equal(c->handler.n_calls, 1);
}

static void error_handler_invalid_verdict_is_500(void **state)
{
    (void)state;
    over_both(check_invalid);
}

static void check_wait(struct case_ *c)
{
    c->handler.waits = true;
    ask(c, "GET", "/none", NULL);
    expect(c, 404, "text/x-error", "404 Not Found GET /none");
    assert_int_equal(c->handler.n_calls, 2);
}

static void error_handler_may_wait(void **state)
{
    (void)state;
    over_both(check_wait);
}

static void error_handler_does_not_see_malformed_requests(void **state)
{
    (void)state;
    struct case_ c;
    set_up(&c, false);
    assert_int_equal(mk_test_client_send(c.client, MK_STR("GET /none HTTP/1.1\r\nno header\r\n\r\n")), 0);
    while (mk_test_client_step(c.client, 100) == 1)
        continue;
    mk_str received = mk_test_client_received(c.client);
    assert_true(mk_str_starts(received, MK_STR("HTTP/1.1 400 ")));
    assert_true(memmem(received.p, received.len, "application/problem+json", 24) != NULL);
    assert_int_equal(c.handler.n_calls, 0);
    tear_down(&c);
}

static void error_handler_must_be_a_function_set_before_the_start(void **state)
{
    (void)state;
    struct case_ c;
    set_up(&c, false);
    assert_int_equal(mk_server_set_error_handler(c.s, respond, NULL), -EBUSY);
    tear_down(&c);
    c.s = mk_server_new(NULL);
    assert_int_equal(mk_server_set_error_handler(c.s, NULL, NULL), -EINVAL);
    assert_string_equal(mk_server_error(c.s), "there is no function");
    mk_server_free(c.s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(error_handler_responds_to_errors_of_server_and_handlers),
        cmocka_unit_test(error_handler_responds_to_head_without_a_body),
        cmocka_unit_test(error_handler_leaves_the_page_to_the_server),
        cmocka_unit_test(error_handler_may_change_the_status),
        cmocka_unit_test(error_handler_invalid_verdict_is_500),
        cmocka_unit_test(error_handler_may_wait),
        cmocka_unit_test(error_handler_does_not_see_malformed_requests),
        cmocka_unit_test(error_handler_must_be_a_function_set_before_the_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

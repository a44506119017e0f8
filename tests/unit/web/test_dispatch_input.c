/* SPDX-License-Identifier: Apache-2.0 */
/* A protocol delivers request bodies to the dispatcher in pieces: handlers and sources get the arrived bytes
 * and wait for the others; the dispatcher reads nothing that they do not request. */
#include "unit/handlers.h"
#include "unit/site.h"
#include "unit/test.h"

enum { MAX_CAP = 16 * 1024 };

/* A protocol that delivers the body in pieces separated by "|"; the reader waits before each piece. */
struct wire {
    const char *pieces;
    mk_err ending; /* result after the last piece; 0: end of the body */
    size_t n_read;
    unsigned n_asked, n_resumed;
};

static struct site site;
static struct handlers data;
static struct handlers_routes routes;
static struct wire wire;

static ssize_t on_read(void *ctx, char *buffer, size_t cap)
{
    struct wire *w = ctx;
    assert_true(cap > 0 && cap <= MAX_CAP);
    w->n_asked++;
    if (*w->pieces == '\0')
        return w->ending;
    if (*w->pieces == '|')
        return -EAGAIN;
    size_t n = mk_min(strcspn(w->pieces, "|"), cap);
    memcpy(buffer, w->pieces, n);
    w->pieces += n;
    w->n_read += n;
    return (ssize_t)n;
}

/* Delivers the next piece. */
static void arrive(void)
{
    assert_int_equal(*wire.pieces, '|');
    wire.pieces++;
}

static void on_resume(void *ctx)
{
    ((struct wire *)ctx)->n_resumed++;
}

static const struct mk_request_ops ops = {.read = on_read, .resume = on_resume};

static void setup(void)
{
    site_setup(&site);
    site.host.n_routes = handlers_route(&routes, &data, NULL);
    site.host.routes = routes.at;
}

static struct mk_exchange *post(const char *target, const char *pieces, mk_err ending, uint64_t length)
{
    char head[256];
    snprintf(head, sizeof head, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n", target);
    wire = (struct wire){.pieces = pieces, .ending = ending};
    struct mk_exchange *x = site_request(&site, head);
    assert_non_null(x);
    x->request.ops = &ops;
    x->request.ops_ctx = &wire;
    x->request.length = length;
    return x;
}

/* Returns the response of `sink` to this text. */
static const char *sum_of(const char *text, char buffer[64])
{
    struct handlers_sum s = {0};
    handlers_add(&s, text, strlen(text));
    snprintf(buffer, 64, "%llu %llu\n", (unsigned long long)s.n, (unsigned long long)s.sum);
    return buffer;
}

static void dispatch_input_available_body_is_read_at_once(void **state)
{
    (void)state;
    char buffer[64];
    struct mk_exchange *x = post("/sink", "hello", 0, 5);
    assert_true(mk_dispatch_run(x));
    assert_int_equal(x->response.status, 200);
    assert_str(site_content(x), sum_of("hello", buffer));
    mk_exchange_free(x);
}

static void dispatch_input_missing_body_is_waited_for(void **state)
{
    (void)state;
    char buffer[64];
    struct mk_exchange *x = post("/sink", "|he|l|lo|", 0, MK_REQUEST_LENGTH_UNKNOWN);
    for (int i = 0; i < 4; i++) {
        assert_false(mk_dispatch_run(x));
        assert_false(mk_dispatch_run(x)); /* the dispatcher runs too early */
        arrive();
    }
    assert_true(mk_dispatch_run(x));
    assert_str(site_content(x), sum_of("hello", buffer));
    mk_exchange_free(x);
}

static void dispatch_input_handler_reports_read_errors(void **state)
{
    (void)state;
    static const struct {
        mk_err ending;
        unsigned status;
    } cases[] = {{-EMSGSIZE, 413}, {-EBADMSG, 400}, {-ECONNRESET, 500}};
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        struct mk_exchange *x = post("/reader-limit", "he|llo", cases[i].ending, 10);
        assert_false(mk_dispatch_run(x));
        arrive();
        assert_true(mk_dispatch_run(x));
        assert_int_equal(x->response.status, cases[i].status);
        mk_exchange_free(x);
    }
}

static void dispatch_input_unread_body_is_not_requested(void **state)
{
    (void)state;
    struct mk_exchange *x = post("/early", "hello", 0, 5);
    assert_true(mk_dispatch_run(x));
    assert_str(site_content(x), "early\n");
    assert_int_equal(wire.n_asked, 0);
    mk_exchange_free(x);
}

static void dispatch_input_source_reads_only_on_demand(void **state)
{
    (void)state;
    char buffer[4];
    struct mk_exchange *x = post("/echo", "hello|world", 0, 10);
    assert_true(mk_dispatch_run(x));
    assert_int_equal(x->response.content.length, 10);
    assert_int_equal(wire.n_asked, 0); /* a streaming handler reads nothing in advance */
    struct mk_response_body *c = &x->response.content;
    assert_int_equal(mk_response_body_read(c, buffer, 2), 2);
    assert_memory_equal(buffer, "he", 2);
    assert_int_equal(wire.n_read, 2);
    assert_int_equal(mk_response_body_read(c, buffer, 4), 3);
    assert_int_equal(mk_response_body_read(c, buffer, 4), -EAGAIN);
    assert_int_equal(wire.n_read, 5);
    arrive();
    assert_int_equal(mk_response_body_read(c, buffer, 4), 4);
    assert_int_equal(mk_response_body_read(c, buffer, 4), 1);
    assert_int_equal(mk_response_body_read(c, buffer, 4), 0);
    mk_exchange_free(x);
}

static void dispatch_input_echo_length_is_request_length(void **state)
{
    (void)state;
    struct mk_exchange *x = post("/echo", "hello", 0, MK_REQUEST_LENGTH_UNKNOWN);
    assert_true(mk_dispatch_run(x));
    assert_true(x->response.content.length == MK_RESPONSE_BODY_UNKNOWN);
    assert_str(site_content(x), "hello");
    mk_exchange_free(x);
    x = post("/echo", "hello", 0, 0);
    assert_true(mk_dispatch_run(x));
    assert_int_equal(x->response.content.length, 0);
    assert_str(site_content(x), "");
    assert_int_equal(wire.n_asked, 0);
    mk_exchange_free(x);
}

static void dispatch_input_source_passes_errors_on(void **state)
{
    (void)state;
    char buffer[16];
    struct mk_exchange *x = post("/echo", "hello", -EBADMSG, 10);
    assert_true(mk_dispatch_run(x));
    assert_int_equal(mk_response_body_read(&x->response.content, buffer, sizeof buffer), 5);
    assert_int_equal(mk_response_body_read(&x->response.content, buffer, sizeof buffer), -EBADMSG);
    mk_exchange_free(x);
}

static void dispatch_input_resume_reaches_connection(void **state)
{
    (void)state;
    struct mk_exchange *x = post("/never", "", 0, 0);
    assert_false(mk_dispatch_run(x));
    mk_request_resume(&x->request);
    mk_request_resume(&x->request);
    assert_int_equal(wire.n_resumed, 2);
    mk_exchange_free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(dispatch_input_available_body_is_read_at_once, setup),
        fixture_test(dispatch_input_missing_body_is_waited_for, setup),
        fixture_test(dispatch_input_handler_reports_read_errors, setup),
        fixture_test(dispatch_input_unread_body_is_not_requested, setup),
        fixture_test(dispatch_input_source_reads_only_on_demand, setup),
        fixture_test(dispatch_input_echo_length_is_request_length, setup),
        fixture_test(dispatch_input_source_passes_errors_on, setup),
        fixture_test(dispatch_input_resume_reaches_connection, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Which verdicts, statuses and bodies of a handler open a tunnel, and which close it. */
#include "unit/site.h"
#include "unit/test.h"
#include "web/dispatch.h"

static struct site site;
static struct mk_route routes[2];
static struct {
    bool opens;
    enum mk_verdict verdict;
    unsigned n_closed;
} plan;

static ssize_t pull(void *ctx, char *buffer, size_t cap)
{
    (void)ctx, (void)buffer, (void)cap;
    return -EAGAIN;
}

static void on_close(void *ctx)
{
    (void)ctx;
    plan.n_closed++;
}

static enum mk_verdict handle(struct mk_request *request, struct mk_response *response, void *data)
{
    static const struct mk_tunnel_ops ops = {.source = {.read = pull, .close = on_close}};
    (void)data;
    if (plan.opens)
        assert_int_equal(mk_response_open_tunnel(request, response, &ops, NULL), 0);
    return plan.verdict;
}

static enum mk_verdict respond_plain(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)data;
    assert_int_equal(mk_request_length(request), 0);
    assert_int_equal(mk_response_set_body_nocopy(response, MK_STR("plain")), 0);
    return MK_DONE;
}

static const struct mk_handler tunneler = {.name = "tunneler", .handle = handle},
                               answerer = {.name = "answerer", .handle = respond_plain};

static void setup(void)
{
    site_setup(&site);
    memset(&plan, 0, sizeof plan);
    routes[0] =
        (struct mk_route){.pattern = {.text = MK_STR("/*"), .kind = MK_PATTERN_ALL}, .handler = &tunneler};
    routes[1] =
        (struct mk_route){.pattern = {.text = MK_STR("/*"), .kind = MK_PATTERN_ALL}, .handler = &answerer};
    site.host.routes = routes;
    site.host.n_routes = MK_LEN(routes);
}

static struct mk_exchange *request_tunnel(unsigned version, bool opens, enum mk_verdict verdict)
{
    struct mk_exchange *x = site_request(&site, "GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_non_null(x);
    x->request.version = version;
    x->request.tunnel = MK_STR("x");
    plan.opens = opens;
    plan.verdict = verdict;
    assert_true(mk_dispatch_run(x));
    return x;
}

static void dispatch_tunnel_accepted_opens(void **state)
{
    (void)state;
    for (unsigned version = 11; version <= 20; version += 9) {
        struct mk_exchange *x = request_tunnel(version, true, MK_DONE);
        assert_int_equal(x->response.status, version == 20 ? 200 : 101);
        assert_true(mk_response_body_is_tunnel(&x->response.content));
        mk_exchange_free(x);
    }
    assert_int_equal(plan.n_closed, 2);
}

static void dispatch_tunnel_opened_by_passing_handler_is_closed(void **state)
{
    (void)state;
    struct mk_exchange *x = request_tunnel(11, true, MK_NEXT);
    assert_int_equal(plan.n_closed, 1);
    assert_int_equal(x->response.status, 200);
    assert_int_equal(x->response.content.length, 5);
    mk_exchange_free(x);
    x = request_tunnel(11, true, MK_ERROR);
    assert_int_equal(plan.n_closed, 2);
    assert_int_equal(x->response.status, 500);
    mk_exchange_free(x);
    x = request_tunnel(20, true, (enum mk_verdict)77);
    assert_int_equal(plan.n_closed, 3);
    assert_int_equal(x->response.status, 500);
    mk_exchange_free(x);
}

/* Over HTTP/1.1, a status of 200 is an ordinary response; over HTTP/2, any 2xx status would open the
 * tunnel. */
static void dispatch_tunnel_not_accepted_gets_501_over_http2(void **state)
{
    (void)state;
    struct mk_exchange *x = request_tunnel(11, false, MK_NEXT);
    assert_int_equal(x->response.status, 200);
    mk_exchange_free(x);
    x = request_tunnel(20, false, MK_NEXT);
    assert_int_equal(x->response.status, 501);
    assert_false(mk_response_body_is_tunnel(&x->response.content));
    mk_exchange_free(x);
    x = request_tunnel(20, false, MK_ERROR);
    assert_int_equal(x->response.status, 500);
    mk_exchange_free(x);
}

static void dispatch_error_drops_trailers(void **state)
{
    (void)state;
    struct mk_exchange *x = site_request(&site, "GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_int_equal(mk_response_add_trailer(&x->response, MK_STR("A"), MK_STR("b")), 0);
    mk_dispatch_error(x, 503);
    assert_null(x->response.trailers);
    mk_exchange_free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(dispatch_tunnel_accepted_opens, setup),
        fixture_test(dispatch_tunnel_opened_by_passing_handler_is_closed, setup),
        fixture_test(dispatch_tunnel_not_accepted_gets_501_over_http2, setup),
        fixture_test(dispatch_error_drops_trailers, setup)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

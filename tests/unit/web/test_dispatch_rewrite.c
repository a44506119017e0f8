/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/web/dispatch_fixture.h"
#include "web/request_target.h"
#include "web/trailers.h"

static enum mk_verdict rewrite_target(struct mk_request *request, struct mk_response *response, void *data)
{
    unsigned *left = data;
    (void)response;
    record_call("", "e");
    if (*left == 0)
        return MK_DONE;
    --*left;
    assert_true(mk_request_target_set_path(request, request->target->path));
    return MK_REWRITTEN;
}

static void rewrite_loop_is_limited(void **state)
{
    (void)state;
    static const struct mk_handler handler = {.name = "elsewhere", .handle = rewrite_target};
    struct actor first = {.name = "f", .answers = "n"};
    unsigned left = 2;
    add_route("/*", &any, &first);
    routes[site.host.n_routes++] = (struct mk_route){
        .pattern = {.text = MK_STR("/*"), .kind = MK_PATTERN_ALL}, .handler = &handler, .data = &left};
    expect("GET", "/", 200, "f e f e f e");
    left = 1000;
    memset(calls, 0, sizeof calls);
    struct mk_exchange *x = request_path("GET", "/");
    assert_true(mk_dispatch_run(x));
    assert_int_equal(x->response.status, 500);
    assert_true(left > 900);
    mk_exchange_free(x);
}

/* Prepares a response, then rewrites the request to the path in `data`: the rewrite must discard the
 * response. */
static enum mk_verdict send_elsewhere(struct mk_request *request, struct mk_response *response, void *data)
{
    assert_false(mk_response_header(response, MK_STR("X-Sent")).p);
    assert_int_equal(mk_response_add_header(response, MK_STR("X-Sent"), MK_STR("yes")), 0);
    assert_int_equal(mk_response_set_body(response, MK_STR("not for you")), 0);
    record_call(">", mk_request_method(request) == MK_METHOD_GET ? "get" : "other");
    assert_null(mk_request_data(request));
    mk_request_set_data(request, request);
    assert_int_equal(mk_request_rewrite(request, MK_STR("no path")), -EINVAL);
    assert_int_equal(mk_request_rewrite(request, mk_str_from_c(data)), 0);
    return MK_REWRITTEN;
}

static enum mk_verdict rewrite_and_pass(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)response;
    (void)data;
    assert_int_equal(mk_request_rewrite(request, MK_STR("/unguarded")), 0);
    return MK_NEXT;
}

static enum mk_verdict only_say_rewritten(struct mk_request *request, struct mk_response *response,
                                          void *data)
{
    (void)request;
    (void)response;
    (void)data;
    return MK_REWRITTEN;
}

static void rewrite_without_matching_verdict_gets_500(void **state)
{
    (void)state;
    static const struct mk_handler passes = {.name = "passes", .handle = rewrite_and_pass},
                                   says = {.name = "says", .handle = only_say_rewritten};
    struct actor open = {.name = "open", .answers = "d"};
    add_route("/passes", &passes, NULL);
    add_route("/says", &says, NULL);
    add_route("/unguarded", &getter, &open);
    expect("GET", "/passes", 500, "");
    expect("GET", "/says", 500, "");
}

static void rewrite_by_handler_drops_body_headers(void **state)
{
    (void)state;
    static const struct mk_handler sender = {.name = "sender", .handle = send_elsewhere};
    struct actor h = {.name = "h", .answers = "d"};
    mk_str name, value;
    add_route("/from", &sender, (void *)(uintptr_t)("/to"));
    add_route("/to", &getter, &h);
    struct mk_exchange *x = site_request(
        &site, "POST /from HTTP/1.1\r\nContent-Type: a/b\r\nHost: a\r\ncontent-md5: c\r\nExpect: d\r\n"
               "Digest: e\r\nAccept: f\r\nContent: g\r\nTrailer: h\r\n\r\n");
    assert_non_null(x);
    build_hooks();
    assert_str(mk_request_header(&x->request, MK_STR("Content-Type")), "a/b");
    assert_true(mk_request_header_at(&x->request, 6, &name, &value));
    struct mk_header_field line = {.name = MK_STR("X-Sum"), .value = MK_STR("i")};
    struct mk_trailers trailers = {.at = &line, .n = 1};
    x->request.trailers = &trailers;
    assert_str(mk_request_trailer(&x->request, MK_STR("x-sum")), "i");
    assert_true(mk_dispatch_run(x));
    assert_null(mk_request_trailer(&x->request, MK_STR("x-sum")).p);
    assert_int_equal(x->response.status, 200);
    assert_null(mk_request_header(&x->request, MK_STR("Content-Type")).p);
    assert_null(mk_request_header(&x->request, MK_STR("CONTENT-MD5")).p);
    assert_str(mk_request_header(&x->request, MK_STR("Content")), "g");
    static const char *const left[] = {"Host", "Accept", "Content"};
    for (size_t i = 0; i < MK_LEN(left); i++) {
        assert_true(mk_request_header_at(&x->request, i, &name, &value));
        assert_str(name, left[i]);
    }
    assert_int_equal(mk_request_header_role(&x->request, 0), MK_ROLE_HOST);
    assert_int_equal(mk_request_header_role(&x->request, 1), MK_ROLE_CLIENT);
    assert_false(mk_request_header_at(&x->request, 3, &name, &value));
    mk_exchange_free(x);
}

static void rewrite_by_handler_runs_other_route(void **state)
{
    (void)state;
    static const struct mk_handler sender = {.name = "sender", .handle = send_elsewhere};
    struct actor a = {.name = "a", .answers = "n"}, h = {.name = "h", .answers = "d"};
    add_hook(&a);
    add_route("/from", &sender, (void *)(uintptr_t)("/t%6f?a=b"));
    add_route("/to", &getter, &h);
    add_route("/round", &sender, (void *)(uintptr_t)("/round"));
    struct mk_exchange *x = request_path("POST", "/from?c=d");
    x->request.length = 7;
    assert_true(mk_dispatch_run(x));
    assert_string_equal(calls, "?a >other ?a h !a");
    assert_str(x->request.target->path, "/to");
    assert_str(x->request.received.path, "/from"); /* the received target never changes */
    assert_int_equal(x->request.received.method, MK_METHOD_POST);
    assert_int_equal(x->request.length, 7);
    assert_str(mk_request_path_at(&x->request, 0), "/from");
    assert_str(mk_request_path_at(&x->request, 1), "/to");
    assert_null(mk_request_path_at(&x->request, 2).p);
    assert_str(mk_request_query(&x->request), "a=b");
    assert_int_equal(mk_request_method(&x->request), MK_METHOD_GET);
    assert_int_equal(mk_request_length(&x->request), 0);
    assert_null(mk_request_data(&x->request));
    assert_false(mk_response_header(&x->response, MK_STR("X-Sent")).p);
    assert_int_equal(mk_response_length(&x->response), 0);
    assert_str(mk_request_method_text(&x->request), "POST"); /* the method that the client sent */
    assert_str(mk_request_method_name(&x->request), "GET");
    assert_str(mk_request_target(&x->request), "/from?c=d");
    mk_exchange_free(x);
    x = request_path("HEAD", "/from");
    assert_true(mk_dispatch_run(x));
    assert_int_equal(mk_request_method(&x->request), MK_METHOD_HEAD);
    assert_str(mk_request_method_name(&x->request), "HEAD");
    mk_exchange_free(x);
    x = request_path("GET", "/round");
    assert_true(mk_dispatch_run(x));
    assert_int_equal(x->response.status, 500);
    mk_exchange_free(x);
}

static enum mk_verdict rewrite_once(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)response;
    record_call("?", "rewrite");
    if (!mk_str_eq(mk_request_path(request), MK_STR("/old")))
        return MK_NEXT;
    assert_int_equal(mk_request_rewrite(request, mk_str_from_c(data)), 0);
    return MK_REWRITTEN;
}

static void add_ordered(struct actor *a, unsigned order)
{
    add_hook(a);
    plugins[n_hooks - 1].priority = order;
}

static void rewrite_runs_after_auth_hooks_of_original_path(void **state)
{
    (void)state;
    struct actor guard = {.name = "guard", .answers = "n"}, late = {.name = "late", .answers = "n"},
                 h = {.name = "h", .answers = "d"};
    plugins[0] = (struct mk_plugin){.name = "r", .priority = MK_PRIORITY_REWRITE, .on_request = rewrite_once};
    hooks[n_hooks++] = (struct mk_hook){.plugin = &plugins[0], .data = (void *)(uintptr_t)("/new?q")};
    add_ordered(&guard, MK_PRIORITY_AUTH);
    add_hook(&late);
    build_hooks();
    add_route("/new", &any, &h);
    expect("GET", "/old", 200, "?rewrite ?guard ?rewrite ?guard ?late h !late !guard");
    guard.answers = "wn"; /* the guard waits, so the rewrite has to wait as well */
    guard.n_calls = 0;
    memset(calls, 0, sizeof calls);
    struct mk_exchange *x = request_path("GET", "/old");
    assert_false(mk_dispatch_run(x));
    assert_str(mk_request_path(&x->request), "/old");
    assert_true(mk_dispatch_run(x));
    assert_string_equal(calls, "?rewrite ?guard ?guard ?rewrite ?guard ?late h !late !guard");
    assert_str(mk_request_query(&x->request), "q");
    mk_exchange_free(x);
    guard.answers = "r";
    guard.status = 401;
    expect("GET", "/old", 401, "?rewrite ?guard !late !guard");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(rewrite_loop_is_limited, setup),
        fixture_test(rewrite_by_handler_runs_other_route, setup),
        fixture_test(rewrite_by_handler_drops_body_headers, setup),
        fixture_test(rewrite_without_matching_verdict_gets_500, setup),
        fixture_test(rewrite_runs_after_auth_hooks_of_original_path, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

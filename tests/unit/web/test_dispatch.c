/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/web/dispatch_fixture.h"

static void dispatch_runs_request_hooks_handler_response_hooks(void **state)
{
    (void)state;
    struct actor a = {.name = "a", .answers = "n"}, b = {.name = "b", .answers = "n"},
                 h = {.name = "h", .answers = "d", .text = "hello"};
    add_hook(&a);
    add_hook(&b);
    add_route("/*", &any, &h);
    struct mk_exchange *x = request_path("GET", "/");
    assert_true(mk_dispatch_run(x));
    assert_string_equal(calls, "?a ?b h !b !a");
    assert_int_equal(x->response.status, 200);
    assert_str(site_content(x), "hello");
    assert_true(mk_dispatch_run(x)); /* the request stays finished */
    assert_string_equal(calls, "?a ?b h !b !a");
    x->response.sealed = true;
    assert_false(mk_response_was_sent(&x->response));
    mk_dispatch_end(x, MK_OUTCOME_OK, 0, 5, site.now_ms + 7);
    assert_string_equal(calls, "?a ?b h !b !a .a .b");
    assert_true(mk_response_was_sent(&x->response));
    assert_int_equal(n_records, 2);
    assert_int_equal(last_record.status, 200);
    assert_int_equal(last_record.outcome, MK_OUTCOME_OK);
    assert_int_equal(last_record.content_sent, 5);
    assert_int_equal(last_record.duration_ms, 7);
    mk_exchange_free(x);
    assert_int_equal(n_records, 2);
}

static void dispatch_hooks_are_optional(void **state)
{
    (void)state;
    struct actor a = {.name = "a", .answers = "n"}, h = {.name = "h", .answers = "d"};
    add_hook(&a);
    add_hook(&a);
    add_hook(&a);
    plugins[0] = (struct mk_plugin){.name = "nothing"};
    plugins[1].on_request = NULL;
    plugins[2].on_response = NULL;
    plugins[2].on_abort = NULL;
    build_hooks();
    add_route("/*", &any, &h);
    struct mk_exchange *x = request_path("GET", "/");
    assert_true(mk_dispatch_run(x));
    mk_dispatch_end(x, MK_OUTCOME_CLIENT_ABORTED, 0, 0, site.now_ms);
    assert_string_equal(calls, "?a h !a xa .a .a");
    assert_int_equal(last_record.status, 0); /* no response was begun */
    assert_false(mk_response_was_sent(&x->response));
    mk_exchange_free(x);
}

static void dispatch_first_matching_handler_responds(void **state)
{
    (void)state;
    struct actor a = {.name = "a", .answers = "n"}, b = {.name = "b", .answers = "d"},
                 c = {.name = "c", .answers = "d"};
    add_route("/x/*", &any, &a);
    add_route("/x/y", &any, &b);
    add_route("/*", &any, &c);
    expect("GET", "/x/y", 200, "a b");
    expect("GET", "/x/z", 200, "a c");
    expect("GET", "/", 200, "c");
}

static void dispatch_selects_vhost_by_name(void **state)
{
    (void)state;
    struct actor a = {.name = "a", .answers = "d"}, b = {.name = "b", .answers = "d"};
    mk_str name = MK_STR("b.example"), taken;
    const struct mk_vhost *holder;
    struct mk_route other_route = {
        .pattern = {.text = MK_STR("/*"), .kind = MK_PATTERN_ALL}, .handler = &any, .data = &b};
    struct mk_vhost other = {.names = &name, .n_names = 1, .routes = &other_route, .n_routes = 1};
    add_route("/*", &any, &a);
    assert_int_equal(mk_vhosts_add(&site.hosts, &other, &taken, &holder), 0);
    expect("GET", "/", 200, "a");
    expect("GET", "http://B.example:99/", 200, "b");
}

/* ---- Verdicts ---- */

static void dispatch_hook_may_respond(void **state)
{
    (void)state;
    struct actor a = {.name = "a", .answers = "d", .status = 401, .text = "no"},
                 b = {.name = "b", .answers = "n"}, h = {.name = "h", .answers = "d"};
    add_hook(&a);
    add_hook(&b);
    add_route("/*", &any, &h);
    struct mk_exchange *x = request_path("GET", "/");
    assert_true(mk_dispatch_run(x));
    assert_string_equal(calls, "?a !b !a");
    assert_int_equal(x->response.status, 401);
    assert_str(site_content(x), "no");
    mk_exchange_free(x);
}

static void dispatch_refusing_handler_gets_error_page(void **state)
{
    (void)state;
    struct actor a = {.name = "a", .answers = "r", .status = 403, .text = "never seen", .field = "X-Kept"},
                 none = {.name = "n", .answers = "r"}, fine = {.name = "f", .answers = "r", .status = 204};
    add_route("/a", &any, &a);
    add_route("/none", &any, &none);
    add_route("/fine", &any, &fine);
    struct mk_exchange *x = request_path("GET", "/a");
    assert_true(mk_dispatch_run(x));
    assert_int_equal(x->response.status, 403);
    assert_str(site_field(x, "X-Kept"), "x");
    assert_non_null(strstr(site_content(x).p, "403 Forbidden"));
    mk_exchange_free(x);
    expect("GET", "/none", 500, "n");
    expect("GET", "/fine", 500, "f"); /* an error verdict must not send a success status */
    struct actor hook = {.name = "h", .answers = "r", .status = 429};
    add_hook(&hook);
    expect("GET", "/none", 429, "?h !h");
}

static void dispatch_error_drops_entity_headers(void **state)
{
    (void)state;
    static const char *const dropped[] = {"Content-Type",     "Content-Encoding",    "Accept-Ranges",
                                          "Content-Language", "Content-Disposition", "ETag",
                                          "Last-Modified",    "Content-Location"};
    for (size_t i = 0; i < MK_LEN(dropped); i++) {
        struct actor a = {.name = "a", .answers = "r", .status = 404, .field = dropped[i]};
        site.host.n_routes = 0;
        add_route("/*", &any, &a);
        struct mk_exchange *x = request_path("GET", "/");
        assert_true(mk_dispatch_run(x));
        unsigned n = 0;
        for (unsigned j = 0; j < x->response.n_fields; j++)
            n += mk_str_eq(x->response.fields[j].value, MK_STR("x"));
        if (n)
            fail_msg("%s remains", dropped[i]);
        assert_str(site_field(x, "Content-Type"), "text/html; charset=utf-8");
        mk_exchange_free(x);
    }
}

static void dispatch_waiting_handler_is_called_again(void **state)
{
    (void)state;
    struct actor a = {.name = "a", .answers = "wwn"}, b = {.name = "b", .answers = "n"},
                 h = {.name = "h", .answers = "wwd"};
    add_hook(&a);
    add_hook(&b);
    add_route("/*", &any, &h);
    struct mk_exchange *x = request_path("GET", "/");
    static const char *const steps[] = {"?a", "?a ?a", "?a ?a ?a ?b h", "?a ?a ?a ?b h h"};
    for (size_t i = 0; i < MK_LEN(steps); i++) {
        assert_false(mk_dispatch_run(x));
        assert_string_equal(calls, steps[i]);
    }
    assert_true(mk_dispatch_run(x));
    assert_string_equal(calls, "?a ?a ?a ?b h h h !b !a");
    mk_exchange_free(x);
}

static void dispatch_waiting_handler_may_pass_or_refuse(void **state)
{
    (void)state;
    struct actor a = {.name = "a", .answers = "wn"}, b = {.name = "b", .answers = "wr", .status = 409};
    add_route("/*", &any, &a);
    add_route("/*", &any, &b);
    struct mk_exchange *x = request_path("GET", "/");
    assert_false(mk_dispatch_run(x));
    assert_false(mk_dispatch_run(x));
    assert_true(mk_dispatch_run(x));
    assert_string_equal(calls, "a a b b");
    assert_int_equal(x->response.status, 409);
    mk_exchange_free(x);
}

static void dispatch_all_handlers_pass_gets_404(void **state)
{
    (void)state;
    struct actor a = {.name = "a", .answers = "n"}, b = {.name = "b", .answers = "n", .status = 403};
    add_route("/*", &any, &a);
    expect("GET", "/", 404, "a");
    expect("POST", "/", 404, "a");
    add_route("/b", &any, &b);
    expect("GET", "/b", 403, "a b"); /* a handler may set a more specific status */
    site.host.n_routes = 0;
    expect("GET", "/", 404, "");
}

/* ---- Methods ---- */

static void dispatch_selects_handler_by_method(void **state)
{
    (void)state;
    struct actor g = {.name = "g", .answers = "d"}, p = {.name = "p", .answers = "d"};
    add_route("/*", &getter, &g);
    add_route("/*", &poster, &p);
    expect("GET", "/", 200, "g");
    expect("HEAD", "/", 200, "g");
    expect("POST", "/", 200, "p");
    expect("PUT", "/", 200, "p");
}

static void expect_allow(const char *method, const char *target, unsigned status, const char *allow)
{
    struct mk_exchange *x = request_path(method, target);
    assert_true(mk_dispatch_run(x));
    assert_int_equal(x->response.status, status);
    mk_str found = site_field(x, "Allow");
    if (!mk_str_eq(found, mk_str_from_c(allow)))
        fail_msg("%s %s: \"%.*s\" is allowed", method, target, MK_STR_ARG(found));
    mk_exchange_free(x);
}

static void dispatch_405_lists_methods_of_all_routes(void **state)
{
    (void)state;
    struct actor g = {.name = "g", .answers = "d"}, p = {.name = "p", .answers = "d"};
    add_route("/both", &getter, &g);
    add_route("/both", &poster, &p);
    add_route("/get", &getter, &g);
    add_route("/post", &poster, &p);
    expect_allow("DELETE", "/both", 405, "GET, HEAD, POST, PUT, OPTIONS");
    expect_allow("POST", "/get", 405, "GET, HEAD, OPTIONS");
    expect_allow("GET", "/post", 405, "POST, PUT, OPTIONS");
    expect_allow("TRACE", "/get", 405, "GET, HEAD, OPTIONS");
    expect_allow("PATCH", "/nowhere", 404, "");
    expect_allow("OPTIONS", "/both", 200, "GET, HEAD, POST, PUT, OPTIONS");
    expect_allow("OPTIONS", "/get", 200, "GET, HEAD, OPTIONS");
    expect_allow("OPTIONS", "/nowhere", 404, "");
    expect_allow("BREW", "/get", 501, "");
    expect_allow("get", "/get", 501, ""); /* methods are case-sensitive */
}

static void dispatch_handler_without_methods_gets_all(void **state)
{
    (void)state;
    struct actor a = {.name = "a", .answers = "d", .status = 418}, b = {.name = "b", .answers = "n"};
    add_route("/a", &any, &a);
    add_route("/b", &any, &b);
    add_route("/b", &getter, &a);
    expect("OPTIONS", "/a", 418, "a");
    expect("BREW", "/a", 418, "a");
    expect("DELETE", "/b", 405, "b");
}

static void dispatch_server_wide_requests_need_no_route(void **state)
{
    (void)state;
    struct actor a = {.name = "a", .answers = "d"}, hook = {.name = "h", .answers = "n"};
    add_route("/*", &any, &a);
    add_hook(&hook);
    expect("OPTIONS", "*", 200, "?h !h");
    expect("CONNECT", "a.example:443", 405, "?h !h");
    n_hooks = 0;
    build_hooks();
    expect_allow("OPTIONS", "*", 200, "GET, HEAD, OPTIONS");
}

/* ---- Requests that reach no handler ---- */

static void dispatch_malformed_target_gets_400(void **state)
{
    (void)state;
    struct actor a = {.name = "a", .answers = "d"}, hook = {.name = "h", .answers = "n"};
    add_route("/*", &any, &a);
    add_hook(&hook);
    static const char *const bad[] = {"/../x", "/%zz", "/%00", "/%", "ftp://a/", "a"};
    for (size_t i = 0; i < MK_LEN(bad); i++)
        expect("GET", bad[i], 400, ""); /* no hook can inspect a request without a path */
}

static void dispatch_rejected_request_gets_error_page_of_vhost(void **state)
{
    (void)state;
    static const struct mk_error_page page = {.status = 400, .path = MK_STR_INIT("bad.html")};
    site_add(&site, "bad.html", MK_STR("a page of its own"));
    site.host.error_pages = &page;
    site.host.n_error_pages = 1;
    struct mk_exchange *x = request_path("GET", "/%zz");
    assert_true(mk_dispatch_run(x));
    assert_str(site_content(x), "a page of its own");
    mk_exchange_free(x);
}

static void dispatch_waiting_request_can_be_rejected(void **state)
{
    (void)state;
    struct actor h = {.name = "h", .answers = "w", .text = "half", .field = "Content-Type"};
    add_route("/*", &any, &h);
    struct mk_exchange *x = request_path("GET", "/");
    assert_false(mk_dispatch_run(x));
    mk_dispatch_error(x, 504);
    assert_true(mk_dispatch_run(x));
    assert_string_equal(calls, "h");
    assert_int_equal(x->response.status, 504);
    assert_non_null(strstr(site_content(x).p, "504 Gateway Timeout"));
    mk_exchange_free(x);
}

static void refuse_it(void *x)
{
    mk_dispatch_error(x, 500);
}

static void dispatch_sealed_response_cannot_be_rejected(void **state)
{
    (void)state;
    struct mk_exchange *x = request_path("GET", "/");
    x->response.sealed = true;
    assert_aborts(refuse_it, x, "!x->response.sealed");
    mk_exchange_free(x);
}

/* ---- Sources ---- */

static unsigned n_closed;

static ssize_t pull(void *ctx, char *buffer, size_t cap)
{
    unsigned *left = ctx;
    (void)cap;
    if (*left == 0)
        return 0;
    buffer[0] = (char)('0' + --*left);
    return 1;
}

static void close_source(void *ctx)
{
    (void)ctx;
    n_closed++;
}

static const struct mk_body_source_ops source = {.read = pull, .close = close_source};

static enum mk_verdict handle_with_source(struct mk_request *request, struct mk_response *response,
                                          void *data)
{
    const enum mk_verdict *verdict = data;
    unsigned *left = mk_request_alloc(request, sizeof *left);
    *left = 3;
    assert_int_equal(mk_response_set_body_source(response, &source, left, MK_LENGTH_UNKNOWN), 0);
    return *verdict;
}

static struct mk_exchange *request_source(enum mk_verdict *verdict)
{
    static const struct mk_handler handler = {.name = "source", .handle = handle_with_source};
    n_closed = 0;
    site.host.n_routes = 0;
    routes[site.host.n_routes++] = (struct mk_route){
        .pattern = {.text = MK_STR("/*"), .kind = MK_PATTERN_ALL}, .handler = &handler, .data = verdict};
    struct mk_exchange *x = request_path("GET", "/");
    assert_int_equal(mk_dispatch_run(x), *verdict != MK_WAIT);
    return x;
}

static void dispatch_body_source_is_closed_with_exchange(void **state)
{
    (void)state;
    enum mk_verdict done = MK_DONE;
    struct mk_exchange *x = request_source(&done);
    assert_true(x->response.content.length == MK_RESPONSE_BODY_UNKNOWN);
    assert_str(site_content(x), "210");
    assert_int_equal(n_closed, 0);
    mk_exchange_free(x);
    assert_int_equal(n_closed, 1);
}

static void dispatch_refusal_closes_body_source(void **state)
{
    (void)state;
    enum mk_verdict refuse = MK_ERROR, next = MK_NEXT, wait = MK_WAIT;
    struct mk_exchange *x = request_source(&refuse);
    assert_int_equal(x->response.status, 500);
    assert_int_equal(n_closed, 1);
    mk_exchange_free(x);
    assert_int_equal(n_closed, 1);
    x = request_source(&next);
    assert_int_equal(x->response.status, 404);
    assert_int_equal(n_closed, 1);
    mk_exchange_free(x);
    x = request_source(&wait);
    mk_dispatch_error(x, 504);
    assert_int_equal(n_closed, 1);
    mk_exchange_free(x);
    x = request_source(&wait);
    mk_exchange_free(x); /* the client has disconnected */
    assert_int_equal(n_closed, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(dispatch_runs_request_hooks_handler_response_hooks, setup),
        fixture_test(dispatch_hooks_are_optional, setup),
        fixture_test(dispatch_first_matching_handler_responds, setup),
        fixture_test(dispatch_selects_vhost_by_name, setup),
        fixture_test(dispatch_hook_may_respond, setup),
        fixture_test(dispatch_refusing_handler_gets_error_page, setup),
        fixture_test(dispatch_error_drops_entity_headers, setup),
        fixture_test(dispatch_waiting_handler_is_called_again, setup),
        fixture_test(dispatch_waiting_handler_may_pass_or_refuse, setup),
        fixture_test(dispatch_all_handlers_pass_gets_404, setup),
        fixture_test(dispatch_selects_handler_by_method, setup),
        fixture_test(dispatch_405_lists_methods_of_all_routes, setup),
        fixture_test(dispatch_handler_without_methods_gets_all, setup),
        fixture_test(dispatch_server_wide_requests_need_no_route, setup),
        fixture_test(dispatch_malformed_target_gets_400, setup),
        fixture_test(dispatch_rejected_request_gets_error_page_of_vhost, setup),
        fixture_test(dispatch_waiting_request_can_be_rejected, setup),
        fixture_test(dispatch_sealed_response_cannot_be_rejected, setup),
        fixture_test(dispatch_body_source_is_closed_with_exchange, setup),
        fixture_test(dispatch_refusal_closes_body_source, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <monkey/router.h>

#include <errno.h>

#include "unit/test.h"

static struct mk_router *router;
static struct mk_router_match found;

static void setup(void)
{
    router = mk_router_new();
    assert_non_null(router);
}

static void teardown(void)
{
    mk_router_free(router);
}

/* Adds a route whose data is its text. */
static void add(const char *route)
{
    if (mk_router_add(router, mk_str_from_c(route), (void *)(uintptr_t)route, MK_STR_NULL))
        fail_msg("%.*s", MK_STR_ARG(mk_router_error(router)));
}

static void expect(const char *method, const char *path, const char *route)
{
    enum mk_router_result result = mk_router_find(router, mk_str_from_c(method), mk_str_from_c(path), &found);
    const char *data = found.data;
    if (!route) {
        assert_null(data);
        assert_int_equal(result, MK_ROUTER_NO_PATH);
        assert_int_equal(found.route, SIZE_MAX);
        return;
    }
    if (!data || strcmp(data, route) != 0)
        fail_msg("%s %s leads to %s instead of %s", method, path, data ? data : "nothing", route);
    assert_int_equal(result, MK_ROUTER_FOUND);
}

static void expect_param(size_t i, const char *name, const char *value)
{
    assert_true(i < found.n);
    assert_str(found.params[i].name, name);
    assert_str(found.params[i].value, value);
}

static void expect_allow(const char *method, const char *path, const char *allow)
{
    char buffer[128];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    assert_int_equal(mk_router_find(router, mk_str_from_c(method), mk_str_from_c(path), &found),
                     MK_ROUTER_NO_METHOD);
    assert_null(found.data);
    mk_router_allow(router, found.allowed, &out);
    assert_str(mk_buf_str(&out), allow);
}

static void refuses(const char *route, int err, const char *why)
{
    assert_int_equal(mk_router_add(router, mk_str_from_c(route), NULL, MK_STR("b.c:2")), err);
    assert_contains(mk_router_error(router), why);
    assert_contains(mk_router_error(router), "b.c:2");
}

static void router_empty_finds_nothing(void **state)
{
    (void)state;
    expect("GET", "/", NULL);
    expect("GET", "", NULL);
    expect("OPTIONS", "*", NULL);
    mk_router_free(NULL);
}

static void router_literal_paths(void **state)
{
    (void)state;
    add("GET /");
    add("GET /a");
    add("GET /a/");
    add("GET /a/b:c/caf%C3%A9");
    add("GET /%3Aid/%2a");
    expect("GET", "/", "GET /");
    expect("GET", "/a", "GET /a");
    expect("GET", "/a/", "GET /a/");
    expect("GET", "/a/b:c/caf\xc3\xa9", "GET /a/b:c/caf%C3%A9");
    expect("GET", "/:id/*", "GET /%3Aid/%2a");
    expect("GET", "/A", NULL);
    expect("GET", "/ab", NULL);
    expect("GET", "/a//", NULL);
    expect("GET", "/a/b:c", NULL);
    expect("GET", "//a", NULL);
}

static void router_parameters(void **state)
{
    (void)state;
    add("GET /users/:id");
    add("GET /users/:id/notes/:note");
    expect("GET", "/users/7", "GET /users/:id");
    assert_int_equal(found.n, 1);
    expect_param(0, "id", "7");
    expect("GET", "/users/a b/notes/x%2Fy", "GET /users/:id/notes/:note");
    assert_int_equal(found.n, 2);
    expect_param(0, "id", "a b");
    expect_param(1, "note", "x%2Fy");
    expect("GET", "/users/", NULL);
    expect("GET", "/users/7/", NULL);
    expect("GET", "/users//notes/1", NULL);
}

static void router_rest_parameters(void **state)
{
    (void)state;
    add("/files/*path");
    add("/:user/*rest");
    add("/*all");
    expect("GET", "/files/", "/files/*path");
    expect_param(0, "path", "");
    expect("GET", "/files/a/b//c/", "/files/*path");
    expect_param(0, "path", "a/b//c/");
    expect("GET", "/files", "/*all");
    expect_param(0, "all", "files");
    expect("GET", "/ana/x", "/:user/*rest");
    expect_param(1, "rest", "x");
    expect("GET", "/", "/*all");
    expect_param(0, "all", "");
}

static void router_most_specific_route_wins(void **state)
{
    (void)state;
    add("GET /*all");
    add("GET /v/:text");
    add("GET /v/:x<slug>");
    add("GET /v/:x<word>");
    add("GET /v/:x<alpha>");
    add("GET /v/:x<hex>");
    add("GET /v/:x<number>");
    add("GET /v/:x<int>");
    add("GET /v/:x<uint>");
    add("GET /v/:x<date>");
    add("GET /v/:x<uuid>");
    add("GET /v/new");
    expect("GET", "/v/new", "GET /v/new");
    expect("GET", "/v/00000000-1111-2222-AAAA-bbbbbbbbbbbb", "GET /v/:x<uuid>");
    expect("GET", "/v/2028-02-29", "GET /v/:x<date>");
    expect("GET", "/v/2100-02-29", "GET /v/:x<slug>");
    expect("GET", "/v/2026-13-01", "GET /v/:x<slug>");
    expect("GET", "/v/2026-12-00", "GET /v/:x<slug>");
    expect("GET", "/v/12", "GET /v/:x<uint>");
    assert_int_equal(found.params[0].as_uint, 12);
    expect("GET", "/v/-12", "GET /v/:x<int>");
    assert_int_equal(found.params[0].as_int, -12);
    expect("GET", "/v/-1.5", "GET /v/:x<number>");
    expect("GET", "/v/1f", "GET /v/:x<hex>");
    expect("GET", "/v/xyz", "GET /v/:x<alpha>");
    expect("GET", "/v/x_1", "GET /v/:x<word>");
    expect("GET", "/v/x-1", "GET /v/:x<slug>");
    expect("GET", "/v/1.", "GET /v/:text");
    expect("GET", "/v/.5", "GET /v/:text");
    expect("GET", "/v/-", "GET /v/:x<slug>");
    expect("GET", "/v/", "GET /*all");
}

static void router_overflowing_numbers_do_not_match(void **state)
{
    (void)state;
    add("GET /u/:n<uint>");
    add("GET /i/:n<int>");
    expect("GET", "/u/18446744073709551615", "GET /u/:n<uint>");
    assert_true(found.params[0].as_uint == UINT64_MAX);
    expect("GET", "/u/18446744073709551616", NULL);
    expect("GET", "/i/9223372036854775807", "GET /i/:n<int>");
    assert_true(found.params[0].as_int == INT64_MAX);
    expect("GET", "/i/9223372036854775808", NULL);
    expect("GET", "/i/-9223372036854775808", "GET /i/:n<int>");
    assert_true(found.params[0].as_int == INT64_MIN);
    expect("GET", "/i/-9223372036854775809", NULL);
    expect("GET", "/i/+1", NULL);
    expect("GET", "/i/--1", NULL);
}

static void router_backtracks_from_dead_ends(void **state)
{
    (void)state;
    add("GET /a/b/c");
    add("GET /a/:x/d");
    add("GET /:y<alpha>/b/e/:z");
    add("GET /*all");
    expect("GET", "/a/b/c", "GET /a/b/c");
    expect("GET", "/a/b/d", "GET /a/:x/d");
    expect("GET", "/a/b/e/f", "GET /:y<alpha>/b/e/:z");
    expect_param(0, "y", "a");
    expect_param(1, "z", "f");
    expect("GET", "/a/b/f", "GET /*all");
    assert_int_equal(found.n, 1);
}

static void router_methods(void **state)
{
    (void)state;
    add("GET /x");
    add("POST,PUT /x");
    add("PURGE /x");
    add("GET /x/:id");
    add("POST /x/new");
    expect("GET", "/x", "GET /x");
    expect("PUT", "/x", "POST,PUT /x");
    expect("PURGE", "/x", "PURGE /x");
    expect("HEAD", "/x", "GET /x");
    expect_allow("DELETE", "/x", "GET, HEAD, POST, PUT, PURGE");
    expect_allow("get", "/x", "GET, HEAD, POST, PUT, PURGE");
    expect_allow("OPTIONS", "/x/new", "GET, HEAD, POST");
    expect("GET", "/x/new", "GET /x/:id");
    expect("POST", "/x/new", "POST /x/new");
    expect_allow("POST", "/x/old", "GET, HEAD");
}

static void router_routes_without_methods_match_other_methods(void **state)
{
    (void)state;
    add("/x");
    add("GET /x");
    add("HEAD /y");
    add("GET /y");
    add("/y");
    expect("GET", "/x", "GET /x");
    expect("HEAD", "/x", "GET /x");
    expect("POST", "/x", "/x");
    expect("ANYTHING", "/x", "/x");
    expect("HEAD", "/y", "HEAD /y");
    expect("POST", "/y", "/y");
}

static void router_conflict_names_both_routes(void **state)
{
    (void)state;
    assert_int_equal(mk_router_add(router, MK_STR("GET,POST /u/:id<int>"), NULL, MK_STR("a.c:1")), 0);
    add("/any");
    refuses("PUT,POST /u/:number<int>", -EEXIST,
            "`PUT,POST /u/:number<int>` (b.c:2) and `GET,POST /u/:id<int>` (a.c:1) match the same requests");
    refuses("/any", -EEXIST, "`/any` (b.c:2) and `/any` match");
    add("PUT /u/:id<int>");
    add("GET /u/:id<uint>");
    add("POST /any");
    assert_int_equal(mk_router_error(router).len, 0);
}

static void router_mistakes_are_explained(void **state)
{
    (void)state;
    refuses("", -EINVAL, "must begin with a slash");
    refuses("GET", -EINVAL, "must begin with a slash");
    refuses("GET users", -EINVAL, "must begin with a slash");
    refuses("get /x", -EINVAL, "uppercase words");
    refuses("GET, POST /x", -EINVAL, "uppercase words");
    refuses("GET /x/:", -EINVAL, "whole segment");
    refuses("GET /x/:1", -EINVAL, "whole segment");
    refuses("GET /x/:id.json", -EINVAL, "whole segment");
    refuses("GET /x/:id<int", -EINVAL, "whole segment");
    refuses("GET /x/:id<itn>", -EINVAL,
            "<itn> is not a parameter type; the types are: uuid, date, uint, int");
    refuses("GET /x/:id/:id", -EINVAL, "same name");
    refuses("GET /x/:id/*id", -EINVAL, "same name");
    refuses("GET /x/*", -EINVAL, "whole segment");
    refuses("GET /*rest/x", -EINVAL, "last segment");
    refuses("GET /x*", -EINVAL, "last segment");
    refuses("GET //x", -EINVAL, "two slashes");
    refuses("GET /x/../y", -EINVAL, "..");
    refuses("GET /%2e/y", -EINVAL, "..");
    refuses("GET /x?y", -EINVAL, "%3F");
    refuses("GET /x y", -EINVAL, "%20");
    refuses("GET /x%2fy", -EINVAL, "two hexadecimal digits");
    refuses("GET /x%00", -EINVAL, "two hexadecimal digits");
    refuses("GET /x%1", -EINVAL, "two hexadecimal digits");
}

/* Writes `beginning` n times, each followed by its index: "/s0/s1/s2". */
static void repeat(struct mk_buf *out, const char *beginning, int n)
{
    mk_buf_clear(out);
    for (int i = 0; i < n; i++)
        mk_buf_addf(out, "%s%d", beginning, i);
}

static int add_text(const struct mk_buf *text)
{
    return mk_router_add(router, mk_buf_str(text), NULL, MK_STR_NULL);
}

static void router_limits(void **state)
{
    struct mk_buf text = mk_buf_growing(10000);
    (void)state;
    repeat(&text, "/:p", MK_ROUTER_PARAMS_MAX);
    assert_int_equal(add_text(&text), 0);
    repeat(&text, "/:p", MK_ROUTER_PARAMS_MAX + 1);
    assert_int_equal(add_text(&text), -EINVAL);
    assert_contains(mk_router_error(router), "more than 16 parameters");
    repeat(&text, "/s", MK_ROUTER_SEGMENTS_MAX);
    assert_int_equal(add_text(&text), 0);
    repeat(&text, "/s", MK_ROUTER_SEGMENTS_MAX + 1);
    assert_int_equal(add_text(&text), -EINVAL);
    assert_contains(mk_router_error(router), "more than 64 segments");
    mk_buf_clear(&text);
    mk_buf_add_char(&text, '/');
    for (int i = 1; i < MK_ROUTER_PATTERN_MAX; i++)
        mk_buf_add_char(&text, 'a');
    assert_int_equal(add_text(&text), 0);
    mk_buf_add_char(&text, 'a');
    assert_int_equal(add_text(&text), -EINVAL);
    assert_contains(mk_router_error(router), "more than 1024 bytes");
    int n = 0, err = 0;
    for (; !err && n < 100; n++) {
        mk_buf_clear(&text);
        mk_buf_addf(&text, "M%d /m", n);
        err = add_text(&text);
    }
    assert_int_equal(err, -EINVAL);
    assert_contains(mk_router_error(router), "too many different methods");
    assert_int_equal(n, MK_ROUTER_METHODS_MAX - 7 + 1);
    mk_buf_free(&text);
}

static void router_routes_have_numbers(void **state)
{
    (void)state;
    assert_int_equal(mk_router_add(router, MK_STR("  GET   /x "), router, MK_STR("a.c:1")), 0);
    assert_int_equal(mk_router_add(router, MK_STR("GET"), router, MK_STR("a.c:2")), -EINVAL);
    assert_int_equal(mk_router_add(router, MK_STR("GET /y"), &found, MK_STR("a.c:3")), 0);
    mk_router_find(router, MK_STR("GET"), MK_STR("/x"), &found);
    assert_int_equal(found.route, 0);
    assert_ptr_equal(found.data, router);
    mk_router_find(router, MK_STR("GET"), MK_STR("/y"), &found);
    assert_int_equal(found.route, 1); /* a rejected route gets no number */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(router_empty_finds_nothing, setup, teardown),
        fixture_test(router_literal_paths, setup, teardown),
        fixture_test(router_parameters, setup, teardown),
        fixture_test(router_rest_parameters, setup, teardown),
        fixture_test(router_most_specific_route_wins, setup, teardown),
        fixture_test(router_overflowing_numbers_do_not_match, setup, teardown),
        fixture_test(router_backtracks_from_dead_ends, setup, teardown),
        fixture_test(router_methods, setup, teardown),
        fixture_test(router_routes_without_methods_match_other_methods, setup, teardown),
        fixture_test(router_conflict_names_both_routes, setup, teardown),
        fixture_test(router_mistakes_are_explained, setup, teardown),
        fixture_test(router_limits, setup, teardown),
        fixture_test(router_routes_have_numbers, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

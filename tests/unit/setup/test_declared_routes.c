/* SPDX-License-Identifier: Apache-2.0 */
/* Routes inside the handlers of plugins: which of them match the same requests. */
#include <errno.h>
#include <monkey/config.h>

#include "setup/config.h"
#include "unit/fixtures.h"
#include "unit/test.h"

static struct mk_config_generation g;
static struct mk_vhost_config site, other_site;
static struct mk_config config = {.generation = &g, .site = &site};
static mk_str conflict;

static void setup(void)
{
    g = (struct mk_config_generation){0};
    site = other_site = (struct mk_vhost_config){0};
    config.site = &site;
    arena_setup(&g.arena);
}

static void forget_routes(void)
{
    site.declared_routes = NULL;
}

static int declare(const char *host, const char *route)
{
    return mk_config_declare_route(&config, mk_str_from_c(host), mk_str_from_c(route), MK_STR("x.c:1"),
                                   &conflict);
}

static void expect_conflict(const char *a, const char *b)
{
    forget_routes();
    assert_int_equal(declare("", a), 0);
    assert_int_equal(declare("", b), -EEXIST);
}

static void expect_no_conflict(const char *a, const char *b)
{
    forget_routes();
    assert_int_equal(declare("", a), 0);
    assert_int_equal(declare("", b), 0);
    assert_null(conflict.p);
}

static void declared_route_conflicts_with_equal_route(void **state)
{
    (void)state;
    expect_conflict("GET /a/:id", "GET /a/:name");
    expect_conflict("/a", "/a");
    expect_conflict("GET /", "GET  / ");
    expect_conflict("GET /a/*path", "GET /a/*rest");
    expect_conflict("GET /a/:id<int>", "GET /a/:number<int>");
    expect_conflict("GET /a%62", "GET /ab");
    expect_conflict("POST /a", "GET,POST /a");
    expect_conflict("GET,POST /a", "PUT,POST,GET /a");
}

static void declared_route_does_not_conflict_with_other_route(void **state)
{
    (void)state;
    expect_no_conflict("GET /a", "POST /a");
    expect_no_conflict("GET /a", "/a");
    expect_no_conflict("GET /a", "GET /a/");
    expect_no_conflict("GET /a", "GET /A");
    expect_no_conflict("GET /a/:id", "GET /a/:id<int>");
    expect_no_conflict("GET /a/:id", "GET /a/*id");
    expect_no_conflict("GET /a/:id", "GET /a/%3Aid");
    expect_no_conflict("GET /a/:", "GET /a/:x");
    expect_no_conflict("GET /a%2", "GET /a");
}

static void declared_route_of_other_host_does_not_conflict(void **state)
{
    (void)state;
    assert_int_equal(declare("", "GET /a"), 0);
    assert_int_equal(declare("a.test", "GET /a"), 0);
    assert_int_equal(declare("b.test", "GET /a"), 0);
    assert_int_equal(declare("A.Test", "GET /a"), -EEXIST);
    config.site = &other_site;
    assert_int_equal(declare("", "GET /a"), 0);
}

static void declared_route_conflict_names_both_routes(void **state)
{
    (void)state;
    char where[] = "one.c:3", route[] = "GET /a/:x";
    assert_int_equal(
        mk_config_declare_route(&config, MK_STR(""), mk_str_from_c(route), mk_str_from_c(where), &conflict),
        0);
    memset(where, '?', sizeof where - 1); /* the texts were copied */
    memset(route, '?', sizeof route - 1);
    assert_int_equal(
        mk_config_declare_route(&config, MK_STR(""), MK_STR("GET /a/:y"), MK_STR("two.c:4"), &conflict),
        -EEXIST);
    assert_str(conflict,
               "`GET /a/:y` (two.c:4) and `GET /a/:x` (one.c:3) match the same requests; change one "
               "of them");
}

int main(void)
{
    const struct CMUnitTest tests[] = {fixture_test(declared_route_conflicts_with_equal_route, setup),
                                       fixture_test(declared_route_does_not_conflict_with_other_route, setup),
                                       fixture_test(declared_route_of_other_host_does_not_conflict, setup),
                                       fixture_test(declared_route_conflict_names_both_routes, setup)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

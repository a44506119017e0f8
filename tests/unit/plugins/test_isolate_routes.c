/* SPDX-License-Identifier: Apache-2.0 */
/* The report of the routes inside an isolated service: valid, forged and large reports, and equal routes. */
#include "unit/test.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "group_type.h"
#include "routes.h"

/* ---- Fake server ---- */

static void *blocks[100000];
static size_t n_blocks;
static char errors[4096];
static size_t n_declared;
static int result; /* of mk_config_declare_route() */

void *mk_config_alloc(struct mk_config *config, size_t size)
{
    (void)config;
    assert_true(n_blocks < MK_LEN(blocks));
    return blocks[n_blocks++] = calloc(1, size);
}

mk_str mk_config_copy(struct mk_config *config, mk_str text)
{
    char *p = mk_config_alloc(config, text.len + 1);
    if (text.len)
        memcpy(p, text.p, text.len);
    return mk_str_of(p, text.len);
}

static void append_error(const char *fmt, va_list args)
{
    size_t len = strlen(errors);
    (void)vsnprintf(errors + len, sizeof errors - len, fmt, args);
    (void)strncat(errors, "\n", sizeof errors - strlen(errors) - 1);
}

void mk_config_error(struct mk_config *config, const void *section, const char *key, const char *fmt, ...)
{
    va_list args;
    (void)config, (void)section;
    assert_string_equal(key, "Service");
    va_start(args, fmt);
    append_error(fmt, args);
    va_end(args);
}

void mk_config_hint(struct mk_config *config, const char *fmt, ...)
{
    va_list args;
    (void)config;
    va_start(args, fmt);
    append_error(fmt, args);
    va_end(args);
}

int mk_config_declare_route(struct mk_config *config, mk_str host, mk_str route, mk_str where,
                            mk_str *conflict)
{
    (void)config, (void)host, (void)where;
    n_declared++;
    *conflict = route;
    return mk_str_eq(route, MK_STR("GET /b")) ? result : 0;
}

static int free_blocks(void **state)
{
    (void)state;
    while (n_blocks)
        free(blocks[--n_blocks]);
    return 0;
}

/* ---- Reports ---- */

enum { REPORT_MAX = 1024 * 1024, ROUTES_MAX = 10000, CONFLICTS_MAX = 10 };

static struct isolate_group group;

static bool read_report(mk_str text)
{
    int fd = isolate_routes_create_file();
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, text.p, text.len, 0), (ssize_t)text.len);
    group = (struct isolate_group){.name = "shop"};
    errors[0] = '\0';
    bool ok = isolate_routes_read(NULL, &group, fd);
    close(fd);
    return ok;
}

static const struct isolate_route *expect_report(mk_str text)
{
    assert_true(read_report(text));
    assert_string_equal(errors, "");
    return group.routes;
}

static void expect_too_long(mk_str text)
{
    assert_false(read_report(text));
    assert_null(group.routes);
    assert_string_equal(errors, "the service `shop` has too many routes: expected at most 10000, in a report "
                                "below 1024 KiB\n");
}

static void expect_route(const struct isolate_route *r, const char *host, const char *route,
                         const char *where)
{
    assert_non_null(r);
    assert_str(r->host, host);
    assert_str(r->route, route);
    assert_str(r->where, where);
}

static void routes_are_read_in_order(void **state)
{
    (void)state;
    const struct isolate_route *r = expect_report(
        MK_STR("\tGET /\thome() of the service shop, shop.c:3\nshop.test\t/x/:id\tx(), shop.c:4\n"));
    expect_route(r, "", "GET /", "home() of the service shop, shop.c:3");
    expect_route(r->next, "shop.test", "/x/:id", "x(), shop.c:4");
    assert_null(r->next->next);
    assert_null(expect_report(MK_STR("")));
}

static void routes_skip_invalid_lines(void **state)
{
    (void)state;
    const struct isolate_route *r =
        expect_report(MK_STR("GET /\n\t\n\n\t\twhere\n\tGET /a\n\tGET /\x1b[2J\twhere\n\tGET /a\tw\ty\n"
                             "\tGET /good\twhere\n\tGET /last\tcut"));
    expect_route(r, "", "GET /good", "where");
    expect_route(r->next, "", "GET /last", "cut");
    assert_null(r->next->next);
    char line[5000] = "\tGET /";
    memset(line + 6, 'a', sizeof line - 9);
    memcpy(line + sizeof line - 3, "\tw\n", 3);
    assert_null(expect_report(mk_str_of(line, sizeof line)));
}

static size_t count_routes(void)
{
    size_t n = 0;
    for (const struct isolate_route *r = group.routes; r; r = r->next)
        n++;
    return n;
}

static mk_str number_routes(struct mk_buf *text, int n)
{
    *text = mk_buf_growing((size_t)n * 32);
    for (int i = 0; i < n; i++)
        mk_buf_addf(text, "\tGET /%d\tx.c:%d\n", i, i);
    return mk_buf_str(text);
}

/* More than one read(2) of the report. */
static void routes_of_large_service_are_all_read(void **state)
{
    (void)state;
    struct mk_buf text;
    (void)expect_report(number_routes(&text, ROUTES_MAX));
    assert_int_equal(count_routes(), ROUTES_MAX);
    mk_buf_free(&text);
}

/* A route needs some hundred bytes of the server's memory, in each virtual host. */
static void routes_above_the_maximum_are_rejected(void **state)
{
    (void)state;
    struct mk_buf text;
    expect_too_long(number_routes(&text, ROUTES_MAX + 1));
    mk_buf_free(&text);
    char *lines = malloc(ROUTES_MAX + 1);
    assert_non_null(lines);
    memset(lines, '\n', ROUTES_MAX + 1);
    expect_too_long(mk_str_of(lines, ROUTES_MAX + 1));
    free(lines);
    assert_int_equal(n_blocks, 0);
}

/* The file is full, so the service may have written only a part of the report. */
static void routes_of_a_full_file_are_rejected(void **state)
{
    (void)state;
    struct mk_buf text = mk_buf_growing(REPORT_MAX);
    while (text.len + 2044 <= REPORT_MAX)
        mk_buf_addf(&text, "\tGET /%01000d\tx.c:1234567890\n", 7);
    mk_buf_addf(&text, "\tGET /%0*d", (int)(REPORT_MAX - text.len - 7), 0);
    mk_str full = mk_buf_str(&text);
    assert_int_equal(full.len, REPORT_MAX - 1);
    assert_non_null(expect_report(full));
    mk_buf_add_char(&text, '0');
    expect_too_long(mk_buf_str(&text));
    mk_buf_free(&text);
}

/* A hostile service could otherwise use up the memory of the server, or truncate the file while it is read. */
static void routes_file_has_a_fixed_size(void **state)
{
    (void)state;
    int fd = isolate_routes_create_file();
    assert_true(fd >= 0);
    off_t size = lseek(fd, 0, SEEK_END);
    assert_int_equal(size, REPORT_MAX);
    assert_int_equal(write(fd, "x", 1), -1);
    assert_int_equal(ftruncate(fd, 0), -1);
    assert_int_equal(lseek(fd, 0, SEEK_END), size);
    close(fd);
}

static void routes_conflict_is_reported_with_hint(void **state)
{
    (void)state;
    struct isolate_route b = {.route = MK_STR("GET /b")}, a = {.next = &b, .route = MK_STR("GET /a")};
    group = (struct isolate_group){.name = "shop", .routes = &a};
    errors[0] = '\0';
    result = 0;
    assert_true(isolate_routes_declare(NULL, &group));
    result = -ENOMEM;
    assert_false(isolate_routes_declare(NULL, &group));
    assert_string_equal(errors, "");
    result = -EEXIST;
    assert_false(isolate_routes_declare(NULL, &group));
    assert_string_equal(errors, "GET /b\ngive each service separate paths: `/shop/* isolate shop` in "
                                "[ROUTES], or a prefix in its table\n");
}

/* A forged report could otherwise fill the log. */
static void routes_conflicts_are_reported_up_to_ten(void **state)
{
    (void)state;
    struct isolate_route routes[30];
    for (size_t i = 0; i < MK_LEN(routes); i++)
        routes[i] = (struct isolate_route){.next = i + 1 < MK_LEN(routes) ? &routes[i + 1] : NULL,
                                           .route = i % 2 ? MK_STR("GET /b") : MK_STR("GET /a")};
    group = (struct isolate_group){.name = "shop", .routes = routes};
    errors[0] = '\0';
    n_declared = 0;
    result = -EEXIST;
    assert_false(isolate_routes_declare(NULL, &group));
    size_t n = 0;
    for (const char *p = errors; (p = strstr(p, "GET /b\n")); p++)
        n++;
    assert_int_equal(n, CONFLICTS_MAX);
    assert_int_equal(n_declared, 2 * CONFLICTS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(routes_are_read_in_order, free_blocks),
        cmocka_unit_test_teardown(routes_skip_invalid_lines, free_blocks),
        cmocka_unit_test_teardown(routes_of_large_service_are_all_read, free_blocks),
        cmocka_unit_test_teardown(routes_above_the_maximum_are_rejected, free_blocks),
        cmocka_unit_test_teardown(routes_of_a_full_file_are_rejected, free_blocks),
        cmocka_unit_test(routes_file_has_a_fixed_size),
        cmocka_unit_test(routes_conflict_is_reported_with_hint),
        cmocka_unit_test(routes_conflicts_are_reported_up_to_ten)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

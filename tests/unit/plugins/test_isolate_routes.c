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

static int report_fd;

static struct isolate_route *read_report(mk_str text)
{
    report_fd = isolate_routes_create_file();
    assert_true(report_fd >= 0);
    assert_int_equal(write(report_fd, text.p, text.len), (ssize_t)text.len);
    struct isolate_route *r = isolate_routes_read(NULL, report_fd);
    close(report_fd);
    return r;
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
    const struct isolate_route *r = read_report(
        MK_STR("\tGET /\thome() of the service shop, shop.c:3\nshop.test\t/x/:id\tx(), shop.c:4\n"));
    expect_route(r, "", "GET /", "home() of the service shop, shop.c:3");
    expect_route(r->next, "shop.test", "/x/:id", "x(), shop.c:4");
    assert_null(r->next->next);
    assert_null(read_report(MK_STR("")));
}

static void routes_skip_invalid_lines(void **state)
{
    (void)state;
    const struct isolate_route *r =
        read_report(MK_STR("GET /\n\t\n\n\t\twhere\n\tGET /a\n\tGET /\x1b[2J\twhere\n\tGET /a\tw\ty\n"
                           "\tGET /good\twhere\n\tGET /last\tcut"));
    expect_route(r, "", "GET /good", "where");
    expect_route(r->next, "", "GET /last", "cut");
    assert_null(r->next->next);
    char line[5000] = "\tGET /";
    memset(line + 6, 'a', sizeof line - 9);
    memcpy(line + sizeof line - 3, "\tw\n", 3);
    assert_null(read_report(mk_str_of(line, sizeof line)));
}

/* More than one read(2) of the report. */
static void routes_of_large_service_are_all_read(void **state)
{
    (void)state;
    struct mk_buf text = mk_buf_growing(20000 * 32);
    size_t n = 0;
    for (int i = 0; i < 20000; i++)
        mk_buf_addf(&text, "\tGET /%d\tx.c:%d\n", i, i);
    for (const struct isolate_route *r = read_report(mk_buf_str(&text)); r; r = r->next)
        n++;
    assert_int_equal(n, 20000);
    mk_buf_free(&text);
}

/* A hostile service could otherwise use up the memory of the server, or truncate the file while it is read. */
static void routes_file_has_a_fixed_size(void **state)
{
    (void)state;
    int fd = isolate_routes_create_file();
    assert_true(fd >= 0);
    off_t size = lseek(fd, 0, SEEK_END);
    assert_true(size > 1000000);
    assert_int_equal(write(fd, "x", 1), -1);
    assert_int_equal(ftruncate(fd, 0), -1);
    assert_int_equal(lseek(fd, 0, SEEK_END), size);
    close(fd);
}

static void routes_conflict_is_reported_with_hint(void **state)
{
    (void)state;
    struct isolate_route b = {.route = MK_STR("GET /b")}, a = {.next = &b, .route = MK_STR("GET /a")};
    const struct isolate_group group = {.name = "shop", .routes = &a};
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(routes_are_read_in_order, free_blocks),
        cmocka_unit_test_teardown(routes_skip_invalid_lines, free_blocks),
        cmocka_unit_test_teardown(routes_of_large_service_are_all_read, free_blocks),
        cmocka_unit_test(routes_file_has_a_fixed_size),
        cmocka_unit_test(routes_conflict_is_reported_with_hint)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

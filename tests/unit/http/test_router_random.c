/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the router with a naive one that tries all routes, on random routes and paths. */
#include <errno.h>
#include <stdio.h>

#include "unit/http/naive.h"
#include "unit/test.h"

enum { ROUNDS = 150, ROUTES = 40, PATHS = 100, TEXT = 128 };

static unsigned random_state = 1;

static unsigned draw(unsigned n)
{
    random_state = random_state * 1103515245 + 12345;
    return (random_state >> 16) % n;
}

static const char *pick(const char *const *words, unsigned n)
{
    return words[draw(n)];
}

static void make_route(char *buffer)
{
    static const char *const methods[] = {"", "GET ", "HEAD ", "POST ", "PURGE "};
    static const char *const words[] = {"a", "b", "7", "-7", "1.5", "x_", "x-"};
    size_t len = (size_t)snprintf(buffer, TEXT, "%s", pick(methods, MK_LEN(methods)));
    unsigned n = 1 + draw(4);
    for (unsigned i = 0; i < n; i++) {
        buffer[len++] = '/';
        unsigned kind = draw(10);
        if (kind < 4)
            len += (size_t)snprintf(buffer + len, TEXT - len, "%s", pick(words, MK_LEN(words)));
        else if (kind < 8)
            len += (size_t)snprintf(buffer + len, TEXT - len, ":p%u%s", i,
                                    naive_types[draw(NAIVE_TYPES)].written);
        else if (kind == 8 && i == n - 1)
            len += (size_t)snprintf(buffer + len, TEXT - len, "*rest");
        else if (i < n - 1)
            buffer[len++] = 'c';
    }
    buffer[len] = '\0';
}

static void make_path(char *buffer)
{
    static const char *const words[] = {"a", "b", "c", "7", "-7", "1.5", "x_", "x-", "é", "", "zz", "ff"};
    size_t len = 0;
    for (unsigned n = 1 + draw(5); n > 0; n--)
        len += (size_t)snprintf(buffer + len, TEXT - len, "/%s", pick(words, MK_LEN(words)));
}

static int fill(struct mk_router *router, char texts[][TEXT], mk_str *routes)
{
    int n = 0;
    for (int i = 0; i < ROUTES; i++) {
        make_route(texts[n]);
        routes[n] = mk_str_from_c(texts[n]);
        int err = mk_router_add(router, routes[n], texts[n], MK_STR_NULL);
        if (err != -EEXIST)
            assert_int_equal(err, 0);
        n += err == 0;
    }
    return n;
}

/* The parameters must have the names from the route, in order, and the values of the matching path
 * segments. */
static void check_params(const struct mk_router_match *match, mk_str route, mk_str path)
{
    size_t k = 0;
    naive_methods(&route);
    while (route.p) {
        mk_str segment = mk_str_cut(&route, '/'), value = path;
        if (naive_rank(segment) <= NAIVE_TYPES)
            value = mk_str_cut(&path, '/');
        if (naive_rank(segment) == 0)
            continue;
        assert_true(k < match->n);
        assert_true(mk_str_starts(mk_str_skip(segment, 1), match->params[k].name));
        assert_true(mk_str_eq(match->params[k].value, value));
        k++;
    }
    assert_int_equal(k, match->n);
}

static void router_agrees_with_the_naive_router(void **state)
{
    static const char *const methods[] = {"GET", "HEAD", "POST", "PURGE", "OTHER"};
    static char texts[ROUTES][TEXT];
    mk_str routes[ROUTES];
    char path[TEXT];
    (void)state;
    naive_init();
    for (int round = 0; round < ROUNDS; round++) {
        struct mk_router *router = mk_router_new();
        struct mk_router_match match;
        assert_non_null(router);
        int n = fill(router, texts, routes);
        for (int i = 0; i < PATHS; i++) {
            make_path(path);
            mk_str method = mk_str_from_c(pick(methods, MK_LEN(methods)));
            int expected = naive_find(routes, n, method, mk_str_from_c(path));
            enum mk_router_result result = mk_router_find(router, method, mk_str_from_c(path), &match);
            int actual = result == MK_ROUTER_FOUND ? (int)match.route : -(int)result;
            if (actual != expected)
                fail_msg("%.*s %s: %d instead of %d", MK_STR_ARG(method), path, actual, expected);
            if (actual >= 0)
                check_params(&match, routes[actual], mk_str_from_c(path));
        }
        mk_router_free(router);
    }
    naive_fini();
}

static void router_handles_thousands_of_routes(void **state)
{
    enum { N = 5000 };
    char text[TEXT];
    struct mk_router *router = mk_router_new();
    struct mk_router_match match;
    (void)state;
    for (int i = 0; i < N; i++) {
        snprintf(text, sizeof text, "GET /service%d/item/:id<int>", i);
        assert_int_equal(mk_router_add(router, mk_str_from_c(text), NULL, MK_STR_NULL), 0);
    }
    for (int i = 0; i < N; i++) {
        snprintf(text, sizeof text, "/service%d/item/%d", i, i);
        assert_int_equal(mk_router_find(router, MK_STR("GET"), mk_str_from_c(text), &match), MK_ROUTER_FOUND);
        assert_int_equal(match.route, i);
        assert_int_equal(match.params[0].as_int, i);
    }
    mk_router_free(router);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(router_agrees_with_the_naive_router),
        cmocka_unit_test(router_handles_thousands_of_routes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

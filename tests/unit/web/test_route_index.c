/* SPDX-License-Identifier: Apache-2.0 */
#include "web/route_index.h"

#include <stdio.h>
#include <stdlib.h>

#include "unit/fixtures.h"
#include "unit/test.h"

enum { N = 200, TEXT = 16 };

static struct mk_arena arena;
static struct mk_route routes[N];
static char texts[N][TEXT];
static unsigned random_state;

static void setup(void)
{
    random_state = 1;
    memset(routes, 0, sizeof routes);
    arena_setup(&arena);
}

static unsigned draw(unsigned n)
{
    random_state = random_state * 1103515245 + 12345;
    return (random_state >> 16) % n;
}

static void set(size_t i, const char *pattern)
{
    snprintf(texts[i], TEXT, "%s", pattern);
    assert_true(mk_pattern_set(&routes[i].pattern, mk_str_from_c(texts[i])));
}

/* Finds the route by a linear search, as reference. */
static size_t search_linearly(size_t from, mk_str path, enum mk_regex_result *result)
{
    for (; from < N; from++)
        if ((*result = mk_route_matches(&routes[from], path)) != MK_REGEX_NO_MATCH)
            break;
    return from;
}

static mk_str make_text(char *buffer, const char *alphabet, char first)
{
    size_t len = 1 + draw(8);
    buffer[0] = first;
    for (size_t i = 1; i < len; i++)
        buffer[i] = alphabet[draw((unsigned)strlen(alphabet))];
    buffer[len] = '\0';
    return mk_str_of(buffer, len);
}

static enum mk_regex_result match_text(const struct mk_regex *r, mk_str text, struct mk_regex_captures *out)
{
    (void)r, (void)out;
    return text.len % 5 == 3 ? MK_REGEX_MATCH : text.len == 7 ? MK_REGEX_LIMIT : MK_REGEX_NO_MATCH;
}

static void route_index_equals_linear_search(void **state)
{
    static const struct mk_regex_ops ops = {.match = match_text};
    static struct mk_regex regex = {&ops};
    char buffer[TEXT];
    (void)state;
    for (int round = 0; round < 30; round++) {
        for (size_t i = 0; i < N; i++) {
            make_text(buffer, "ab//*?", draw(8) ? '/' : '*');
            set(i, buffer);
            routes[i].regex = draw(40) ? NULL : &regex;
        }
        struct mk_route_index *index = mk_route_index_new(&arena, routes, N);
        assert_non_null(index);
        for (int k = 0; k < 300; k++) {
            mk_str path = make_text(buffer, "ab/", '/');
            enum mk_regex_result expected = MK_REGEX_MATCH, found;
            for (size_t from = 0, at; from < N; from = at + 1) {
                at = search_linearly(from, path, &expected);
                assert_int_equal(mk_route_index_find(index, from, path, &found), at);
                if (at < N)
                    assert_int_equal(found, expected);
            }
        }
    }
}

static void route_index_is_not_built_for_few_routes(void **state)
{
    (void)state;
    set(0, "/a");
    assert_null(mk_route_index_new(&arena, routes, 1));
    assert_null(mk_route_index_new(&arena, routes, 0));
}

static void route_index_accepts_paths_of_any_length(void **state)
{
    (void)state;
    for (size_t i = 0; i < N; i++) {
        char text[TEXT];
        snprintf(text, sizeof text, "/item%zu", i);
        set(i, text);
    }
    struct mk_route_index *index = mk_route_index_new(&arena, routes, N);
    char *path = malloc(1 << 20);
    enum mk_regex_result result;
    assert_non_null(path);
    memset(path, '/', 1 << 20);
    assert_int_equal(mk_route_index_find(index, 0, mk_str_of(path, 1 << 20), &result), N);
    free(path);
    assert_int_equal(mk_route_index_find(index, 0, MK_STR("/item150"), &result), 150);
    assert_int_equal(mk_route_index_find(index, 151, MK_STR("/item150"), &result), N);
    assert_int_equal(mk_route_index_find(index, 0, MK_STR(""), &result), N);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(route_index_equals_linear_search, setup),
        fixture_test(route_index_is_not_built_for_few_routes, setup),
        fixture_test(route_index_accepts_paths_of_any_length, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

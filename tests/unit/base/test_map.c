/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include <stdio.h>

#include "unit/fixtures.h"
#include "unit/test.h"

static struct mk_arena arena;
static struct mk_map map, *m = &map;

static void setup(void)
{
    arena_setup(&arena);
    mk_map_init(&map, &arena);
}

static void map_empty_finds_nothing(void **state)
{
    (void)state;
    assert_null(mk_map_get(m, MK_STR("a")));
    assert_null(mk_map_get(m, MK_STR("")));
    assert_null(m->slots);
}

static void map_put_values_are_found(void **state)
{
    (void)state;
    int a, b, none;
    assert_true(mk_map_put(m, MK_STR("a"), &a));
    assert_true(mk_map_put(m, MK_STR("b"), &b));
    assert_true(mk_map_put(m, MK_STR(""), &none));
    assert_ptr_equal(mk_map_get(m, MK_STR("a")), &a);
    assert_ptr_equal(mk_map_get(m, MK_STR("b")), &b);
    assert_ptr_equal(mk_map_get(m, MK_STR("")), &none);
    assert_ptr_equal(mk_map_get(m, MK_STR_NULL), &none);
    assert_null(mk_map_get(m, MK_STR("A")));
    assert_null(mk_map_get(m, MK_STR("a\0")));
    assert_int_equal(m->n, 3);
}

static void map_put_replaces_a_value(void **state)
{
    (void)state;
    int values[100];
    for (size_t i = 0; i < MK_LEN(values); i++)
        assert_true(mk_map_put(m, MK_STR("key"), &values[i]));
    assert_int_equal(m->n, 1);
    assert_ptr_equal(mk_map_get(m, MK_STR("key")), &values[99]);
}

static void map_keys_can_contain_zero_bytes(void **state)
{
    (void)state;
    int a, b;
    assert_true(mk_map_put(m, MK_STR("k\0a"), &a));
    assert_true(mk_map_put(m, MK_STR("k\0b"), &b));
    assert_ptr_equal(mk_map_get(m, MK_STR("k\0a")), &a);
    assert_ptr_equal(mk_map_get(m, MK_STR("k\0b")), &b);
    assert_null(mk_map_get(m, MK_STR("k")));
}

static void map_keeps_keys_when_it_grows(void **state)
{
    enum { N = 3000 };
    (void)state;
    static char names[N][12];
    for (size_t i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "name-%zu", i);
        assert_true(mk_map_put(m, mk_str_from_c(names[i]), names[i]));
        assert_ptr_equal(mk_map_get(m, mk_str_from_c(names[0])), names[0]);
        assert_ptr_equal(mk_map_get(m, mk_str_from_c(names[i])), names[i]);
        assert_null(mk_map_get(m, MK_STR("name-")));
    }
    assert_int_equal(m->n, N);
    assert_true(m->cap > m->n);
    for (size_t i = 0; i < N; i++)
        assert_ptr_equal(mk_map_get(m, mk_str_from_c(names[i])), names[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(map_empty_finds_nothing, setup),
        fixture_test(map_put_values_are_found, setup),
        fixture_test(map_put_replaces_a_value, setup),
        fixture_test(map_keys_can_contain_zero_bytes, setup),
        fixture_test(map_keeps_keys_when_it_grows, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

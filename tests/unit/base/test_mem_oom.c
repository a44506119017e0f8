/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas, buffers and maps when memory runs out: calls fail, data is kept, and the objects stay usable. */
#include <stdio.h>

#include "unit/oom.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/map.h"

static int n_cleaned;

static void count(void *data)
{
    (void)data;
    n_cleaned++;
}

static bool use_arena(void)
{
    struct mk_arena_cache cache;
    struct mk_arena a;
    mk_arena_cache_init(&cache, 2);
    mk_arena_init(&a, &cache);
    bool ok = mk_arena_alloc(&a, 1) != NULL;
    ok = mk_arena_alloc(&a, 3 * MK_ARENA_BLOCK) && ok;
    ok = mk_arena_zalloc(&a, 300, 10) && ok;
    ok = mk_arena_copy(&a, MK_STR("text")).p && ok;
    ok = mk_arena_printf(&a, "%5000d", 1).p && ok;
    n_cleaned = 0;
    int n_asked = 0;
    for (int i = 0; i < 300; i++)
        n_asked += mk_arena_add_cleanup(&a, count, NULL);
    mk_arena_fini(&a);
    assert_int_equal(n_cleaned, n_asked);
    mk_arena_cache_fini(&cache);
    return ok && n_asked == 300;
}

static void arena_oom_calls_fail(void **state)
{
    (void)state;
    oom_at_each_allocation(use_arena);
}

static void arena_oom_recovers(void **state)
{
    (void)state;
    struct mk_arena a;
    mk_arena_init(&a, NULL);
    oom_at_next_allocation();
    assert_null(mk_arena_alloc(&a, 10));
    char *p = mk_arena_alloc(&a, 10);
    assert_non_null(p);
    memset(p, 1, 10);
    mk_arena_fini(&a);
}

static bool use_buf(void)
{
    struct mk_buf b = mk_buf_growing(100000);
    char expected[3000];
    for (size_t i = 0; i < sizeof expected; i++) {
        expected[i] = (char)('a' + i % 26);
        mk_buf_add_char(&b, expected[i]);
    }
    /* The buffer always holds a prefix of what was written, even after a failure. */
    assert_true(b.len <= sizeof expected);
    assert_memory_equal(mk_buf_str(&b).p, expected, b.len);
    mk_buf_addf(&b, "%5000d", 1);
    bool ok = !b.failed;
    assert_true(!ok || b.len == sizeof expected + 5000);
    mk_buf_free(&b);
    return ok;
}

static void buf_oom_calls_fail(void **state)
{
    (void)state;
    oom_at_each_allocation(use_buf);
}

static void buf_oom_keeps_the_data(void **state)
{
    (void)state;
    struct mk_buf b = mk_buf_growing(100000);
    mk_buf_add(&b, MK_STR("kept"));
    oom_at_next_allocation();
    assert_false(mk_buf_reserve(&b, 5000));
    assert_true(b.failed);
    mk_buf_add(&b, MK_STR(" and not this"));
    assert_str(mk_buf_str(&b), "kept");
    mk_buf_clear(&b);
    mk_buf_addf(&b, "%1000s", "again");
    assert_false(b.failed);
    assert_int_equal(b.len, 1000);
    mk_buf_free(&b);
}

static bool use_json(void)
{
    struct mk_buf b = mk_buf_growing(100000);
    struct mk_json_writer w = mk_json_writer_to(&b);
    mk_json_begin_array(&w);
    for (unsigned i = 0; i < 1000; i++)
        mk_json_string(&w, MK_STR("\xff\"text\""));
    mk_json_end_array(&w);
    bool ok = !b.failed;
    assert_true(!ok || mk_str_ends(mk_buf_str(&b), MK_STR(",\"\\u00ff\\\"text\\\"\"]")));
    mk_buf_free(&b);
    return ok;
}

static void json_writer_oom_fails(void **state)
{
    (void)state;
    oom_at_each_allocation(use_json);
}

enum { KEYS = 500 };

static bool use_map(void)
{
    static char names[KEYS][8];
    struct mk_arena a;
    struct mk_map m;
    mk_arena_init(&a, NULL);
    mk_map_init(&m, &a);
    size_t n = 0;
    bool stored[KEYS];
    for (size_t i = 0; i < KEYS; i++) {
        int len = snprintf(names[i], sizeof names[i], "k%zu", i);
        stored[i] = mk_map_put(&m, mk_str_of(names[i], (size_t)len), names[i]);
        n += stored[i];
    }
    assert_int_equal(m.n, n);
    for (size_t i = 0; i < KEYS; i++)
        assert_ptr_equal(mk_map_get(&m, mk_str_from_c(names[i])), stored[i] ? names[i] : NULL);
    mk_arena_fini(&a);
    return n == KEYS;
}

static void map_oom_calls_fail(void **state)
{
    (void)state;
    oom_at_each_allocation(use_map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arena_oom_calls_fail), cmocka_unit_test(arena_oom_recovers),
        cmocka_unit_test(buf_oom_calls_fail),   cmocka_unit_test(buf_oom_keeps_the_data),
        cmocka_unit_test(map_oom_calls_fail),   cmocka_unit_test(json_writer_oom_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include "base/poison.h"

#include <stdalign.h>
#include <stddef.h>

#include "unit/test.h"

static void arena_allocations_are_aligned_and_do_not_overlap(void **state)
{
    (void)state;
    struct mk_arena a;
    mk_arena_init(&a, NULL);
    char *last = NULL;
    for (size_t size = 1; size < 9000; size = size * 3 + 1) {
        char *p = mk_arena_alloc(&a, size);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % alignof(max_align_t), 0);
        memset(p, 0x5a, size);
        assert_ptr_not_equal(p, last);
        last = p;
    }
    mk_arena_fini(&a);
}

static void arena_large_allocation_keeps_the_current_block(void **state)
{
    (void)state;
    struct mk_arena a;
    mk_arena_init(&a, NULL);
    char *first = mk_arena_alloc(&a, 16);
    assert_non_null(mk_arena_alloc(&a, 100000));
    char *second = mk_arena_alloc(&a, 16);
    assert_ptr_equal(second, first + 16);
    mk_arena_fini(&a);
}

static void arena_blocks_are_reused_from_the_cache(void **state)
{
    (void)state;
    struct mk_arena_cache cache;
    mk_arena_cache_init(&cache, 1);
    struct mk_arena a, b;
    mk_arena_init(&a, &cache);
    mk_arena_init(&b, &cache);
    void *p = mk_arena_alloc(&a, 10);
    assert_non_null(p);
    assert_non_null(mk_arena_alloc(&b, 10));
    mk_arena_fini(&a);
    mk_arena_fini(&b);
    assert_int_equal(cache.n, 1);
    assert_ptr_equal(mk_arena_alloc(&b, 10), p);
    mk_arena_fini(&b);
    mk_arena_cache_fini(&cache);
}

static void arena_first_block_can_be_small(void **state)
{
    struct mk_arena_cache cache;
    struct mk_arena a;
    (void)state;
    mk_arena_cache_init(&cache, 4);
    mk_arena_init(&a, &cache);
    assert_true(mk_arena_set_first_block(&a, 100));
    char *first = mk_arena_alloc(&a, 50), *second = mk_arena_alloc(&a, 40), *third = mk_arena_alloc(&a, 300);
    assert_true(first && second == first + 64 && third);
    memset(third, 1, 300);
    char *fourth = mk_arena_alloc(&a, 100), *fifth = mk_arena_alloc(&a, 2000);
    /* later blocks are small, or as large as their single allocation */
    assert_true(fourth == third + 304 && fifth);
    memset(fifth, 1, 2000);
    mk_arena_fini(&a);
    assert_int_equal(cache.n, 0); /* the cache keeps only blocks of the usual size, and there were none */
    assert_non_null(mk_arena_alloc(&a, 10));
    mk_arena_fini(&a);
    assert_int_equal(cache.n, 1); /* after mk_arena_fini(), new blocks have the usual size again */
    mk_arena_cache_fini(&cache);
}

static void push_digit(void *data)
{
    char *text = data;
    size_t len = strlen(text + 1);
    text[1 + len] = (char)('0' + text[0]++);
}

static void push_letter(void *data)
{
    char *text = data;
    text[1 + strlen(text + 1)] = 'x';
}

static void arena_cleanups_run_in_reverse_order(void **state)
{
    (void)state;
    struct mk_arena a;
    mk_arena_init(&a, NULL);
    char text[8] = {0};
    assert_true(mk_arena_add_cleanup(&a, push_digit, text));
    assert_true(mk_arena_add_cleanup(&a, push_letter, text));
    mk_arena_fini(&a);
    assert_string_equal(text + 1, "x0");
}

static void arena_copies_end_with_nul(void **state)
{
    (void)state;
    struct mk_arena a;
    mk_arena_init(&a, NULL);
    mk_str s = mk_arena_copy(&a, mk_str_of("abcdef", 3));
    assert_str(s, "abc");
    assert_int_equal(s.p[3], 0);
    assert_str(mk_arena_printf(&a, "%d-%s", 7, "seven"), "7-seven");
    assert_null(mk_arena_zalloc(&a, SIZE_MAX / 2, 4));
    mk_arena_fini(&a);
}

static void arena_failure_is_remembered(void **state)
{
    (void)state;
    struct mk_arena a;
    mk_arena_init(&a, NULL);
    assert_non_null(mk_arena_alloc(&a, 10));
    assert_false(a.failed);
    assert_null(mk_arena_zalloc(&a, SIZE_MAX / 2, 3));
    assert_non_null(mk_arena_alloc(&a, 10));
    assert_true(a.failed);
    mk_arena_fini(&a);
    assert_false(a.failed);
    assert_null(mk_arena_alloc(&a, SIZE_MAX));
    assert_true(a.failed);
    mk_arena_fini(&a);
}

static void arena_vector_grows_item_by_item(void **state)
{
    (void)state;
    struct mk_arena a;
    uint64_t *v = NULL;
    size_t n = 0;
    mk_arena_init(&a, NULL);
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t item = i * i;
        assert_true(mk_arena_append(&a, &v, &n, &item, sizeof item));
        assert_int_equal(n, i + 1);
    }
    for (uint64_t i = 0; i < n; i++)
        assert_int_equal(v[i], i * i);
    mk_arena_fini(&a);
}

static void arena_vector_that_cannot_grow_is_unchanged(void **state)
{
    (void)state;
    struct mk_arena a;
    uint32_t item = 1, *v = &item;
    const size_t full = SIZE_MAX / 4 + 1; /* a power of two; doubling it overflows */
    size_t n = full;
    mk_arena_init(&a, NULL);
    assert_false(mk_arena_append(&a, &v, &n, &item, sizeof item));
    assert_ptr_equal(v, &item);
    assert_int_equal(n, full);
    mk_arena_fini(&a);
}

/* A stale pointer into the memory of a finished request must not read data of the next request. */
static void arena_cached_block_is_poisoned_until_reused(void **state)
{
    (void)state;
#ifdef MK_HAS_ASAN
    struct mk_arena_cache cache;
    struct mk_arena a;
    mk_arena_cache_init(&cache, 4);
    mk_arena_init(&a, &cache);
    char *kept = mk_arena_alloc(&a, 100);
    assert_non_null(kept);
    mk_arena_fini(&a);
    assert_int_equal(cache.n, 1);
    assert_int_equal(__asan_address_is_poisoned(kept), 1);
    assert_int_equal(__asan_address_is_poisoned(kept + 99), 1);
    char *again = mk_arena_alloc(&a, MK_ARENA_BLOCK / 2);
    assert_ptr_equal(again, kept);
    assert_null(__asan_region_is_poisoned(again, MK_ARENA_BLOCK / 2));
    mk_arena_fini(&a);
    mk_arena_cache_fini(&cache);
#else
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arena_cached_block_is_poisoned_until_reused),
        cmocka_unit_test(arena_allocations_are_aligned_and_do_not_overlap),
        cmocka_unit_test(arena_large_allocation_keeps_the_current_block),
        cmocka_unit_test(arena_blocks_are_reused_from_the_cache),
        cmocka_unit_test(arena_first_block_can_be_small),
        cmocka_unit_test(arena_cleanups_run_in_reverse_order),
        cmocka_unit_test(arena_copies_end_with_nul),
        cmocka_unit_test(arena_failure_is_remembered),
        cmocka_unit_test(arena_vector_grows_item_by_item),
        cmocka_unit_test(arena_vector_that_cannot_grow_is_unchanged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

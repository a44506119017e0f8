/* SPDX-License-Identifier: Apache-2.0 */
/* Handler memory: marks, rewinding, and the chunks that a worker keeps for the next handler. */
#include "service/memory.h"

#include "unit/test.h"

enum { CHUNK = 4096 - 64, LARGE = 3 * CHUNK };

static struct duda_worker_ctx worker_ctx;
static struct duda_ctx d;
static char order[8];

static void setup(void)
{
    worker_ctx = (struct duda_worker_ctx){0};
    d = (struct duda_ctx){.worker_ctx = &worker_ctx};
    memset(order, 0, sizeof order);
}

static void teardown(void)
{
    duda_memory_free_chunks(&d);
    duda_memory_free_cache(&worker_ctx);
}

static char *fill(size_t size, char c)
{
    char *p = duda_alloc(&d, size);
    assert_non_null(p);
    memset(p, c, size);
    return p;
}

static void memory_rewind_frees_later_allocations(void **state)
{
    (void)state;
    assert_int_equal(duda_arena_mark(&d), 0);
    char *kept = fill(100, 'k');
    size_t mark = duda_arena_mark(&d);
    assert_true(mark >= 100);
    char *next = fill(100, 'n');
    duda_arena_rewind(&d, mark);
    assert_int_equal(duda_arena_mark(&d), mark);
    assert_ptr_equal(duda_alloc(&d, 100), next);
    assert_int_equal(kept[99], 'k');
}

/* A mark in the second chunk includes the bytes of the first. */
static void memory_rewind_in_later_chunk_keeps_earlier_allocations(void **state)
{
    (void)state;
    char *first = fill(CHUNK - 32, '1'), *second = fill(64, '2');
    size_t mark = duda_arena_mark(&d);
    char *third = fill(64, '3');
    duda_arena_rewind(&d, mark);
    assert_int_equal(duda_arena_mark(&d), mark);
    assert_ptr_equal(fill(64, '4'), third);
    assert_int_equal(second[63], '2');
    assert_int_equal(first[CHUNK - 33], '1');
    duda_arena_rewind(&d, mark);
    (void)fill(LARGE, '5');
    (void)fill(LARGE, '6');
    duda_arena_rewind(&d, mark);
    assert_int_equal(duda_arena_mark(&d), mark);
    assert_int_equal(second[63], '2');
}

static void memory_rewind_beyond_end_frees_nothing(void **state)
{
    (void)state;
    char *a = fill(64, 'a');
    size_t mark = duda_arena_mark(&d);
    duda_arena_rewind(&d, mark + 1000);
    assert_int_equal(duda_arena_mark(&d), mark);
    assert_int_equal(a[63], 'a');
}

/* A handler that waits for a long time holds no unused memory: the next handler can use the chunk. */
static void memory_full_rewind_returns_chunk_to_worker(void **state)
{
    (void)state;
    size_t mark = duda_arena_mark(&d);
    (void)fill(64, 'a');
    (void)fill(LARGE, 'b');
    duda_arena_rewind(&d, mark);
    assert_null(d.chunk);
    assert_int_equal(worker_ctx.n_chunks, 1); /* the worker has freed the large chunk */
    (void)fill(64, 'c');
    assert_int_equal(worker_ctx.n_chunks, 0);
}

static void memory_worker_keeps_bounded_number_of_chunks(void **state)
{
    (void)state;
    for (int i = 0; i < 300; i++)
        (void)fill(CHUNK, 'x');
    duda_memory_free_chunks(&d);
    assert_int_equal(worker_ctx.n_chunks, 256);
}

static void memory_worker_keeps_bounded_number_of_blocks(void **state)
{
    void *all[300], *large = duda_memory_acquire_block(&worker_ctx, 1000);
    (void)state;
    for (size_t i = 0; i < MK_LEN(all); i++)
        all[i] = duda_memory_acquire_block(&worker_ctx, 1 + i);
    for (size_t i = 0; i < MK_LEN(all); i++) {
        assert_non_null(all[i]);
        duda_memory_release_block(&worker_ctx, all[i]);
    }
    assert_int_equal(worker_ctx.n_blocks, 256);
    duda_memory_release_block(&worker_ctx, large);
    assert_int_equal(worker_ctx.n_blocks, 256);
    void *again = duda_memory_acquire_block(&worker_ctx, 480);
    assert_int_equal(worker_ctx.n_blocks, 255);
    memset(again, 'x', 480);
    duda_memory_release_block(&worker_ctx, again);
}

static void memory_is_aligned_and_sizes_do_not_overflow(void **state)
{
    (void)state;
    (void)fill(1, 'a');
    assert_int_equal((uintptr_t)duda_alloc(&d, 1) % _Alignof(max_align_t), 0);
    assert_null(duda_alloc(&d, SIZE_MAX));
    assert_null(duda_alloc(&d, SIZE_MAX / 2 + 1));
    assert_null(duda_strdup(&d, mk_str_of("x", SIZE_MAX)).p);
    assert_null(duda_strdup(&d, mk_str_of("x", SIZE_MAX / 2)).p);
}

static void memory_strings_are_nul_terminated(void **state)
{
    (void)state;
    mk_str copy = duda_strdup(&d, MK_STR("abc")), empty = duda_strdup(&d, MK_STR_NULL),
           text = duda_sprintf(&d, "%d-%s", 7, "x");
    assert_string_equal(copy.p, "abc");
    assert_int_equal(copy.len, 3);
    assert_string_equal(empty.p, "");
    assert_string_equal(text.p, "7-x");
    assert_int_equal(text.len, 3);
}

static void note(void *ctx)
{
    const char *c = ctx;
    order[strlen(order)] = *c;
}

static void memory_cleanups_run_once_in_reverse_order(void **state)
{
    (void)state;
    size_t mark = duda_arena_mark(&d);
    assert_int_equal(duda_defer(&d, note, (void *)(uintptr_t)("a")), 0);
    (void)fill(64, 'x');
    assert_int_equal(duda_defer(&d, note, (void *)(uintptr_t)("b")), 0);
    duda_arena_rewind(&d, mark);
    assert_string_equal(order, "");
    duda_memory_run_cleanups(&d);
    assert_string_equal(order, "ba");
    duda_memory_run_cleanups(&d);
    assert_string_equal(order, "ba");
}

static void memory_undeferred_cleanup_does_not_run(void **state)
{
    (void)state;
    char a[] = "a", b[] = "b", c[] = "c";
    assert_int_equal(duda_defer(&d, note, a), 0);
    assert_int_equal(duda_defer(&d, note, b), 0);
    assert_int_equal(duda_defer(&d, note, c), 0);
    assert_true(duda_undefer(&d, note, b));
    assert_false(duda_undefer(&d, note, b));
    duda_memory_run_cleanups(&d);
    assert_string_equal(order, "ca");
    assert_false(duda_undefer(&d, note, a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(memory_rewind_frees_later_allocations, setup, teardown),
        fixture_test(memory_rewind_in_later_chunk_keeps_earlier_allocations, setup, teardown),
        fixture_test(memory_rewind_beyond_end_frees_nothing, setup, teardown),
        fixture_test(memory_full_rewind_returns_chunk_to_worker, setup, teardown),
        fixture_test(memory_worker_keeps_bounded_number_of_chunks, setup, teardown),
        fixture_test(memory_worker_keeps_bounded_number_of_blocks, setup, teardown),
        fixture_test(memory_is_aligned_and_sizes_do_not_overflow, setup, teardown),
        fixture_test(memory_strings_are_nul_terminated, setup, teardown),
        fixture_test(memory_cleanups_run_once_in_reverse_order, setup, teardown),
        fixture_test(memory_undeferred_cleanup_does_not_run, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

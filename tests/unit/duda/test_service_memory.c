/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of handlers: marks, what they give back, and what a worker keeps for the next handler. */
#include "service/memory.h"

#include <errno.h>

#include "unit/test.h"

enum { CHUNK = 4096 - 64, LARGE = 3 * CHUNK };

static struct duda_worker_ctx worker_ctx;
static struct duda_ctx d;
static char order[8];

static int set_up(void **state)
{
    (void)state;
    worker_ctx = (struct duda_worker_ctx){0};
    d = (struct duda_ctx){.worker_ctx = &worker_ctx};
    memset(order, 0, sizeof order);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    duda_memory_free_chunks(&d);
    duda_memory_free_cache(&worker_ctx);
    return 0;
}

static char *fill(size_t size, char c)
{
    char *p = duda_alloc(&d, size);
    assert_non_null(p);
    memset(p, c, size);
    return p;
}

static void release_to_a_mark_gives_back_what_follows_it(void **state)
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

/* A mark in the second chunk counts the bytes of the first one. */
static void release_in_a_later_chunk_keeps_what_is_ahead_of_the_mark(void **state)
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

static void release_to_a_mark_ahead_gives_back_nothing(void **state)
{
    (void)state;
    char *a = fill(64, 'a');
    size_t mark = duda_arena_mark(&d);
    duda_arena_rewind(&d, mark + 1000);
    assert_int_equal(duda_arena_mark(&d), mark);
    assert_int_equal(a[63], 'a');
}

/* A handler that waits for long owns nothing that it does not use: the chunk is there for the next one. */
static void release_of_all_leaves_a_chunk_to_the_worker(void **state)
{
    (void)state;
    size_t mark = duda_arena_mark(&d);
    (void)fill(64, 'a');
    (void)fill(LARGE, 'b');
    duda_arena_rewind(&d, mark);
    assert_null(d.chunk);
    assert_int_equal(worker_ctx.n_chunks, 1); /* the large one is freed */
    (void)fill(64, 'c');
    assert_int_equal(worker_ctx.n_chunks, 0);
}

static void worker_keeps_a_bounded_number_of_chunks(void **state)
{
    (void)state;
    for (int i = 0; i < 300; i++)
        (void)fill(CHUNK, 'x');
    duda_memory_free_chunks(&d);
    assert_int_equal(worker_ctx.n_chunks, 256);
}

static void worker_keeps_a_bounded_number_of_handlers(void **state)
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

static void copies_and_texts_end_in_nul(void **state)
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

static void duties_run_once_the_last_one_first(void **state)
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

static void duty_that_is_undeferred_does_not_run(void **state)
{
    (void)state;
    void *a = (void *)(uintptr_t) "a", *b = (void *)(uintptr_t) "b", *c = (void *)(uintptr_t) "c";
    assert_int_equal(duda_defer(&d, note, a), 0);
    assert_int_equal(duda_defer(&d, note, b), 0);
    assert_int_equal(duda_defer(&d, note, c), 0);
    assert_true(duda_undefer(&d, note, b));
    assert_false(duda_undefer(&d, note, b));
    duda_memory_run_cleanups(&d);
    assert_string_equal(order, "ca");
    assert_false(duda_undefer(&d, note, a));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(release_to_a_mark_gives_back_what_follows_it),
        TEST(release_in_a_later_chunk_keeps_what_is_ahead_of_the_mark),
        TEST(release_to_a_mark_ahead_gives_back_nothing),
        TEST(release_of_all_leaves_a_chunk_to_the_worker),
        TEST(worker_keeps_a_bounded_number_of_chunks),
        TEST(worker_keeps_a_bounded_number_of_handlers),
        TEST(memory_is_aligned_and_sizes_do_not_overflow),
        TEST(copies_and_texts_end_in_nul),
        TEST(duties_run_once_the_last_one_first),
        TEST(duty_that_is_undeferred_does_not_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

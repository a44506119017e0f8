/* SPDX-License-Identifier: Apache-2.0 */
/* Included once by a test_*_oom.c: allocation n fails, for every n.
 *
 * The build links these tests with --wrap, so that every call to mk_mem_* in the code under test and every
 * allocation from an arena comes here: most arena allocations need no new memory, but any of them may. */
#ifndef MK_UNIT_OOM_H
#define MK_UNIT_OOM_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/mem.h"
#include "unit/test.h"

void *__real_mk_mem_alloc(size_t size);
void *__real_mk_mem_zalloc(size_t n, size_t size);
void *__real_mk_mem_realloc(void *old, size_t size);
void __real_mk_mem_free(void *p);
void *__wrap_mk_mem_alloc(size_t size);
void *__wrap_mk_mem_zalloc(size_t n, size_t size);
void *__wrap_mk_mem_realloc(void *old, size_t size);
void __wrap_mk_mem_free(void *p);

void *__real_mk_arena_alloc(struct mk_arena *a, size_t size);
void *__real_mk_arena_zalloc(struct mk_arena *a, size_t n, size_t size);
mk_str __real_mk_arena_copy(struct mk_arena *a, mk_str s);
bool __real_mk_arena_add_cleanup(struct mk_arena *a, void (*fn)(void *data), void *data);
void *__wrap_mk_arena_alloc(struct mk_arena *a, size_t size);
void *__wrap_mk_arena_zalloc(struct mk_arena *a, size_t n, size_t size);
mk_str __wrap_mk_arena_copy(struct mk_arena *a, mk_str s);
mk_str __wrap_mk_arena_printf(struct mk_arena *a, const char *fmt, ...) MK_PRINTF(2, 3);
bool __wrap_mk_arena_add_cleanup(struct mk_arena *a, void (*fn)(void *data), void *data);

static struct {
    size_t fail_at; /* index of the failing allocation, from 1; 0: none */
    bool and_after; /* all later allocations also fail */
    size_t n_allocs;
    size_t n_failed;
    size_t n_live;
} oom;

static bool oom_now(void)
{
    oom.n_allocs++;
    bool now = oom.fail_at && (oom.n_allocs == oom.fail_at || (oom.and_after && oom.n_allocs > oom.fail_at));
    oom.n_failed += now;
    return now;
}

static void *oom_count(void *p)
{
    oom.n_live += p != NULL;
    return p;
}

void *__wrap_mk_mem_alloc(size_t size)
{
    return oom_now() ? NULL : oom_count(__real_mk_mem_alloc(size));
}

void *__wrap_mk_mem_zalloc(size_t n, size_t size)
{
    return oom_now() ? NULL : oom_count(__real_mk_mem_zalloc(n, size));
}

void *__wrap_mk_mem_realloc(void *old, size_t size)
{
    if (oom_now())
        return NULL;
    void *p = __real_mk_mem_realloc(old, size);
    oom.n_live += p && !old;
    return p;
}

void __wrap_mk_mem_free(void *p)
{
    oom.n_live -= p != NULL;
    __real_mk_mem_free(p);
}

static bool arena_fails(struct mk_arena *a)
{
    bool now = oom_now();
    a->failed |= now;
    return now;
}

void *__wrap_mk_arena_alloc(struct mk_arena *a, size_t size)
{
    return arena_fails(a) ? NULL : __real_mk_arena_alloc(a, size);
}

void *__wrap_mk_arena_zalloc(struct mk_arena *a, size_t n, size_t size)
{
    return arena_fails(a) ? NULL : __real_mk_arena_zalloc(a, n, size);
}

mk_str __wrap_mk_arena_copy(struct mk_arena *a, mk_str s)
{
    return arena_fails(a) ? MK_STR_NULL : __real_mk_arena_copy(a, s);
}

mk_str __wrap_mk_arena_printf(struct mk_arena *a, const char *fmt, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, fmt);
    int len = vasprintf(&text, fmt, args);
    va_end(args);
    mk_str copy = arena_fails(a) || len < 0 ? MK_STR_NULL : __real_mk_arena_copy(a, mk_str_from_c(text));
    free(text);
    return copy;
}

bool __wrap_mk_arena_add_cleanup(struct mk_arena *a, void (*fn)(void *data), void *data)
{
    return !arena_fails(a) && __real_mk_arena_add_cleanup(a, fn, data);
}

/* The next allocation fails; later allocations succeed. */
static inline void oom_at_next_allocation(void)
{
    oom.n_allocs = 0;
    oom.fail_at = 1;
    oom.and_after = false;
}

/* Calls `body` with the first allocation failing, then the second, and so on until it needs fewer; each time
 * with a single failure and with all later allocations failing. body() must free what it allocated, and
 * returns whether all of its calls succeeded, which must be true exactly if no allocation failed. */
static inline void oom_at_each_allocation(bool (*body)(void))
{
    for (int and_after = 0; and_after < 2; and_after++) {
        for (size_t n = 1;; n++) {
            oom.fail_at = n;
            oom.and_after = and_after;
            oom.n_allocs = oom.n_failed = oom.n_live = 0;
            bool all_well = body();
            oom.fail_at = 0;
            if (oom.n_live)
                fail_msg("%zu pieces were not given back after allocation %zu failed", oom.n_live, n);
            if (all_well != (oom.n_failed == 0))
                fail_msg("allocation %zu failed and the caller was told \"%s\"", n,
                         all_well ? "fine" : "failed");
            if (all_well)
                break;
        }
        assert_true(oom.n_allocs > 0);
    }
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/platform.h"

#include <malloc.h>
#include <monkey/version.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/mem.h"

static void print_failed_assertion(const char *cond, const char *file, int line)
{
    fprintf(stderr, "monkey: bug: assertion failed: %s (%s:%d)\n", cond, file, line);
}

__attribute__((weak)) const struct mk_platform mk_platform = {
    .owns_process = true,
    .resize = realloc,
    .zalloc = calloc,
    .free = free,
    .on_bug = print_failed_assertion,
};

/* ---- Assertions ---- */

void mk_platform_assert_failed(const char *cond, const char *file, int line)
{
    mk_platform.on_bug(cond, file, line);
    abort();
}

/* ---- Version ---- */

const char *mk_version(void)
{
    return MONKEY_VERSION;
}

/* ---- Heap ---- */

void *mk_mem_alloc(size_t size)
{
    return mk_platform.resize(NULL, size ? size : 1);
}

void *mk_mem_zalloc(size_t n, size_t size)
{
    return mk_platform.zalloc(n ? n : 1, size ? size : 1);
}

void *mk_mem_realloc(void *old, size_t size)
{
    return mk_platform.resize(old, size ? size : 1);
}

#ifdef __GLIBC__
void mk_mem_trim(void)
{
    (void)malloc_trim(0);
}
#else
void mk_mem_trim(void)
{
}
#endif

void mk_mem_free(void *p)
{
    if (p)
        mk_platform.free(p);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Simulates a cold page cache: whether the kernel still holds a page depends on the machine, its file system
 * and its read-ahead. Replaces two functions of os/file. */
#ifndef MK_UNIT_WRAP_PAGE_CACHE_H
#define MK_UNIT_WRAP_PAGE_CACHE_H

#include <errno.h>

#include "os/file.h"

ssize_t __real_mk_file_read_nowait(int fd, char *buffer, size_t cap, uint64_t offset);
ssize_t __wrap_mk_file_read_nowait(int fd, char *buffer, size_t cap, uint64_t offset);
bool __real_mk_file_is_cached(int fd, uint64_t offset, uint64_t len);
bool __wrap_mk_file_is_cached(int fd, uint64_t offset, uint64_t len);

static unsigned page_cache_misses;

/* The next non-blocking read finds nothing in the page cache. */
static void page_cache_miss_next(void)
{
    page_cache_misses = 1;
}

ssize_t __wrap_mk_file_read_nowait(int fd, char *buffer, size_t cap, uint64_t offset)
{
    if (page_cache_misses > 0) {
        page_cache_misses--;
        return -EAGAIN;
    }
    return __real_mk_file_read_nowait(fd, buffer, cap, offset);
}

bool __wrap_mk_file_is_cached(int fd, uint64_t offset, uint64_t len)
{
    if (page_cache_misses > 0) {
        page_cache_misses--;
        return false;
    }
    return __real_mk_file_is_cached(fd, offset, len);
}

#endif

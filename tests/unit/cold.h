/* SPDX-License-Identifier: Apache-2.0 */
/* Simulates a cold page cache: whether the kernel still holds a page depends on the machine, its file system
 * and its read-ahead. tests/unit/CMakeLists.txt wraps these two functions of os/file. */
#ifndef UNIT_COLD_H
#define UNIT_COLD_H

#include <errno.h>

#include "os/file.h"

ssize_t __real_mk_file_read_nowait(int fd, char *room, size_t cap, uint64_t offset);
ssize_t __wrap_mk_file_read_nowait(int fd, char *room, size_t cap, uint64_t offset);
bool __real_mk_file_is_cached(int fd, uint64_t offset, uint64_t len);
bool __wrap_mk_file_is_cached(int fd, uint64_t offset, uint64_t len);

static unsigned cold_left;

/* The next non-blocking read finds nothing in the page cache. */
static void cold_begin(void)
{
    cold_left = 1;
}

ssize_t __wrap_mk_file_read_nowait(int fd, char *room, size_t cap, uint64_t offset)
{
    if (cold_left > 0) {
        cold_left--;
        return -EAGAIN;
    }
    return __real_mk_file_read_nowait(fd, room, cap, offset);
}

bool __wrap_mk_file_is_cached(int fd, uint64_t offset, uint64_t len)
{
    if (cold_left > 0) {
        cold_left--;
        return false;
    }
    return __real_mk_file_is_cached(fd, offset, len);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the folder MONKEY_OLDFS behave like NFS or FAT: without unnamed files (O_TMPFILE) and, if the test
 * says so, without link(). */
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>

#include "fault/fault.h"

enum {
    REFUSED, /* number of refused unnamed files */
    LINKS,   /* 1: link() also fails */
};

static bool is_there(const char *path)
{
    const char *folder = getenv("MONKEY_OLDFS");
    return fault && folder && strncmp(path, folder, strlen(folder)) == 0;
}

static int refuse(int error)
{
    errno = error;
    return -1;
}

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    int mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, int) : 0;
    va_end(args);
    if (is_there(path) && (flags & O_TMPFILE) == O_TMPFILE) {
        atomic_fetch_add(&fault[REFUSED], 1);
        return refuse(EOPNOTSUPP);
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int link(const char *from, const char *to)
{
    if (is_there(to) && atomic_load(&fault[LINKS]))
        return refuse(EPERM);
    return (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

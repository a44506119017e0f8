/* SPDX-License-Identifier: Apache-2.0 */
/* Opening what a stranger names, beneath a folder that we chose, without ever leaving it by mistake. */
#ifndef MK_OS_FILE_H
#define MK_OS_FILE_H

#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"

enum mk_symlink {
    MK_SYMLINK_OFF,   /* no link is followed, wherever it stands in the path */
    MK_SYMLINK_OWNER, /* a link is followed when what it leads to belongs to the link's owner */
    MK_SYMLINK_ON,    /* links are followed, out of the folder too */
};

struct mk_file_how {
    enum mk_symlink symlink;
    bool no_openat2; /* walk the path ourselves, as on kernels before 5.6; for tests */
};

/* A folder to look beneath; its descriptor serves as `root` below. */
mk_err mk_file_open_root(const char *path, int *fd) MK_MUST_USE;

/* The same for a folder in another one that somebody else owns: no link on the way from `base` to base/path
 * is followed, and it must belong to `owner` (else -EPERM). `path` is relative, without `.` and `..`. */
mk_err mk_file_open_root_of(const char *base, const char *path, uid_t owner, int *fd) MK_MUST_USE;

/* Opens root/path for reading, never waiting (a FIFO does not block). `path` is relative, NUL-terminated and
 * without
 * `.` and `..` parts; empty means the root itself. -ELOOP or -EXDEV: a link that may not be followed. */
mk_err mk_file_open_beneath(int root, const char *path, const struct mk_file_how *how, int *fd) MK_MUST_USE;

/* Reads what is in memory already. -EAGAIN: a disk would have to be waited for; -EOPNOTSUPP: it cannot be
 * told. */
ssize_t mk_file_read_nowait(int fd, char *room, size_t cap, uint64_t offset);

/* Are these bytes in memory? A few of them are asked for, without waiting; true also where that cannot be
 * told. */
bool mk_file_is_warm(int fd, uint64_t offset, uint64_t len);

/* The whole of a small file, at most `out`'s room; -EFBIG when it is larger. */
mk_err mk_file_read_all(const char *path, struct mk_buf *out) MK_MUST_USE;

#endif

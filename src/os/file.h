/* SPDX-License-Identifier: Apache-2.0 */
/* Opens untrusted paths beneath a trusted folder. No path can leave the folder except through a symbolic link
 * that the settings allow. */
#ifndef MK_OS_FILE_H
#define MK_OS_FILE_H

#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"

enum mk_symlink {
    MK_SYMLINK_OFF,   /* follow no link, anywhere in the path */
    MK_SYMLINK_OWNER, /* follow a link if its owner also owns its target */
    MK_SYMLINK_ON,    /* follow all links, even if they lead out of the folder */
};

struct mk_file_open_how {
    enum mk_symlink symlink;
    bool no_openat2; /* walk the path in user space, as on kernels before 5.6; for tests */
};

/* Opens a folder to be used as `root` below. */
mk_err mk_file_open_root(const char *path, int *fd) MK_MUST_USE;

/* Opens a folder inside a folder that another user owns: follows no link between `base` and base/path, and
 * the folder must belong to `owner` (else -EPERM). `path` is relative, without `.` and `..`. */
mk_err mk_file_open_owned_root(const char *base, const char *path, uid_t owner, int *fd) MK_MUST_USE;

/* Opens root/path for reading, without blocking, not even on a FIFO. `path` is relative, NUL-terminated
 * and without `.` and `..` parts; empty means the root itself. -ELOOP or -EXDEV: a link that may not be
 * followed. */
mk_err mk_file_open_beneath(int root, const char *path, const struct mk_file_open_how *how,
                            int *fd) MK_MUST_USE;

/* Reads from the page cache only. -EAGAIN: the read would wait for the disk; -EOPNOTSUPP: the system
 * cannot tell. */
ssize_t mk_file_read_nowait(int fd, char *buf, size_t cap, uint64_t offset);

/* Are these bytes in the page cache? Probes a few of them without waiting; true also when the system
 * cannot tell. */
bool mk_file_is_cached(int fd, uint64_t offset, uint64_t len);

/* Reads a whole small file, up to the capacity of `out`; -EFBIG if it is larger. */
mk_err mk_file_read_all(const char *path, struct mk_buf *out) MK_MUST_USE;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "os/file.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "os/fd.h"

enum { READ_FLAGS = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, LINKS_MAX = 16 };

mk_err mk_file_open_root(const char *path, int *fd)
{
    *fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return *fd < 0 ? mk_err_last() : 0;
}

static int call_openat2(int root, const char *path, uint64_t resolve)
{
    /* libc adds O_LARGEFILE to its own calls where file sizes need more than 32 bits; a raw system call
     * must do it itself. */
    struct open_how how = {.flags = READ_FLAGS | O_LARGEFILE, .resolve = resolve};
    for (int tries = 0; tries < 8; tries++) {
        long fd = syscall(SYS_openat2, root, path, &how, sizeof how);
        if (fd >= 0 || errno != EAGAIN) /* EAGAIN: a rename happened during the lookup */
            return fd < 0 ? mk_err_last() : (int)fd;
    }
    return -EAGAIN;
}

/* State of a walk along a path in user space, for owner checks and kernels without openat2. A walk opens one
 * component at a time. */
struct walk {
    int dir; /* the current folder; owned */
    bool owner;
    int links; /* number of links followed so far */
};

static mk_err walk_path(struct walk *w, const char *path, int last_flags);

static mk_err set_current_fd(struct walk *w, int fd)
{
    mk_fd_close(&w->dir);
    w->dir = fd;
    return 0;
}

static mk_err follow_link(struct walk *w, int link, const struct stat *link_st, int flags)
{
    char target[PATH_MAX];
    ssize_t len = readlinkat(link, "", target, sizeof target - 1);
    if (len < 0)
        return mk_err_last();
    target[len] = '\0';
    if (++w->links > LINKS_MAX)
        return -ELOOP;
    mk_err e = target[0] == '/' ? set_current_fd(w, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)) : 0;
    if (!e)
        e = walk_path(w, target, flags);
    struct stat st;
    if (!e && fstat(w->dir, &st) < 0)
        e = mk_err_last();
    if (!e && st.st_uid != link_st->st_uid)
        e = -ELOOP;
    return e;
}

static mk_err walk_component(struct walk *w, const char *name, int flags)
{
    int fd = openat(w->dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    if (fd < 0)
        return mk_err_last();
    mk_err e = fstat(fd, &st) < 0 ? mk_err_last() : 0;
    if (!e && S_ISLNK(st.st_mode)) {
        e = w->owner ? follow_link(w, fd, &st, flags) : -ELOOP;
        mk_fd_close(&fd);
        return e;
    }
    if (!e && flags != O_PATH) {
        int real = openat(w->dir, name, flags | O_NOFOLLOW);
        e = real < 0 ? mk_err_last() : 0;
        mk_fd_close(&fd);
        fd = real;
    }
    if (e) {
        mk_fd_close(&fd);
        return e;
    }
    return set_current_fd(w, fd);
}

static mk_err walk_path(struct walk *w, const char *path, int last_flags)
{
    while (*path) {
        char name[NAME_MAX + 1];
        size_t len = strcspn(path, "/");
        if (len > NAME_MAX)
            return -ENAMETOOLONG;
        memcpy(name, path, len);
        name[len] = '\0';
        path += len;
        bool more = *path == '/';
        path += strspn(path, "/");
        if (len == 0)
            continue;
        if (more && !*path)
            last_flags |= O_DIRECTORY;
        mk_err e = walk_component(w, name, *path ? O_PATH : last_flags);
        if (e)
            return e;
    }
    return 0;
}

static mk_err open_by_walking(int root, const char *path, bool owner, int *fd)
{
    struct walk w = {.dir = fcntl(root, F_DUPFD_CLOEXEC, 0), .owner = owner};
    if (w.dir < 0)
        return mk_err_last();
    mk_err e = walk_path(&w, path, READ_FLAGS);
    if (e)
        mk_fd_close(&w.dir);
    *fd = w.dir;
    return e;
}

static mk_err open_following_links(int root, const char *path, int *fd)
{
    *fd = openat(root, path, READ_FLAGS);
    return *fd < 0 ? mk_err_last() : 0;
}

mk_err mk_file_open_owned_root(const char *base, const char *path, uid_t owner, int *fd)
{
    struct walk w = {.dir = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC)};
    struct stat st;
    if (w.dir < 0)
        return mk_err_last();
    mk_err e = walk_path(&w, path, O_PATH | O_DIRECTORY);
    if (!e && fstat(w.dir, &st) < 0)
        e = mk_err_last();
    if (!e && st.st_uid != owner)
        e = -EPERM;
    if (e)
        mk_fd_close(&w.dir);
    *fd = w.dir;
    return e;
}

mk_err mk_file_open_beneath(int root, const char *path, const struct mk_file_open_how *how, int *fd)
{
    if (!*path || how->symlink == MK_SYMLINK_ON)
        return open_following_links(root, *path ? path : ".", fd);
    if (how->symlink == MK_SYMLINK_OWNER)
        return open_by_walking(root, path, true, fd);
    if (how->no_openat2)
        return open_by_walking(root, path, false, fd);
    *fd = call_openat2(root, path, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
    if (*fd == -ENOSYS || *fd == -EPERM) /* an old kernel, or a container that blocks the call */
        return open_by_walking(root, path, false, fd);
    return *fd < 0 ? *fd : 0;
}

ssize_t mk_file_read_nowait(int fd, char *buf, size_t cap, uint64_t offset)
{
    struct iovec v = {.iov_base = buf, .iov_len = cap};
    /* Uses the raw system call, because not every libc has a wrapper. The call takes the offset as two longs;
     * the second long matters only where a long has 32 bits. */
    long n = syscall(SYS_preadv2, fd, &v, 1, (long)offset, sizeof(long) < 8 ? (long)(offset >> 31 >> 1) : 0,
                     RWF_NOWAIT);
    if (n < 0 && errno == ENOSYS) /* an old kernel, an emulator, or a container that blocks the call */
        return -EOPNOTSUPP;
    return n < 0 ? mk_err_last() : n;
}

static bool is_byte_cached(int fd, uint64_t offset)
{
    char byte;
    return mk_file_read_nowait(fd, &byte, 1, offset) != -EAGAIN;
}

bool mk_file_is_cached(int fd, uint64_t offset, uint64_t len)
{
    return len == 0 || (is_byte_cached(fd, offset) && is_byte_cached(fd, offset + len / 2) &&
                        is_byte_cached(fd, offset + len - 1));
}

mk_err mk_file_read_all(const char *path, struct mk_buf *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return mk_err_last();
    mk_err e = 0;
    for (;;) {
        char piece[4096];
        ssize_t n = read(fd, piece, sizeof piece);
        if (n < 0)
            e = mk_err_last();
        if (n <= 0)
            break;
        mk_buf_add(out, mk_str_of(piece, (size_t)n));
        if (out->failed) {
            e = out->len + (size_t)n > out->max ? -EFBIG : -ENOMEM;
            break;
        }
    }
    mk_fd_close(&fd);
    return e;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "os/pidfile.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/num.h"
#include "os/fd.h"

static bool is_same_file_as(int fd, const char *path)
{
    struct stat ours, there;
    return fstat(fd, &ours) == 0 && lstat(path, &there) == 0 && ours.st_ino == there.st_ino &&
           ours.st_dev == there.st_dev;
}

/* Opens and locks the file. -EAGAIN: the holder of the lock removed the file before we got the lock, so we
 * locked an unlinked file. */
static mk_err open_and_lock(const char *path, int *out)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return mk_err_last();
    /* A POSIX lock belongs to this process alone: workers, which may outlive it, do not inherit the lock. */
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    mk_err e = fcntl(fd, F_SETLK, &all) < 0 ? -EBUSY : is_same_file_as(fd, path) ? 0 : -EAGAIN;
    if (e)
        mk_fd_close(&fd);
    *out = fd;
    return e;
}

mk_err mk_pidfile_acquire(const char *path, int *out)
{
    mk_err e = -EAGAIN;
    for (int tries = 0; e == -EAGAIN && tries < 10; tries++)
        e = open_and_lock(path, out);
    if (e)
        return e;
    char digits[MK_NUM_MAX + 1];
    size_t len = mk_num_write(digits, (uint64_t)getpid());
    digits[len++] = '\n';
    e = ftruncate(*out, 0) < 0 ? mk_err_last() : mk_fd_write_all(*out, digits, len);
    if (e)
        mk_fd_close(out);
    return e;
}

void mk_pidfile_release(const char *path, int *fd)
{
    char digits[MK_NUM_MAX + 2];
    ssize_t n = *fd < 0 ? -1 : pread(*fd, digits, sizeof digits, 0);
    uint64_t pid;
    if (n > 1 && mk_num_parse(mk_str_of(digits, (size_t)n - 1), &pid) && pid == (uint64_t)getpid())
        unlink(path);
    mk_fd_close(fd);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "os/spool.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "os/fd.h"

void mk_spool_init(struct mk_spool *s, size_t max)
{
    *s = (struct mk_spool){.kept = mk_buf_growing(max), .fd = -1};
}

void mk_spool_fini(struct mk_spool *s)
{
    mk_buf_free(&s->kept);
    mk_fd_close(&s->fd);
}

/* ---- Writing ---- */

int mk_spool_open_tmpfile(const char *folder)
{
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    return fd < 0 ? mk_err_last() : fd;
}

static bool is_out_of_space(mk_err e)
{
    return e == -EDQUOT || e == -EFBIG;
}

static mk_err pwrite_all(int fd, mk_str rest, uint64_t at)
{
    while (rest.len) {
        ssize_t n = pwrite(fd, rest.p, rest.len, (off_t)at);
        mk_err e = n < 0 ? mk_err_last() : 0;
        if (e && e != -EINTR)
            return is_out_of_space(e) ? -ENOSPC : e;
        if (e)
            continue;
        rest = mk_str_skip(rest, (size_t)n);
        at += (uint64_t)n;
    }
    return 0;
}

mk_err mk_spool_write_to_file(struct mk_spool *s, const char *folder)
{
    if (s->fd < 0) {
        int fd = mk_spool_open_tmpfile(folder);
        if (fd < 0)
            return is_out_of_space(fd) ? -ENOSPC : fd;
        s->fd = fd;
    }
    mk_err e = pwrite_all(s->fd, mk_buf_str(&s->kept), s->stored);
    if (e)
        return e;
    s->stored += s->kept.len;
    mk_buf_clear(&s->kept);
    return 0;
}

/* ---- Reading ---- */

uint64_t mk_spool_length(const struct mk_spool *s)
{
    return s->stored + s->kept.len;
}

static ssize_t read_spooled_file(const struct mk_spool *s, char *buf, size_t cap, uint64_t at)
{
    ssize_t n;
    do
        n = pread(s->fd, buf, mk_min(cap, s->stored - at), (off_t)at);
    while (n < 0 && errno == EINTR);
    return n < 0 ? mk_err_last() : n;
}

ssize_t mk_spool_read(const struct mk_spool *s, char *buf, size_t cap, uint64_t at)
{
    if (at < s->stored)
        return read_spooled_file(s, buf, cap, at);
    if (at - s->stored >= s->kept.len)
        return 0;
    mk_str rest = mk_str_first(mk_str_skip(mk_buf_str(&s->kept), (size_t)(at - s->stored)), cap);
    memcpy(buf, rest.p, rest.len);
    return (ssize_t)rest.len;
}

static mk_err open_memfd(struct mk_spool *s)
{
    int fd = memfd_create("monkey-content", MFD_CLOEXEC);
    if (fd < 0)
        return mk_err_last();
    s->fd = fd;
    return 0;
}

int mk_spool_fd(struct mk_spool *s)
{
    bool is_new = s->fd < 0;
    mk_err e = is_new ? open_memfd(s) : 0;
    if (!e && s->kept.len)
        e = mk_spool_write_to_file(s, "");
    if (e && is_new)
        mk_fd_close(&s->fd); /* `kept` still has all bytes */
    if (!e && lseek(s->fd, 0, SEEK_SET) < 0)
        e = mk_err_last();
    return e ? e : s->fd;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "upload_store.h"

#include <errno.h>
#include <fcntl.h>
#include <monkey/buf.h>
#include <monkey/text.h>
#include <monkey/utf8.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BLOCK = 65536, MODE = 0644, NO_REPLACE = 1 /* RENAME_NOREPLACE, which musl does not declare */ };

bool dirlisting_upload_is_name(mk_str name)
{
    if (!name.len || name.len > UPLOAD_NAME_MAX || name.p[0] == '.' || mk_utf8_find_invalid(name) < name.len)
        return false;
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.p[i] < ' ' || name.p[i] == 0x7f || name.p[i] == '/' || name.p[i] == '\\')
            return false;
    return true;
}

/* The server does not serve names that begin with a dot, and a listing omits them, unless `DotFiles` is on. */
static void choose_temporary_name(struct upload_file *f)
{
    uint64_t number;
    mk_random(&number, sizeof number);
    (void)snprintf(f->temporary, sizeof f->temporary, ".upload-%016llx", (unsigned long long)number);
}

static int write_all(int fd, const char *data, size_t n)
{
    while (n) {
        ssize_t done = write(fd, data, n);
        if (done < 0 && errno != EINTR)
            return -errno;
        data += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
    return 0;
}

static int copy_to(int fd, int spool, uint64_t offset, uint64_t size)
{
    char block[BLOCK];
    int e = 0;
    while (size && !e) {
        ssize_t n = pread(spool, block, size < BLOCK ? (size_t)size : BLOCK, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        e = n < 0 ? -errno : n == 0 ? -EIO : write_all(fd, block, (size_t)n);
        offset += n > 0 ? (uint64_t)n : 0;
        size -= n > 0 ? (uint64_t)n : 0;
    }
    return e;
}

/* Rejects most uploads before they write anything. Only publish() decides whether a name is free. */
static int check_name(const struct upload_store *s, struct upload_file *f)
{
    struct stat st;
    if (fstatat(s->folder, f->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    return S_ISDIR(st.st_mode) ? -EISDIR : s->may_replace ? 0 : -EEXIST;
}

static int write_temporary(const struct upload_store *s, struct upload_file *f)
{
    choose_temporary_name(f);
    int fd = openat(s->folder, f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, MODE);
    if (fd < 0) {
        f->temporary[0] = '\0';
        return -errno;
    }
    struct stat st;
    int e = fstat(fd, &st) < 0 ? -errno : copy_to(fd, s->spool, f->offset, f->size);
    if (!e) {
        f->device = st.st_dev;
        f->inode = st.st_ino;
    }
    if (close(fd) < 0 && !e) /* NFS and quotas report errors here */
        e = -errno;
    return e;
}

/* Renames the file if there is none of that name. File systems that cannot do so may have hard links. */
static int rename_to_new(int folder, const char *from, const char *to)
{
    if (syscall(SYS_renameat2, folder, from, folder, to, NO_REPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    return linkat(folder, from, folder, to, 0) < 0 || unlinkat(folder, from, 0) < 0 ? -errno : 0;
}

/* renameat() replaces a symbolic link rather than its target. */
static int publish(const struct upload_store *s, struct upload_file *f)
{
    int e = !s->may_replace ? rename_to_new(s->folder, f->temporary, f->name)
            : renameat(s->folder, f->temporary, s->folder, f->name) < 0 ? -errno
                                                                        : 0;
    if (!e)
        f->temporary[0] = '\0';
    return e;
}

/* Without Overwrite, a failed upload deletes the files that it has published, unless another program has replaced them. */
static void clean_up(const struct upload_store *s, const struct upload_file *f)
{
    struct stat st;
    if (f->temporary[0])
        (void)unlinkat(s->folder, f->temporary, 0);
    if (s->error && !s->may_replace && f->inode &&
        fstatat(s->folder, f->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == f->device &&
        st.st_ino == f->inode)
        (void)unlinkat(s->folder, f->name, 0);
}

void dirlisting_upload_store(struct upload_store *s)
{
    static int (*const steps[])(const struct upload_store *s,
                                struct upload_file *f) = {check_name, write_temporary, publish};
    for (size_t i = 0; i < MK_LEN(steps) && !s->error; i++)
        for (s->failed = 0; s->failed < s->n && !s->error; s->failed += !s->error)
            s->error = steps[i](s, &s->files[s->failed]);
    for (size_t i = 0; i < s->n; i++)
        clean_up(s, &s->files[i]);
}

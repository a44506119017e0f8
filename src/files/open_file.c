/* SPDX-License-Identifier: Apache-2.0 */
#include "files/open_file.h"

#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mem.h"
#include "os/fd.h"

static void free_attachment(struct mk_open_file *f)
{
    if (f->note)
        f->note->free(f->note);
    f->note = NULL;
}

void mk_open_file_release(struct mk_open_file *f)
{
    MK_ASSERT(f->refs > 0);
    f->refs--;
    if (f->refs == 0 || (f->refs == 1 && f->listed && f->note_size == 0))
        free_attachment(f);
    if (f->refs > 0)
        return;
    mk_fd_close(&f->fd);
    mk_mem_free(f);
}

struct mk_open_file *mk_open_file_from_fd(int fd, uint64_t size)
{
    struct mk_open_file *f = mk_mem_alloc(sizeof *f);
    if (!f)
        return NULL;
    *f = (struct mk_open_file){.kind = MK_OPEN_FILE, .fd = fd, .size = size, .refs = 1};
    return f;
}

/* Clamps times that are out of range: files from an archive may have such times. */
static int64_t timespec_ns(struct timespec t)
{
    int64_t ns;
    if (__builtin_mul_overflow((int64_t)t.tv_sec, 1000000000, &ns) ||
        __builtin_add_overflow(ns, t.tv_nsec, &ns))
        return t.tv_sec < 0 ? INT64_MIN : INT64_MAX;
    return ns;
}

/* Reads `size` bytes from the page cache without waiting for a disk. False: not all of them were read. */
static bool read_content_nowait(int fd, char *buf, size_t size)
{
    ssize_t n = mk_file_read_nowait(fd, buf, size, 0);
    if (n == -EOPNOTSUPP) /* the system cannot tell whether the file is in the page cache: read it anyway */
        n = pread(fd, buf, size, 0);
    return n == (ssize_t)size;
}

/* Returns the device number in 32 bits, like the kernel's dev_t: 12 bits for the major number, 20 for the
 * minor. */
static uint32_t device_number(const struct stat *st)
{
    return (uint32_t)(major(st->st_dev) << 20 | minor(st->st_dev));
}

static enum mk_open_kind open_kind(const struct stat *st)
{
    if (S_ISREG(st->st_mode))
        return MK_OPEN_FILE;
    return S_ISDIR(st->st_mode) ? MK_OPEN_FOLDER : MK_OPEN_OTHER;
}

struct mk_open_file *mk_open_file_new(mk_str path, const struct stat *st, int fd, bool in_memory)
{
    size_t space = in_memory ? (size_t)st->st_size : 0;
    struct mk_open_file *f = mk_mem_alloc(sizeof *f + path.len + 1 + space);
    if (!f)
        return NULL;
    *f = (struct mk_open_file){
        .kind = open_kind(st),
        .fd = fd,
        .size = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0,
        .mtime_ns = timespec_ns(st->st_mtim),
        .ctime_ns = timespec_ns(st->st_ctim),
        .dev = device_number(st),
        .ino = st->st_ino,
        .path_len = (uint16_t)path.len,
        .refs = 1,
    };
    memcpy(f->path, path.p, path.len);
    f->path[path.len] = '\0';
    mk_list_init(&f->used);
    if (in_memory && read_content_nowait(fd, f->path + path.len + 1, space))
        f->content = mk_str_of(f->path + path.len + 1, space);
    if (f->content.p || f->kind != MK_OPEN_FILE)
        mk_fd_close(&f->fd);
    return f;
}

struct mk_file_id mk_open_file_id(const struct mk_open_file *f)
{
    return (struct mk_file_id){.device = f->dev,
                               .inode = f->ino,
                               .size = f->size,
                               .modified_ns = f->mtime_ns,
                               .changed_ns = f->ctime_ns};
}

bool mk_open_file_is_inode(const struct mk_open_file *f, const struct stat *st)
{
    return f->ino == st->st_ino && f->dev == device_number(st);
}

bool mk_open_file_is_unchanged(const struct mk_open_file *f, const struct stat *st)
{
    return mk_open_file_is_inode(f, st) && f->mtime_ns == timespec_ns(st->st_mtim) &&
           f->ctime_ns == timespec_ns(st->st_ctim) &&
           (f->kind != MK_OPEN_FILE || f->size == (uint64_t)st->st_size);
}

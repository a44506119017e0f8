/* SPDX-License-Identifier: Apache-2.0 */
#include "settings/folders.h"

#include "base/mem.h"
#include "os/fd.h"
#include "os/file.h"

/* Chained by inode: an administrator's file system chooses the numbers, no peer does. */
struct mk_folder {
    struct mk_folder *next;
    dev_t dev;
    ino_t ino;
    int fd;
    unsigned refs;
    size_t path_len;
    char path[];
};

enum { BUCKETS_MIN = 64 };

static struct mk_folder **bucket_of(struct mk_folder **buckets, size_t n, ino_t ino)
{
    return &buckets[(size_t)ino & (n - 1)];
}

static void move_all(struct mk_folders *f, struct mk_folder **buckets, size_t n)
{
    for (size_t i = 0; i < f->n_buckets; i++)
        while (f->buckets[i]) {
            struct mk_folder *one = f->buckets[i], **to = bucket_of(buckets, n, one->ino);
            f->buckets[i] = one->next;
            one->next = *to;
            *to = one;
        }
}

static bool make_room(struct mk_folders *f)
{
    if (f->n < f->n_buckets)
        return true;
    size_t n = f->n_buckets ? f->n_buckets * 2 : BUCKETS_MIN;
    struct mk_folder **buckets = mk_mem_zalloc(n, sizeof *buckets);
    if (!buckets)
        return f->n_buckets > 0; /* longer chains, but correct ones */
    move_all(f, buckets, n);
    mk_mem_free(f->buckets);
    f->buckets = buckets;
    f->n_buckets = n;
    return true;
}

/* The path counts as well: the same inode may be mounted twice, with other mounts beneath. */
static struct mk_folder *find(const struct mk_folders *f, mk_str path, const struct stat *st)
{
    struct mk_folder *one = f->n_buckets ? *bucket_of(f->buckets, f->n_buckets, st->st_ino) : NULL;
    while (one && (one->ino != st->st_ino || one->dev != st->st_dev ||
                   !mk_str_eq(mk_str_of(one->path, one->path_len), path)))
        one = one->next;
    return one;
}

static struct mk_folder *add(struct mk_folders *f, mk_str path, const struct stat *st, int fd)
{
    struct mk_folder *one = make_room(f) ? mk_mem_zalloc(1, sizeof *one + path.len) : NULL;
    if (!one)
        return NULL;
    *one = (struct mk_folder){.dev = st->st_dev, .ino = st->st_ino, .fd = fd, .path_len = path.len};
    memcpy(one->path, path.p, path.len);
    struct mk_folder **bucket = bucket_of(f->buckets, f->n_buckets, st->st_ino);
    one->next = *bucket;
    *bucket = one;
    f->n++;
    return one;
}

/* The folder may have been replaced after the first stat: the descriptor says which one it is. */
static mk_err open_new(struct mk_folders *f, mk_str path, struct mk_folder **out)
{
    struct stat st;
    int fd;
    mk_err e = mk_file_open_root(path.p, &fd);
    if (e)
        return e;
    if (fstat(fd, &st) < 0)
        e = mk_err_last();
    *out = e ? NULL : find(f, path, &st);
    if (!e && !*out && (*out = add(f, path, &st, fd)))
        return 0;
    mk_fd_close(&fd);
    return e ? e : *out ? 0 : -ENOMEM;
}

mk_err mk_folders_acquire(struct mk_folders *f, const char *path, int *fd)
{
    struct stat st;
    mk_str p = mk_str_from_c(path);
    *fd = -1;
    struct mk_folder *one = stat(path, &st) == 0 ? find(f, p, &st) : NULL;
    mk_err e = one ? 0 : open_new(f, p, &one);
    if (e)
        return e;
    one->refs++;
    *fd = one->fd;
    return 0;
}

static struct mk_folder **find_fd(struct mk_folders *f, int fd)
{
    struct stat st;
    if (!f->n_buckets || fstat(fd, &st) < 0)
        return NULL;
    struct mk_folder **at = bucket_of(f->buckets, f->n_buckets, st.st_ino);
    while (*at && (*at)->fd != fd)
        at = &(*at)->next;
    return *at ? at : NULL;
}

static void drop(struct mk_folders *f, struct mk_folder **at)
{
    struct mk_folder *one = *at;
    *at = one->next;
    f->n--;
    mk_fd_close(&one->fd);
    mk_mem_free(one);
}

void mk_folders_release(struct mk_folders *f, int *fd)
{
    struct mk_folder **at = *fd >= 0 ? find_fd(f, *fd) : NULL;
    *fd = -1;
    if (at && --(*at)->refs == 0)
        drop(f, at);
}

void mk_folders_fini(struct mk_folders *f)
{
    for (size_t i = 0; i < f->n_buckets; i++)
        while (f->buckets[i])
            drop(f, &f->buckets[i]);
    mk_mem_free(f->buckets);
    *f = (struct mk_folders){0};
}

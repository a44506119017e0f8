/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/folder_cache.h"

#include "base/mem.h"
#include "os/fd.h"
#include "os/file.h"

/* Entry of a hash table. Its key is the inode number, unhashed: the file system, not a client, chooses these
 * numbers. */
struct mk_cached_folder {
    struct mk_cached_folder *next;
    dev_t dev;
    ino_t ino;
    int fd;
    unsigned refs;
    size_t path_len;
    char path[];
};

enum { BUCKETS_MIN = 64 };

static struct mk_cached_folder **folder_bucket(struct mk_cached_folder **buckets, size_t n, ino_t ino)
{
    return &buckets[(size_t)ino & (n - 1)];
}

static void rehash_folders(struct mk_folder_cache *f, struct mk_cached_folder **buckets, size_t n)
{
    for (size_t i = 0; i < f->n_buckets; i++)
        while (f->buckets[i]) {
            struct mk_cached_folder *one = f->buckets[i], **to = folder_bucket(buckets, n, one->ino);
            f->buckets[i] = one->next;
            one->next = *to;
            *to = one;
        }
}

static bool grow_buckets(struct mk_folder_cache *f)
{
    if (f->n < f->n_buckets)
        return true;
    size_t n = f->n_buckets ? f->n_buckets * 2 : BUCKETS_MIN;
    struct mk_cached_folder **buckets = mk_mem_zalloc(n, sizeof *buckets);
    if (!buckets)
        return f->n_buckets > 0; /* out of memory: chains stay longer, but the table still works */
    rehash_folders(f, buckets, n);
    mk_mem_free(f->buckets);
    f->buckets = buckets;
    f->n_buckets = n;
    return true;
}

/* Compares the path as well: the same inode may be mounted twice, with different mounts below it. */
static struct mk_cached_folder *find_folder(const struct mk_folder_cache *f, mk_str path,
                                            const struct stat *st)
{
    struct mk_cached_folder *one = f->n_buckets ? *folder_bucket(f->buckets, f->n_buckets, st->st_ino) : NULL;
    while (one && (one->ino != st->st_ino || one->dev != st->st_dev ||
                   !mk_str_eq(mk_str_of(one->path, one->path_len), path)))
        one = one->next;
    return one;
}

static struct mk_cached_folder *insert_folder(struct mk_folder_cache *f, mk_str path, const struct stat *st,
                                              int fd)
{
    struct mk_cached_folder *one = grow_buckets(f) ? mk_mem_zalloc(1, sizeof *one + path.len) : NULL;
    if (!one)
        return NULL;
    *one = (struct mk_cached_folder){.dev = st->st_dev, .ino = st->st_ino, .fd = fd, .path_len = path.len};
    memcpy(one->path, path.p, path.len);
    struct mk_cached_folder **bucket = folder_bucket(f->buckets, f->n_buckets, st->st_ino);
    one->next = *bucket;
    *bucket = one;
    f->n++;
    return one;
}

/* Identifies the folder by the opened descriptor, because the path may now lead to another folder than at the
 * caller's stat(). */
static mk_err open_and_insert(struct mk_folder_cache *f, mk_str path, struct mk_cached_folder **out)
{
    struct stat st;
    int fd;
    mk_err e = mk_file_open_root(path.p, &fd);
    if (e)
        return e;
    if (fstat(fd, &st) < 0)
        e = mk_err_last();
    *out = e ? NULL : find_folder(f, path, &st);
    if (!e && !*out && (*out = insert_folder(f, path, &st, fd)))
        return 0;
    mk_fd_close(&fd);
    return e ? e : *out ? 0 : -ENOMEM;
}

mk_err mk_folder_cache_acquire(struct mk_folder_cache *f, const char *path, int *fd)
{
    struct stat st;
    mk_str p = mk_str_from_c(path);
    *fd = -1;
    struct mk_cached_folder *one = stat(path, &st) == 0 ? find_folder(f, p, &st) : NULL;
    mk_err e = one ? 0 : open_and_insert(f, p, &one);
    if (e)
        return e;
    one->refs++;
    *fd = one->fd;
    return 0;
}

static struct mk_cached_folder **find_folder_by_fd(struct mk_folder_cache *f, int fd)
{
    struct stat st;
    if (!f->n_buckets || fstat(fd, &st) < 0)
        return NULL;
    struct mk_cached_folder **at = folder_bucket(f->buckets, f->n_buckets, st.st_ino);
    while (*at && (*at)->fd != fd)
        at = &(*at)->next;
    return *at ? at : NULL;
}

static void remove_folder(struct mk_folder_cache *f, struct mk_cached_folder **at)
{
    struct mk_cached_folder *one = *at;
    *at = one->next;
    f->n--;
    mk_fd_close(&one->fd);
    mk_mem_free(one);
}

void mk_folder_cache_release(struct mk_folder_cache *f, int *fd)
{
    struct mk_cached_folder **at = *fd >= 0 ? find_folder_by_fd(f, *fd) : NULL;
    *fd = -1;
    if (at && --(*at)->refs == 0)
        remove_folder(f, at);
}

void mk_folder_cache_fini(struct mk_folder_cache *f)
{
    for (size_t i = 0; i < f->n_buckets; i++)
        while (f->buckets[i])
            remove_folder(f, &f->buckets[i]);
    mk_mem_free(f->buckets);
    *f = (struct mk_folder_cache){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "web/openfile.h"

#include <limits.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mem.h"
#include "os/fd.h"

enum {
    MEANWHILE_MS = 1000, /* who was not asked for so long can make room for others */
    ONE_OF = 16,         /* those that ask for a place where there is none */
};

mk_err mk_file_cache_init(struct mk_file_cache *c, const struct mk_file_cache_limits *limits)
{
    *c = (struct mk_file_cache){.limits = *limits, .hash_key = mk_hash_key_random(), .n_buckets = 16};
    while (c->n_buckets < limits->files)
        c->n_buckets *= 2;
    mk_list_init(&c->with_content);
    mk_list_init(&c->without);
    c->buckets = mk_mem_zalloc(c->n_buckets, sizeof(struct mk_open_file *));
    return c->buckets ? 0 : -ENOMEM;
}

static void free_file(struct mk_open_file *f)
{
    mk_fd_close(&f->fd);
    if (f->note)
        f->note->free(f->note);
    mk_mem_free(f);
}

void mk_open_file_drop(struct mk_open_file *f)
{
    MK_ASSERT(f->refs > 0);
    if (--f->refs == 0)
        free_file(f);
}

struct mk_open_file *mk_open_file_wrap(int fd, uint64_t size)
{
    struct mk_open_file *f = mk_mem_alloc(sizeof *f);
    if (!f)
        return NULL;
    *f = (struct mk_open_file){.kind = MK_OPEN_FILE, .fd = fd, .size = size, .refs = 1};
    return f;
}

static struct mk_open_file **find_slot(struct mk_file_cache *c, const struct mk_open_file *f)
{
    struct mk_open_file **at = &c->buckets[f->hash & (c->n_buckets - 1)];
    while (*at != f)
        at = &(*at)->next;
    return at;
}

static void unlist(struct mk_file_cache *c, struct mk_open_file *f)
{
    *find_slot(c, f) = f->next;
    mk_list_remove(&f->used);
    c->n--;
    c->memory -= f->content.len;
    f->listed = false;
    mk_open_file_drop(f);
}

void mk_open_file_forget(struct mk_open_file *f)
{
    if (f->listed)
        unlist(f->cache, f);
}

static struct mk_open_file *first_of(const struct mk_list *list)
{
    return mk_list_empty(list) ? NULL : MK_LIST_ENTRY(list->next, struct mk_open_file, used);
}

static struct mk_open_file *oldest(const struct mk_file_cache *c)
{
    struct mk_open_file *a = first_of(&c->with_content), *b = first_of(&c->without);
    if (!a || !b)
        return a ? a : b;
    return a->used_ms <= b->used_ms ? a : b;
}

static void use(struct mk_file_cache *c, struct mk_open_file *f, uint64_t now_ms)
{
    f->used_ms = now_ms;
    mk_list_remove(&f->used);
    mk_list_add_last(f->content.p ? &c->with_content : &c->without, &f->used);
}

/* When even the oldest has just been asked for, there are more files in use than may be kept: should each of
 * them get a place, none would have it still when it is asked for again. One of some gets one. */
static bool has_place(struct mk_file_cache *c, uint64_t now_ms)
{
    if (c->n < c->limits.files)
        return true;
    bool crowded = c->n > 0 && now_ms - oldest(c)->used_ms < MEANWHILE_MS;
    return c->limits.files > 0 && (!crowded || ++c->turned_away % ONE_OF == 0);
}

/* The least recently used make room. */
static void list(struct mk_file_cache *c, struct mk_open_file *f, uint64_t now_ms)
{
    while (c->n >= c->limits.files)
        unlist(c, oldest(c));
    while (c->memory + f->content.len > c->limits.memory)
        unlist(c, first_of(&c->with_content));
    struct mk_open_file **bucket = &c->buckets[f->hash & (c->n_buckets - 1)];
    f->next = *bucket;
    *bucket = f;
    c->n++;
    c->memory += f->content.len;
    f->listed = true;
    f->refs++;
    use(c, f, now_ms);
}

void mk_file_cache_fini(struct mk_file_cache *c)
{
    while (c->n)
        unlist(c, oldest(c));
    mk_mem_free(c->buckets);
    c->buckets = NULL;
}

/* Of a kind: with a descriptor, or all. */
static unsigned unlist_idle(struct mk_file_cache *c, struct mk_list *list, int least_fd)
{
    unsigned n = 0;
    MK_LIST_EACH_SAFE (at, list) {
        struct mk_open_file *f = MK_LIST_ENTRY(at, struct mk_open_file, used);
        if (f->refs == 1 && f->fd >= least_fd) {
            unlist(c, f);
            n++;
        }
    }
    return n;
}

unsigned mk_file_cache_shed(struct mk_file_cache *c)
{
    return unlist_idle(c, &c->without, 0);
}

void mk_file_cache_clear(struct mk_file_cache *c)
{
    (void)unlist_idle(c, &c->with_content, -1);
    (void)unlist_idle(c, &c->without, -1);
}

static struct mk_open_file *find(const struct mk_file_cache *c, const struct mk_root *root, mk_str path,
                                 uint64_t hash)
{
    struct mk_open_file *f = c->buckets[hash & (c->n_buckets - 1)];
    while (f && (f->hash != hash || f->root != root || !mk_str_eq(f->path, path)))
        f = f->next;
    return f;
}

/* Times that no clock shows, as archives may carry them, become the nearest that can be told. */
static int64_t nanoseconds(struct timespec t)
{
    int64_t ns;
    if (__builtin_mul_overflow((int64_t)t.tv_sec, 1000000000, &ns) ||
        __builtin_add_overflow(ns, t.tv_nsec, &ns))
        return t.tv_sec < 0 ? INT64_MIN : INT64_MAX;
    return ns;
}

/* What is in memory already, without waiting for a disk; false if that is not all of it. */
static bool read_small(int fd, char *room, size_t size)
{
    ssize_t n = mk_file_read_nowait(fd, room, size, 0);
    if (n == -EOPNOTSUPP) /* such a file system keeps small files in memory */
        n = pread(fd, room, size, 0);
    return n == (ssize_t)size;
}

/* How much would come free if those went that nobody asked for since then? At least `wanted`, if there is. */
static size_t memory_unused_since(struct mk_file_cache *c, uint64_t since_ms, size_t wanted)
{
    size_t sum = 0;
    MK_LIST_EACH_SAFE (at, &c->with_content) {
        const struct mk_open_file *f = MK_LIST_ENTRY(at, struct mk_open_file, used);
        if (sum >= wanted || f->used_ms >= since_ms)
            break;
        sum += f->content.len;
    }
    return sum;
}

static bool fits(const struct mk_file_cache *c, uint64_t size)
{
    return size <= mk_min(c->limits.small, c->limits.memory);
}

/* known: what it was before; NULL: nobody knows it. */
static bool may_have_memory(struct mk_file_cache *c, const struct stat *st, struct mk_open_file *known,
                            uint64_t now_ms)
{
    if (!S_ISREG(st->st_mode) || !fits(c, (uint64_t)st->st_size))
        return false;
    size_t most = c->limits.memory - (size_t)st->st_size;
    size_t held = c->memory - (known && known->listed ? known->content.len : 0);
    if (held <= most)
        return true;
    if (!known || now_ms - known->tried_ms < MEANWHILE_MS)
        return false;
    size_t wanted = held - most, unused = memory_unused_since(c, known->tried_ms, wanted);
    known->tried_ms = now_ms;
    return unused >= wanted;
}

/* A small file that found no room, or was on its disk alone, may have it by now. */
static bool is_believed(const struct mk_file_cache *c, const struct mk_open_file *f, uint64_t now_ms)
{
    bool tries_again =
        !f->content.p && f->kind == MK_OPEN_FILE && fits(c, f->size) && now_ms - f->tried_ms >= MEANWHILE_MS;
    return now_ms - f->checked_ms < c->limits.recheck_ms && !tries_again;
}

/* One piece of memory: the entry, its path with a NUL, and room for the content of a small file. */
static struct mk_open_file *make_file(struct mk_file_cache *c, mk_str path, const struct stat *st, int fd,
                                      bool in_memory)
{
    size_t room = in_memory ? (size_t)st->st_size : 0;
    struct mk_open_file *f = mk_mem_alloc(sizeof *f + path.len + 1 + room);
    if (!f)
        return NULL;
    char *text = (char *)(f + 1);
    memcpy(text, path.p, path.len);
    text[path.len] = '\0';
    *f = (struct mk_open_file){
        .cache = c,
        .kind = S_ISREG(st->st_mode)   ? MK_OPEN_FILE
                : S_ISDIR(st->st_mode) ? MK_OPEN_FOLDER
                                       : MK_OPEN_OTHER,
        .fd = fd,
        .size = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0,
        .mtime_ns = nanoseconds(st->st_mtim),
        .ctime_ns = nanoseconds(st->st_ctim),
        .dev = st->st_dev,
        .ino = st->st_ino,
        .path = mk_str_of(text, path.len),
        .refs = 1,
    };
    mk_list_init(&f->used);
    if (in_memory && read_small(fd, text + path.len + 1, room))
        f->content = mk_str_of(text + path.len + 1, room);
    if (f->content.p || f->kind != MK_OPEN_FILE)
        mk_fd_close(&f->fd);
    return f;
}

mk_err mk_file_cache_open(struct mk_file_cache *c, const struct mk_root *root, mk_str path, int *fd)
{
    char name[PATH_MAX];
    if (path.len >= sizeof name)
        return -ENAMETOOLONG;
    memcpy(name, path.p, path.len);
    name[path.len] = '\0';
    mk_err e = mk_file_open_beneath(root->fd, name, &root->how, fd);
    if ((e == -EMFILE || e == -ENFILE) && mk_file_cache_shed(c) > 0)
        e = mk_file_open_beneath(root->fd, name, &root->how, fd);
    return e;
}

static bool is_unchanged(const struct mk_open_file *f, const struct stat *st)
{
    return f->ino == st->st_ino && f->dev == st->st_dev && f->mtime_ns == nanoseconds(st->st_mtim) &&
           f->ctime_ns == nanoseconds(st->st_ctim) &&
           (f->kind != MK_OPEN_FILE || f->size == (uint64_t)st->st_size);
}

static bool still_holds(const struct mk_open_file *known, const struct stat *st, bool in_memory)
{
    return known && is_unchanged(known, st) && (known->content.p || !in_memory);
}

/* Opens the path anew. An entry that proves to be the same file is kept, unless there is room for its content
 * now. */
static mk_err look_again(struct mk_file_cache *c, const struct mk_root *root, mk_str path,
                         struct mk_open_file *known, uint64_t now_ms, struct mk_open_file **file)
{
    int fd;
    struct stat st;
    mk_err e = mk_file_cache_open(c, root, path, &fd);
    if (!e && fstat(fd, &st) < 0) {
        e = mk_err_last();
        mk_fd_close(&fd);
    }
    bool in_memory = !e && may_have_memory(c, &st, known, now_ms);
    if (!e && still_holds(known, &st, in_memory)) {
        mk_fd_close(&fd);
        *file = known;
        return 0;
    }
    if (known)
        mk_open_file_forget(known);
    if (e)
        return e;
    *file = make_file(c, path, &st, fd, in_memory);
    if (!*file)
        mk_fd_close(&fd);
    return *file ? 0 : -ENOMEM;
}

static mk_err take(struct mk_file_cache *c, const struct mk_root *root, mk_str path, uint64_t now_ms,
                   bool only_kept, struct mk_open_file **file)
{
    uint64_t hash = mk_hash(&c->hash_key, path) ^ (uintptr_t)root;
    struct mk_open_file *known = find(c, root, path, hash);
    if (known) {
        use(c, known, now_ms);
        known->refs++; /* it may be thrown out meanwhile, to make room */
    }
    if (known && is_believed(c, known, now_ms)) {
        *file = known;
        return 0;
    }
    bool kept = known || has_place(c, now_ms);
    if (only_kept && !kept)
        return -EAGAIN;
    mk_err e = look_again(c, root, path, known, now_ms, file);
    if (known && (e || *file != known))
        mk_open_file_drop(known);
    if (e)
        return e;
    (*file)->checked_ms = now_ms;
    if ((*file)->listed)
        return 0;
    (*file)->root = root;
    (*file)->hash = hash;
    (*file)->tried_ms = now_ms;
    if (kept)
        list(c, *file, now_ms);
    return 0;
}

mk_err mk_file_cache_take(struct mk_file_cache *c, const struct mk_root *root, mk_str path, uint64_t now_ms,
                          struct mk_open_file **file)
{
    return take(c, root, path, now_ms, false, file);
}

mk_err mk_file_cache_take_kept(struct mk_file_cache *c, const struct mk_root *root, mk_str path,
                               uint64_t now_ms, struct mk_open_file **file)
{
    return take(c, root, path, now_ms, true, file);
}

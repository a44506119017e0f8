/* SPDX-License-Identifier: Apache-2.0 */
#include "files/file_cache.h"

#include <limits.h>

#include "base/assert.h"
#include "base/mem.h"
#include "os/fd.h"

enum {
    IDLE_MS = 1000,    /* an entry that was not used for this long makes room for new files and content */
    ADMIT_ONE_IN = 16, /* share of new files admitted while all entries are in use (1/n) */
    BUCKETS_MIN = 64,  /* initial number of buckets, doubled when there are more entries */
};

mk_err mk_file_cache_init(struct mk_file_cache *c, const struct mk_file_cache_limits *limits)
{
    *c = (struct mk_file_cache){
        .limits = *limits, .most = limits->files, .hash_key = mk_hash_key_random(), .n_buckets = BUCKETS_MIN};
    mk_list_init(&c->rich);
    mk_list_init(&c->lean);
    c->buckets = mk_mem_zalloc(c->n_buckets, sizeof(struct mk_open_file *));
    return c->buckets ? 0 : -ENOMEM;
}

static struct mk_open_file **bucket_slot(struct mk_file_cache *c, const struct mk_open_file *f)
{
    struct mk_open_file **at = &c->buckets[f->hash & (c->n_buckets - 1)];
    while (*at != f)
        at = &(*at)->next;
    return at;
}

static size_t entry_memory(const struct mk_open_file *f)
{
    return f->content.len + f->note_size;
}

static void evict_entry(struct mk_file_cache *c, struct mk_open_file *f)
{
    *bucket_slot(c, f) = f->next;
    mk_list_remove(&f->used);
    c->n--;
    c->memory -= entry_memory(f);
    f->listed = false;
    mk_open_file_release(f);
}

void mk_file_cache_invalidate(struct mk_open_file *f)
{
    if (f->listed)
        evict_entry(f->cache, f);
}

static struct mk_open_file *first_in_list(const struct mk_list *list)
{
    return mk_list_empty(list) ? NULL : MK_LIST_ENTRY(list->next, struct mk_open_file, used);
}

static struct mk_open_file *least_recently_used(const struct mk_file_cache *c)
{
    struct mk_open_file *a = first_in_list(&c->rich), *b = first_in_list(&c->lean);
    if (!a || !b)
        return a ? a : b;
    return a->used_ms <= b->used_ms ? a : b;
}

static void mark_used(struct mk_file_cache *c, struct mk_open_file *f, uint64_t now_ms)
{
    f->used_ms = now_ms;
    mk_list_remove(&f->used);
    mk_list_add_last(f->content.p || f->note_size ? &c->rich : &c->lean, &f->used);
}

/* If even the least recently used entry was used just now, more files are in use than fit: caching every new
 * file would evict each entry before its next use. Only one in ADMIT_ONE_IN is therefore admitted. */
static bool may_insert(struct mk_file_cache *c, uint64_t now_ms)
{
    if (c->n < c->most)
        return true;
    bool crowded = c->n > 0 && now_ms - least_recently_used(c)->used_ms < IDLE_MS;
    return c->most > 0 && (!crowded || ++c->n_rejected % ADMIT_ONE_IN == 0);
}

/* Doubles the number of buckets. If memory runs out, the chains of the table grow instead. */
static void grow_buckets(struct mk_file_cache *c)
{
    size_t n = 2 * c->n_buckets;
    struct mk_open_file **buckets = mk_mem_zalloc(n, sizeof *buckets);
    if (!buckets)
        return;
    for (size_t i = 0; i < c->n_buckets; i++)
        for (struct mk_open_file *f = c->buckets[i], *next; f; f = next) {
            struct mk_open_file **bucket = &buckets[f->hash & (n - 1)];
            next = f->next;
            f->next = *bucket;
            *bucket = f;
        }
    mk_mem_free(c->buckets);
    c->buckets = buckets;
    c->n_buckets = n;
}

/* Adds the file to the cache, and evicts the least recently used entries to make room. */
static void insert_entry(struct mk_file_cache *c, struct mk_open_file *f, uint64_t now_ms)
{
    while (c->n >= c->most)
        evict_entry(c, least_recently_used(c));
    while (f->content.len > 0 && c->memory + f->content.len > c->limits.memory)
        evict_entry(c, first_in_list(&c->rich));
    if (c->n >= c->n_buckets)
        grow_buckets(c);
    struct mk_open_file **bucket = &c->buckets[f->hash & (c->n_buckets - 1)];
    f->next = *bucket;
    *bucket = f;
    c->n++;
    c->memory += f->content.len;
    f->listed = true;
    f->refs++;
    mark_used(c, f, now_ms);
}

void mk_file_cache_fini(struct mk_file_cache *c)
{
    while (c->n)
        evict_entry(c, least_recently_used(c));
    mk_mem_free(c->buckets);
    c->buckets = NULL;
}

/* Evicts the entries of the list that only the cache refers to; if least_fd is 0, only those with a
 * descriptor. */
static unsigned evict_idle(struct mk_file_cache *c, struct mk_list *list, int least_fd)
{
    unsigned n = 0;
    MK_LIST_EACH_SAFE (at, list) {
        struct mk_open_file *f = MK_LIST_ENTRY(at, struct mk_open_file, used);
        if (f->refs == 1 && f->fd >= least_fd) {
            evict_entry(c, f);
            n++;
        }
    }
    return n;
}

void mk_file_cache_set_max_entries(struct mk_file_cache *c, unsigned n)
{
    c->most = (unsigned)mk_min(n, c->limits.files);
    while (c->n > c->most)
        evict_entry(c, least_recently_used(c));
}

unsigned mk_file_cache_close_idle_fds(struct mk_file_cache *c)
{
    return evict_idle(c, &c->rich, 0) + evict_idle(c, &c->lean, 0);
}

void mk_file_cache_evict_idle(struct mk_file_cache *c)
{
    (void)evict_idle(c, &c->rich, -1);
    (void)evict_idle(c, &c->lean, -1);
}

static uint64_t path_hash(const struct mk_file_cache *c, const struct mk_root *root, mk_str path)
{
    return mk_hash_trusted(&c->hash_key, path) ^ (uintptr_t)root;
}

static struct mk_open_file *find_entry(const struct mk_file_cache *c, const struct mk_root *root, mk_str path,
                                       uint64_t hash)
{
    struct mk_open_file *f = c->buckets[hash & (c->n_buckets - 1)];
    while (f && (f->hash != (uint32_t)hash || f->root != root || !mk_str_eq(mk_open_file_path(f), path)))
        f = f->next;
    return f;
}

/* Returns the number of bytes held by entries that were not used since `since_ms`; stops counting at
 * `expected` bytes. */
static size_t memory_unused_since(struct mk_file_cache *c, uint64_t since_ms, size_t expected)
{
    size_t sum = 0;
    MK_LIST_EACH_SAFE (at, &c->rich) {
        const struct mk_open_file *f = MK_LIST_ENTRY(at, struct mk_open_file, used);
        if (sum >= expected || f->used_ms >= since_ms)
            break;
        sum += entry_memory(f);
    }
    return sum;
}

static bool is_small_enough(const struct mk_file_cache *c, uint64_t size)
{
    return size <= mk_min(c->limits.small, c->limits.memory);
}

/* May `size` bytes be added for f, which already uses `held` of c->memory? If the memory limit is reached, an
 * entry may displace entries that were not used since its last try, but may try only once per IDLE_MS. */
static bool may_use_memory(struct mk_file_cache *c, struct mk_open_file *f, size_t held, size_t size,
                           uint64_t now_ms)
{
    size_t most = c->limits.memory - size, others = c->memory - held;
    uint32_t waited = (uint32_t)now_ms - f->tried_ms;
    if (others <= most)
        return true;
    if (waited < IDLE_MS)
        return false;
    f->tried_ms = (uint32_t)now_ms;
    size_t expected = others - most;
    return memory_unused_since(c, now_ms - waited, expected) >= expected;
}

/* May the content of the file be cached? `known`: the entry that the new entry replaces, or NULL. */
static bool may_cache_content(struct mk_file_cache *c, const struct stat *st, struct mk_open_file *known,
                              uint64_t now_ms)
{
    if (!S_ISREG(st->st_mode) || !is_small_enough(c, (uint64_t)st->st_size))
        return false;
    size_t size = (size_t)st->st_size;
    if (!known)
        return c->memory <= c->limits.memory - size;
    return may_use_memory(c, known, known->listed ? entry_memory(known) : 0, size, now_ms);
}

bool mk_file_cache_may_attach(struct mk_open_file *f, size_t size, uint64_t now_ms)
{
    struct mk_file_cache *c = f->cache;
    if (!f->listed || size > c->limits.memory || !may_use_memory(c, f, 0, size, now_ms))
        return false;
    while (c->memory > c->limits.memory - size)
        evict_entry(c, first_in_list(&c->rich));
    return f->listed;
}

void mk_file_cache_attach(struct mk_open_file *f, struct mk_open_file_attachment *note, size_t size)
{
    MK_ASSERT(!f->note && size <= UINT32_MAX);
    f->note = note;
    if (!f->listed)
        return;
    f->note_size = (uint32_t)size;
    f->cache->memory += size;
    mark_used(f->cache, f, f->used_ms);
}

/* Should caching the content of a small file be retried? The cache may have space for it by now. */
static bool should_retry_content(struct mk_file_cache *c, struct mk_open_file *f, uint64_t now_ms)
{
    if (f->content.p || f->kind != MK_OPEN_FILE || !is_small_enough(c, f->size) ||
        (uint32_t)now_ms - f->tried_ms < IDLE_MS)
        return false;
    uint32_t tried = f->tried_ms;
    bool may = may_use_memory(c, f, entry_memory(f), (size_t)f->size, now_ms);
    f->tried_ms = may ? tried : (uint32_t)now_ms;
    return may;
}

static bool is_entry_fresh(struct mk_file_cache *c, struct mk_open_file *f, uint64_t now_ms)
{
    return now_ms - f->checked_ms < c->limits.recheck_ms && !should_retry_content(c, f, now_ms);
}

mk_err mk_file_cache_open_uncached(struct mk_file_cache *c, const struct mk_root *root, mk_str path, int *fd)
{
    if (path.len >= PATH_MAX)
        return -ENAMETOOLONG;
    char *name = mk_mem_alloc(path.len + 1); /* not on the stack: Duda handlers have small stacks */
    if (!name)
        return -ENOMEM;
    memcpy(name, path.p, path.len);
    name[path.len] = '\0';
    mk_err e = mk_file_open_beneath(root->fd, name, &root->how, fd);
    if ((e == -EMFILE || e == -ENFILE) && mk_file_cache_close_idle_fds(c) > 0)
        e = mk_file_open_beneath(root->fd, name, &root->how, fd);
    mk_mem_free(name);
    return e;
}

static bool is_still_valid(const struct mk_open_file *known, const struct stat *st, bool in_memory)
{
    return known && mk_open_file_is_unchanged(known, st) && (known->content.p || !in_memory);
}

/* Opens the path. Keeps a known entry if the file is unchanged, unless the cache now has space for its
 * content. */
static mk_err revalidate_entry(struct mk_file_cache *c, const struct mk_root *root, mk_str path,
                               struct mk_open_file *known, uint64_t now_ms, struct mk_open_file **file)
{
    int fd;
    struct stat st;
    mk_err e = mk_file_cache_open_uncached(c, root, path, &fd);
    if (!e && fstat(fd, &st) < 0) {
        e = mk_err_last();
        mk_fd_close(&fd);
    }
    bool in_memory = !e && may_cache_content(c, &st, known, now_ms);
    if (!e && is_still_valid(known, &st, in_memory)) {
        mk_fd_close(&fd);
        *file = known;
        return 0;
    }
    if (known)
        mk_file_cache_invalidate(known);
    if (e)
        return e;
    *file = mk_open_file_new(path, &st, fd, in_memory);
    if (!*file) {
        mk_fd_close(&fd);
        return -ENOMEM;
    }
    (*file)->cache = c;
    return 0;
}

/* Acquires the entry of a file that is not cached, or whose entry must be revalidated. */
MK_NOINLINE static mk_err acquire_missing_or_stale(struct mk_file_cache *c, const struct mk_root *root,
                                                   mk_str path, uint64_t now_ms, bool only_cached,
                                                   struct mk_open_file **file)
{
    uint64_t hash = path_hash(c, root, path);
    struct mk_open_file *known = find_entry(c, root, path, hash); /* acquire_entry() has counted this
                                                                   * reference */
    bool kept = known || may_insert(c, now_ms);
    if (only_cached && !kept)
        return -EAGAIN;
    mk_err e = revalidate_entry(c, root, path, known, now_ms, file);
    if (known && (e || *file != known))
        mk_open_file_release(known);
    if (e)
        return e;
    (*file)->checked_ms = now_ms;
    if ((*file)->listed)
        return 0;
    (*file)->root = root;
    (*file)->hash = (uint32_t)hash;
    (*file)->tried_ms = (uint32_t)now_ms;
    if (kept)
        insert_entry(c, *file, now_ms);
    return 0;
}

static inline mk_err acquire_entry(struct mk_file_cache *c, const struct mk_root *root, mk_str path,
                                   uint64_t now_ms, bool only_cached, struct mk_open_file **file)
{
    struct mk_open_file *known = find_entry(c, root, path, path_hash(c, root, path));
    if (known) {
        mark_used(c, known, now_ms);
        known->refs++; /* otherwise the entry could be freed during revalidation */
    }
    if (MK_UNLIKELY(!known || !is_entry_fresh(c, known, now_ms)))
        return acquire_missing_or_stale(c, root, path, now_ms, only_cached, file);
    *file = known;
    return 0;
}

mk_err mk_file_cache_acquire(struct mk_file_cache *c, const struct mk_root *root, mk_str path,
                             uint64_t now_ms, struct mk_open_file **file)
{
    return acquire_entry(c, root, path, now_ms, false, file);
}

mk_err mk_file_cache_acquire_if_cacheable(struct mk_file_cache *c, const struct mk_root *root, mk_str path,
                                          uint64_t now_ms, struct mk_open_file **file)
{
    return acquire_entry(c, root, path, now_ms, true, file);
}

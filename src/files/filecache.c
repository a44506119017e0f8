/* SPDX-License-Identifier: Apache-2.0 */
#include "files/filecache.h"

#include <limits.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mem.h"
#include "os/fd.h"

enum {
    MEANWHILE_MS = 1000, /* an entry unused for so long may make room for others */
    ONE_OF = 16,         /* newcomers, when all entries are in use */
    BUCKETS_MIN = 64,    /* doubled while there are more entries */
};

mk_err mk_filecache_init(struct mk_filecache *c, const struct mk_filecache_limits *limits)
{
    *c = (struct mk_filecache){
        .limits = *limits, .most = limits->files, .hash_key = mk_hash_key_random(), .n_buckets = BUCKETS_MIN};
    mk_list_init(&c->rich);
    mk_list_init(&c->lean);
    c->buckets = mk_mem_zalloc(c->n_buckets, sizeof(struct mk_open_file *));
    return c->buckets ? 0 : -ENOMEM;
}

static struct mk_open_file **find_slot(struct mk_filecache *c, const struct mk_open_file *f)
{
    struct mk_open_file **at = &c->buckets[f->hash & (c->n_buckets - 1)];
    while (*at != f)
        at = &(*at)->next;
    return at;
}

static size_t memory_of(const struct mk_open_file *f)
{
    return f->content.len + f->note_size;
}

static void unlist(struct mk_filecache *c, struct mk_open_file *f)
{
    *find_slot(c, f) = f->next;
    mk_list_remove(&f->used);
    c->n--;
    c->memory -= memory_of(f);
    f->listed = false;
    mk_open_file_drop(f);
}

void mk_filecache_forget(struct mk_open_file *f)
{
    if (f->listed)
        unlist(f->cache, f);
}

static struct mk_open_file *first_of(const struct mk_list *list)
{
    return mk_list_empty(list) ? NULL : MK_LIST_ENTRY(list->next, struct mk_open_file, used);
}

static struct mk_open_file *oldest(const struct mk_filecache *c)
{
    struct mk_open_file *a = first_of(&c->rich), *b = first_of(&c->lean);
    if (!a || !b)
        return a ? a : b;
    return a->used_ms <= b->used_ms ? a : b;
}

static void use(struct mk_filecache *c, struct mk_open_file *f, uint64_t now_ms)
{
    f->used_ms = now_ms;
    mk_list_remove(&f->used);
    mk_list_add_last(f->content.p || f->note_size ? &c->rich : &c->lean, &f->used);
}

/* When even the oldest entry was used just now, more files are in use than fit: with a place for each
 * newcomer, none would find its entry again. So one newcomer in ONE_OF gets a place. */
static bool has_place(struct mk_filecache *c, uint64_t now_ms)
{
    if (c->n < c->most)
        return true;
    bool crowded = c->n > 0 && now_ms - oldest(c)->used_ms < MEANWHILE_MS;
    return c->most > 0 && (!crowded || ++c->turned_away % ONE_OF == 0);
}

/* Without memory, chains grow instead. */
static void double_buckets(struct mk_filecache *c)
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

/* The least recently used make room. */
static void list(struct mk_filecache *c, struct mk_open_file *f, uint64_t now_ms)
{
    while (c->n >= c->most)
        unlist(c, oldest(c));
    while (f->content.len > 0 && c->memory + f->content.len > c->limits.memory)
        unlist(c, first_of(&c->rich));
    if (c->n >= c->n_buckets)
        double_buckets(c);
    struct mk_open_file **bucket = &c->buckets[f->hash & (c->n_buckets - 1)];
    f->next = *bucket;
    *bucket = f;
    c->n++;
    c->memory += f->content.len;
    f->listed = true;
    f->refs++;
    use(c, f, now_ms);
}

void mk_filecache_fini(struct mk_filecache *c)
{
    while (c->n)
        unlist(c, oldest(c));
    mk_mem_free(c->buckets);
    c->buckets = NULL;
}

/* Of a kind: with a descriptor, or all. */
static unsigned unlist_idle(struct mk_filecache *c, struct mk_list *list, int least_fd)
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

void mk_filecache_allow(struct mk_filecache *c, unsigned n)
{
    c->most = (unsigned)mk_min(n, c->limits.files);
    while (c->n > c->most)
        unlist(c, oldest(c));
}

unsigned mk_filecache_shed(struct mk_filecache *c)
{
    return unlist_idle(c, &c->rich, 0) + unlist_idle(c, &c->lean, 0);
}

void mk_filecache_clear(struct mk_filecache *c)
{
    (void)unlist_idle(c, &c->rich, -1);
    (void)unlist_idle(c, &c->lean, -1);
}

static uint64_t hash_of(const struct mk_filecache *c, const struct mk_root *root, mk_str path)
{
    return mk_hash_known(&c->hash_key, path) ^ (uintptr_t)root;
}

static struct mk_open_file *find(const struct mk_filecache *c, const struct mk_root *root, mk_str path,
                                 uint64_t hash)
{
    struct mk_open_file *f = c->buckets[hash & (c->n_buckets - 1)];
    while (f && (f->hash != (uint32_t)hash || f->root != root || !mk_str_eq(mk_open_file_path(f), path)))
        f = f->next;
    return f;
}

/* Bytes held by entries unused since then; stops counting at `wanted`. */
static size_t memory_unused_since(struct mk_filecache *c, uint64_t since_ms, size_t wanted)
{
    size_t sum = 0;
    MK_LIST_EACH_SAFE (at, &c->rich) {
        const struct mk_open_file *f = MK_LIST_ENTRY(at, struct mk_open_file, used);
        if (sum >= wanted || f->used_ms >= since_ms)
            break;
        sum += memory_of(f);
    }
    return sum;
}

static bool fits(const struct mk_filecache *c, uint64_t size)
{
    return size <= mk_min(c->limits.small, c->limits.memory);
}

/* May `size` bytes be added for f, which holds `held` of c->memory? Each entry asks for the memory of unused
 * ones at most once in MEANWHILE_MS. */
static bool may_add(struct mk_filecache *c, struct mk_open_file *f, size_t held, size_t size, uint64_t now_ms)
{
    size_t most = c->limits.memory - size, others = c->memory - held;
    uint32_t waited = (uint32_t)now_ms - f->tried_ms;
    if (others <= most)
        return true;
    if (waited < MEANWHILE_MS)
        return false;
    f->tried_ms = (uint32_t)now_ms;
    size_t wanted = others - most;
    return memory_unused_since(c, now_ms - waited, wanted) >= wanted;
}

/* known: the entry that the new one replaces, or NULL. */
static bool may_have_content(struct mk_filecache *c, const struct stat *st, struct mk_open_file *known,
                             uint64_t now_ms)
{
    if (!S_ISREG(st->st_mode) || !fits(c, (uint64_t)st->st_size))
        return false;
    size_t size = (size_t)st->st_size;
    if (!known)
        return c->memory <= c->limits.memory - size;
    return may_add(c, known, known->listed ? memory_of(known) : 0, size, now_ms);
}

bool mk_filecache_has_room(struct mk_open_file *f, size_t size, uint64_t now_ms)
{
    struct mk_filecache *c = f->cache;
    if (!f->listed || size > c->limits.memory || !may_add(c, f, 0, size, now_ms))
        return false;
    while (c->memory > c->limits.memory - size)
        unlist(c, first_of(&c->rich));
    return f->listed;
}

void mk_filecache_set_note(struct mk_open_file *f, struct mk_open_file_note *note, size_t size)
{
    MK_ASSERT(!f->note && size <= UINT32_MAX);
    f->note = note;
    if (!f->listed)
        return;
    f->note_size = (uint32_t)size;
    f->cache->memory += size;
    use(f->cache, f, f->used_ms);
}

/* A small file whose content is not in memory may have found room by now. */
static bool wants_content(struct mk_filecache *c, struct mk_open_file *f, uint64_t now_ms)
{
    if (f->content.p || f->kind != MK_OPEN_FILE || !fits(c, f->size) ||
        (uint32_t)now_ms - f->tried_ms < MEANWHILE_MS)
        return false;
    uint32_t tried = f->tried_ms;
    bool may = may_add(c, f, memory_of(f), (size_t)f->size, now_ms);
    f->tried_ms = may ? tried : (uint32_t)now_ms;
    return may;
}

static bool is_trusted(struct mk_filecache *c, struct mk_open_file *f, uint64_t now_ms)
{
    return now_ms - f->checked_ms < c->limits.recheck_ms && !wants_content(c, f, now_ms);
}

mk_err mk_filecache_open(struct mk_filecache *c, const struct mk_root *root, mk_str path, int *fd)
{
    char name[PATH_MAX];
    if (path.len >= sizeof name)
        return -ENAMETOOLONG;
    memcpy(name, path.p, path.len);
    name[path.len] = '\0';
    mk_err e = mk_file_open_beneath(root->fd, name, &root->how, fd);
    if ((e == -EMFILE || e == -ENFILE) && mk_filecache_shed(c) > 0)
        e = mk_file_open_beneath(root->fd, name, &root->how, fd);
    return e;
}

static bool still_holds(const struct mk_open_file *known, const struct stat *st, bool in_memory)
{
    return known && mk_open_file_is_unchanged(known, st) && (known->content.p || !in_memory);
}

/* Opens the path again. An entry that is still the same file is kept, unless there is room for its content
 * now. */
static mk_err look_again(struct mk_filecache *c, const struct mk_root *root, mk_str path,
                         struct mk_open_file *known, uint64_t now_ms, struct mk_open_file **file)
{
    int fd;
    struct stat st;
    mk_err e = mk_filecache_open(c, root, path, &fd);
    if (!e && fstat(fd, &st) < 0) {
        e = mk_err_last();
        mk_fd_close(&fd);
    }
    bool in_memory = !e && may_have_content(c, &st, known, now_ms);
    if (!e && still_holds(known, &st, in_memory)) {
        mk_fd_close(&fd);
        *file = known;
        return 0;
    }
    if (known)
        mk_filecache_forget(known);
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

/* What is not known, or not trusted any more. */
MK_APART static mk_err take_again(struct mk_filecache *c, const struct mk_root *root, mk_str path,
                                  uint64_t now_ms, bool only_kept, struct mk_open_file **file)
{
    uint64_t hash = hash_of(c, root, path);
    struct mk_open_file *known = find(c, root, path, hash); /* then its caller has taken it */
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
    (*file)->hash = (uint32_t)hash;
    (*file)->tried_ms = (uint32_t)now_ms;
    if (kept)
        list(c, *file, now_ms);
    return 0;
}

static inline mk_err take(struct mk_filecache *c, const struct mk_root *root, mk_str path, uint64_t now_ms,
                          bool only_kept, struct mk_open_file **file)
{
    struct mk_open_file *known = find(c, root, path, hash_of(c, root, path));
    if (known) {
        use(c, known, now_ms);
        known->refs++; /* it may be thrown out meanwhile, to make room */
    }
    if (MK_UNLIKELY(!known || !is_trusted(c, known, now_ms)))
        return take_again(c, root, path, now_ms, only_kept, file);
    *file = known;
    return 0;
}

mk_err mk_filecache_take(struct mk_filecache *c, const struct mk_root *root, mk_str path, uint64_t now_ms,
                         struct mk_open_file **file)
{
    return take(c, root, path, now_ms, false, file);
}

mk_err mk_filecache_take_kept(struct mk_filecache *c, const struct mk_root *root, mk_str path,
                              uint64_t now_ms, struct mk_open_file **file)
{
    return take(c, root, path, now_ms, true, file);
}

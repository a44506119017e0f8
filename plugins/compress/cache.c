/* SPDX-License-Identifier: Apache-2.0 */
#include "cache.h"

#include <monkey/mem.h>
#include <monkey/text.h>

enum { BUCKETS = 1024, FIRST_CAP = 4096 };

struct cached {
    struct cache *cache;
    struct cached *next;            /* next entry in the bucket */
    struct cached *older, *younger; /* neighbors in the list, while the entry is listed */
    uint64_t hash;
    unsigned refs; /* number of references, including that of the list */
    struct cache_key key;
    char *content;
    size_t len, cap;
    uint64_t max;
};

struct cache {
    uint64_t size, used;
    uint64_t seed; /* secret, so that users who can create files cannot fill a single bucket */
    struct cached *oldest, *youngest;
    struct cached *buckets[BUCKETS];
};

/* ---- Memory ---- */

static uint64_t entry_size(const struct cached *e)
{
    return sizeof *e + e->cap;
}

static void remove_entry(struct cached *e)
{
    struct cache *c = e->cache;
    struct cached **at = &c->buckets[e->hash % BUCKETS];
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    *(e->older ? &e->older->younger : &c->oldest) = e->younger;
    *(e->younger ? &e->younger->older : &c->youngest) = e->older;
    e->older = e->younger = NULL;
    compress_cached_release(e);
}

void compress_cached_release(void *cached)
{
    struct cached *e = cached;
    if (--e->refs)
        return;
    e->cache->used -= entry_size(e);
    mk_mem_free(e->content);
    mk_mem_free(e);
}

/* Evicts only copies that no response is sending: removing any other copy would not free its memory. */
static bool evict_to_fit(struct cache *c, uint64_t more)
{
    if (more > c->size)
        return false;
    for (struct cached *e = c->oldest; e && c->used + more > c->size;) {
        struct cached *younger = e->younger;
        if (e->refs == 1)
            remove_entry(e);
        e = younger;
    }
    return c->used + more <= c->size;
}

struct cache *compress_cache_new(uint64_t size)
{
    struct cache *c = mk_mem_zalloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->size = size;
    mk_random(&c->seed, sizeof c->seed);
    return c;
}

void compress_cache_free(struct cache *c)
{
    while (c && c->oldest)
        remove_entry(c->oldest);
    mk_mem_free(c);
}

/* ---- Lookup ---- */

static uint64_t hash_mix(uint64_t h, uint64_t number)
{
    h = (h ^ number) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 29;
}

static uint64_t hash_key(const struct cache *c, const struct cache_key *key)
{
    return hash_mix(hash_mix(hash_mix(c->seed, key->file.inode), key->file.device), key->coding);
}

static bool is_same_file(const struct cache_key *a, const struct cache_key *b)
{
    return a->file.inode == b->file.inode && a->file.device == b->file.device && a->coding == b->coding;
}

static bool is_same_version(const struct mk_file_id *a, const struct mk_file_id *b)
{
    return a->size == b->size && a->modified_ns == b->modified_ns && a->changed_ns == b->changed_ns;
}

static struct cached *find_entry(const struct cache *c, const struct cache_key *key, uint64_t hash)
{
    struct cached *e = c->buckets[hash % BUCKETS];
    while (e && (e->hash != hash || !is_same_file(&e->key, key)))
        e = e->next;
    return e;
}

static void insert_entry(struct cached *e)
{
    struct cache *c = e->cache;
    struct cached **bucket = &c->buckets[e->hash % BUCKETS];
    e->next = *bucket;
    *bucket = e;
    e->older = c->youngest;
    *(c->youngest ? &c->youngest->younger : &c->oldest) = e;
    c->youngest = e;
    e->refs++;
}

struct cached *compress_cache_acquire(struct cache *c, const struct cache_key *key)
{
    struct cached *e = find_entry(c, key, hash_key(c, key));
    if (!e)
        return NULL;
    e->refs++;
    remove_entry(e);
    if (is_same_version(&e->key.file, &key->file)) {
        insert_entry(e); /* moves it to the end of the list, as the most recently used entry */
        return e;
    }
    compress_cached_release(e);
    return NULL;
}

mk_str compress_cached_body(const struct cached *e)
{
    return mk_str_of(e->content ? e->content : "", e->len);
}

/* ---- Creating entries ---- */

struct cached *compress_cache_begin_entry(struct cache *c, const struct cache_key *key, uint64_t max)
{
    struct cached *e = evict_to_fit(c, sizeof *e) ? mk_mem_alloc(sizeof *e) : NULL;
    if (!e)
        return NULL;
    *e = (struct cached){
        .cache = c, .hash = hash_key(c, key), .refs = 1, .key = *key, .max = max < c->size ? max : c->size};
    c->used += entry_size(e);
    return e;
}

static bool resize_entry(struct cached *e, size_t cap)
{
    if (cap > e->cap && !evict_to_fit(e->cache, cap - e->cap))
        return false;
    char *p = mk_mem_realloc(e->content, cap);
    if (!p)
        return false;
    e->content = p;
    e->cache->used += cap;
    e->cache->used -= e->cap;
    e->cap = cap;
    return true;
}

bool compress_cached_append(struct cached *e, mk_str bytes)
{
    if (bytes.len > e->max - e->len)
        return false;
    size_t needed = e->len + bytes.len, cap = e->cap ? 2 * e->cap : FIRST_CAP;
    if (cap < needed)
        cap = needed;
    if (cap > e->max)
        cap = (size_t)e->max;
    if (needed > e->cap && !resize_entry(e, cap))
        return false;
    memcpy(e->content + e->len, bytes.p, bytes.len);
    e->len = needed;
    return true;
}

void compress_cached_commit(struct cached *e)
{
    struct cached *old = find_entry(e->cache, &e->key, e->hash);
    if (old)
        remove_entry(old);
    if (e->len && e->len < e->cap)
        (void)resize_entry(e, e->len);
    insert_entry(e);
    compress_cached_release(e);
}

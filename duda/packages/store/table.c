/* SPDX-License-Identifier: Apache-2.0 */
/* Each shard has a lock, buckets and blocks; an entry is a chain of blocks. When no block is free, the CLOCK
 * algorithm walks over the blocks and evicts entries that have expired or have not been used since its last
 * round. If that is not enough, other entries are evicted: values before persistent entries, and among these
 * the first to expire. */
#include "table.h"

#include <duda/shm_mutex.h>
#include <errno.h>
#include <monkey/text.h>
#include <stdatomic.h>

enum { BLOCKS_OF_BUCKET = 2, BLOCK = 128, LINE = 64, SAMPLE = 64 };
/* Limits the steps of the clock hand in one call, in addition to those that the value needs: a scan of a
 * whole shard would take milliseconds in a large table, which clients can fill with persistent entries. The
 * next call continues where this one stopped. */
enum { STEPS = 1024, STEPS_OF_BLOCK = 2 };
/* In a large table, the share of a client is estimated from SHARE_SAMPLE blocks. */
enum { SHARE_SAMPLE = 1024 };

enum state { FREE, FIRST, LATER };

/* The header of an entry's first block. */
struct entry {
    uint64_t expires;
    uint32_t after; /* next entry in the bucket */
    uint32_t bucket;
    uint32_t key_len, value_len;
    bool is_persistent, is_used;
    uint32_t owner; /* hash of the client's address; 0: none */
};

/* Block numbers start at 1; 0 is none. */
struct block {
    uint32_t next; /* next block of the entry (0: none), or of the free list (0: the following block) */
    uint32_t state;
    _Alignas(struct entry) char bytes[BLOCK - 8];
};

struct store_shard {
    _Atomic uint32_t is_ready;
    struct mk_hash_key key; /* secret; only the key of the first shard is used */
    pthread_mutex_t lock;
    uint32_t free, n_free, hand;
    _Alignas(LINE) struct block
        blocks[]; /* a short entry fits into one cache line, so costs one cache miss; buckets follow */
};

/* A locked shard. */
struct locked_shard {
    struct store_shard *shard;
    uint32_t *buckets;
    uint32_t n, bucket;
    mk_str key;
    uint64_t now;
    bool evicts_persistent;
    uint32_t owner; /* owner of a new entry */
};

static struct store_shard *shard_at(const struct store_table *t, size_t i)
{
    return (struct store_shard *)(void *)(t->memory + i * t->shard_size);
}

static struct block *block_at(const struct locked_shard *v, uint32_t i)
{
    return &v->shard->blocks[i - 1];
}

static struct entry *entry_at(const struct locked_shard *v, uint32_t i)
{
    return (struct entry *)(void *)block_at(v, i)->bytes;
}

/* ---- Layout ---- */

static uint32_t *buckets_of(struct store_shard *p, uint32_t n)
{
    return (uint32_t *)(void *)&p->blocks[n];
}

static uint32_t bucket_count(uint32_t n)
{
    return n / BLOCKS_OF_BUCKET + 1;
}

/* Marks all blocks as free. Zeroed blocks form a valid list, so the kernel need not provide their memory
 * yet. */
static void init_free_list(struct store_shard *p, uint32_t n)
{
    p->free = 1;
    p->n_free = n;
    p->hand = 1;
}

static void clear_shard(struct store_shard *p, uint32_t n)
{
    memset(buckets_of(p, n), 0, bucket_count(n) * sizeof(uint32_t));
    for (uint32_t i = 0; i < n; i++) {
        p->blocks[i].next = 0;
        p->blocks[i].state = FREE;
    }
    init_free_list(p, n);
}

int store_table_init(struct store_table *t, void *memory, size_t size)
{
    t->memory = memory;
    t->shard_size = size / STORE_SHARDS / 4096 * 4096;
    if (t->shard_size < sizeof(struct store_shard) + BLOCK + 2 * sizeof(uint32_t))
        return -EINVAL;
    size_t space = t->shard_size - sizeof(struct store_shard) - 2 * sizeof(uint32_t);
    size_t n = space / (BLOCK + sizeof(uint32_t) / BLOCKS_OF_BUCKET);
    if (n > UINT32_MAX - 1)
        return -EINVAL;
    t->n_blocks = (uint32_t)n;
    for (size_t i = 0; i < STORE_SHARDS; i++) {
        struct store_shard *p = shard_at(t, i);
        if (atomic_load(&p->is_ready))
            continue;
        int e = duda_shm_mutex_init(&p->lock);
        if (e)
            return e;
        init_free_list(p, t->n_blocks);
        mk_random(&p->key, sizeof p->key);
        atomic_store(&p->is_ready, 1);
    }
    return 0;
}

void store_table_hash_key(const struct store_table *t, mk_str key, unsigned char out[STORE_SHORT_KEY])
{
    const uint64_t both[] = {mk_hash(&shard_at(t, 0)->key, key), mk_hash(&shard_at(t, 1)->key, key)};
    memcpy(out, both, sizeof both);
}

/* ---- Locks ---- */

static int lock_shard(const struct store_table *t, mk_str key, uint64_t now, struct locked_shard *v)
{
    uint64_t hash = mk_hash(&shard_at(t, 0)->key, key);
    struct store_shard *shard = shard_at(t, hash % STORE_SHARDS);
    *v = (struct locked_shard){.shard = shard,
                               .buckets = buckets_of(shard, t->n_blocks),
                               .n = t->n_blocks,
                               .bucket = (uint32_t)(hash >> 32) % bucket_count(t->n_blocks),
                               .key = key,
                               .now = now,
                               .evicts_persistent = t->evicts_persistent};
    int e = duda_shm_mutex_lock(&v->shard->lock);
    if (e == -EOWNERDEAD) {
        clear_shard(v->shard, v->n);
        e = 0;
    }
    return e;
}

static int unlock_shard(const struct locked_shard *v, int e)
{
    pthread_mutex_unlock(&v->shard->lock);
    return e;
}

/* ---- Bytes of an entry ---- */

/* The position of the next byte of a chain. */
struct cursor {
    uint32_t block;
    size_t at;
};

static struct cursor value_start(uint32_t first)
{
    return (struct cursor){first, sizeof(struct entry)};
}

static mk_str next_entry_piece(const struct locked_shard *v, struct cursor *p, size_t max)
{
    struct block *b = block_at(v, p->block);
    if (p->at == sizeof b->bytes && b->next) {
        *p = (struct cursor){b->next, 0};
        b = block_at(v, p->block);
    }
    size_t left = sizeof b->bytes - p->at, n = left < max ? left : max;
    mk_str piece = mk_str_of(b->bytes + p->at, n);
    p->at += n;
    return piece;
}

static bool entry_text_matches(const struct locked_shard *v, struct cursor *p, mk_str text)
{
    const struct block *b = block_at(v, p->block);
    bool same = true;
    if (text.len <= sizeof b->bytes - p->at) {
        p->at += text.len;
        return memcmp(b->bytes + p->at - text.len, text.p, text.len) == 0;
    }
    while (text.len) {
        mk_str piece = next_entry_piece(v, p, text.len);
        same = same && memcmp(piece.p, text.p, piece.len) == 0;
        text = mk_str_skip(text, piece.len);
    }
    return same;
}

static void copy_text_to_entry(const struct locked_shard *v, struct cursor *p, mk_str text)
{
    while (text.len) {
        struct block *b = block_at(v, p->block);
        if (p->at == sizeof b->bytes) {
            *p = (struct cursor){b->next, 0};
            continue;
        }
        size_t left = sizeof b->bytes - p->at, n = left < text.len ? left : text.len;
        memcpy(b->bytes + p->at, text.p, n);
        p->at += n;
        text = mk_str_skip(text, n);
    }
}

/* ---- Entries ---- */

static void delete_entry(const struct locked_shard *v, uint32_t first)
{
    const struct entry *e = entry_at(v, first);
    uint32_t *at = &v->buckets[e->bucket], last = first;
    while (*at != first)
        at = &entry_at(v, *at)->after;
    *at = e->after;
    for (;; last = block_at(v, last)->next) {
        block_at(v, last)->state = FREE;
        v->shard->n_free++;
        if (!block_at(v, last)->next)
            break;
    }
    block_at(v, last)->next = v->shard->free;
    v->shard->free = first;
}

static bool is_entry_expired(const struct locked_shard *v, const struct entry *e)
{
    return e->expires && e->expires <= v->now;
}

/* Returns the first block of the entry; 0 if there is none. */
static uint32_t find_entry(const struct locked_shard *v, struct cursor *value)
{
    for (uint32_t i = v->buckets[v->bucket]; i; i = entry_at(v, i)->after) {
        struct entry *e = entry_at(v, i);
        *value = value_start(i);
        if (e->key_len != v->key.len || !entry_text_matches(v, value, v->key))
            continue;
        if (!is_entry_expired(v, e)) {
            if (!e->is_used) /* a needless write would remove the cache line from other CPUs */
                e->is_used = true;
            return i;
        }
        delete_entry(v, i);
        return 0;
    }
    return 0;
}

/* One step of the CLOCK algorithm: evicts an entry that has expired, or that is not persistent and has
 * not been used since the last pass. */
static void evict_entry_unless_used(const struct locked_shard *v, uint32_t i)
{
    struct entry *e = entry_at(v, i);
    if (is_entry_expired(v, e) || (!e->is_persistent && !e->is_used))
        delete_entry(v, i);
    else
        e->is_used = false;
}

static size_t blocks_needed(size_t key_len, size_t value_len)
{
    size_t each = sizeof((struct block *)0)->bytes;
    return (sizeof(struct entry) + key_len + value_len + each - 1) / each;
}

static size_t eviction_steps(size_t n)
{
    return STEPS + STEPS_OF_BLOCK * n;
}

static uint32_t advance_clock_hand(const struct locked_shard *v)
{
    uint32_t i = v->shard->hand;
    v->shard->hand = i < v->n ? i + 1 : 1;
    return i;
}

static bool evict_unused_until_free(const struct locked_shard *v, size_t n)
{
    for (size_t steps = eviction_steps(n); v->shard->n_free < n && steps; steps--) {
        uint32_t i = advance_clock_hand(v);
        if (block_at(v, i)->state == FIRST)
            evict_entry_unless_used(v, i);
    }
    return v->shard->n_free >= n;
}

/* Returns whether `a` is evicted before `b`. Values are evicted before persistent entries; among equals, the
 * first to expire, where 0 means never. */
static bool is_evicted_before(const struct entry *a, const struct entry *b)
{
    return a->is_persistent != b->is_persistent ? b->is_persistent : a->expires - 1 < b->expires - 1;
}

/* Returns the best entry to evict among the next ones under the clock hand; 0 if there is none. */
static uint32_t find_eviction(const struct locked_shard *v, uint32_t old)
{
    uint32_t best = 0;
    unsigned n = 0;
    for (uint32_t steps = 0; steps < v->n && n < SAMPLE && !(best && steps >= STEPS); steps++) {
        uint32_t i = advance_clock_hand(v);
        if (block_at(v, i)->state != FIRST || i == old)
            continue;
        n++;
        if (!best || is_evicted_before(entry_at(v, i), entry_at(v, best)))
            best = i;
    }
    return best;
}

static bool evict_entries(const struct locked_shard *v, size_t n, uint32_t old)
{
    uint32_t i;
    while (v->shard->n_free < n && (i = find_eviction(v, old)))
        delete_entry(v, i);
    return v->shard->n_free >= n;
}

/* Makes n blocks available. The blocks of the entry `old`, which will be replaced, count as free, but the
 * entry stays until the operation is sure to succeed. */
static bool reserve_blocks(const struct locked_shard *v, size_t n, uint32_t old)
{
    if (!old)
        return evict_unused_until_free(v, n) || (v->evicts_persistent && evict_entries(v, n, 0));
    struct entry *e = entry_at(v, old);
    size_t has = blocks_needed(e->key_len, e->value_len);
    bool is_persistent = e->is_persistent;
    e->is_persistent = true;
    size_t more = n > has ? n - has : 0;
    bool is_reserved =
        evict_unused_until_free(v, more) || (v->evicts_persistent && evict_entries(v, more, old));
    e->is_persistent = is_persistent;
    return is_reserved;
}

/* Returns whether the client of the new entry owns half of the memory. Examines the blocks, because a dying
 * process could leave a counter with a wrong value. */
static bool exceeds_client_share(const struct locked_shard *v)
{
    uint32_t n = v->n < SHARE_SAMPLE ? v->n : SHARE_SAMPLE, stride = v->n / n,
             at = v->shard->hand % stride + 1, own = 0;
    if (!v->owner || v->n - v->shard->n_free < v->n / 2)
        return false;
    for (uint32_t i = 0; i < n; i++, at += stride) {
        const struct entry *e = entry_at(v, at);
        own += block_at(v, at)->state == FIRST && e->owner == v->owner && !is_entry_expired(v, e);
    }
    return own >= n / 2;
}

static uint32_t next_free_block(const struct locked_shard *v, uint32_t i)
{
    uint32_t next = block_at(v, i)->next;
    return next ? next : i + 1;
}

/* Allocates a chain of n blocks, which must be available. */
static uint32_t alloc_blocks(const struct locked_shard *v, size_t n)
{
    uint32_t first = v->shard->free, last = first;
    block_at(v, first)->state = FIRST;
    for (size_t i = 1; i < n; i++) {
        uint32_t next = next_free_block(v, last);
        block_at(v, last)->next = next;
        block_at(v, next)->state = LATER;
        last = next;
    }
    v->shard->free = next_free_block(v, last);
    v->shard->n_free -= (uint32_t)n;
    block_at(v, last)->next = 0;
    return first;
}

/* Writes a new entry that replaces `old` (0: none). On failure, `old` stays. */
static int write_entry(const struct locked_shard *v, uint32_t old, mk_str value, uint64_t expires,
                       bool is_persistent)
{
    size_t n = blocks_needed(v->key.len, value.len);
    if (value.len > STORE_VALUE_MAX || n > v->n)
        return -EMSGSIZE;
    if (!reserve_blocks(v, n, old))
        return -ENOSPC;
    if (old)
        delete_entry(v, old);
    uint32_t first = alloc_blocks(v, n);
    *entry_at(v, first) = (struct entry){.expires = expires,
                                         .after = v->buckets[v->bucket],
                                         .bucket = v->bucket,
                                         .key_len = (uint32_t)v->key.len,
                                         .value_len = (uint32_t)value.len,
                                         .is_persistent = is_persistent,
                                         .owner = v->owner};
    struct cursor p = value_start(first);
    copy_text_to_entry(v, &p, v->key);
    copy_text_to_entry(v, &p, value);
    v->buckets[v->bucket] = first;
    return 0;
}

/* ---- Interface ---- */

/* Copies the value, and terminates it with a NUL. */
static int copy_value_out(const struct locked_shard *v, struct cursor *p, size_t len, char *out,
                          mk_str *value)
{
    if (!out)
        return -ENOMEM;
    for (size_t at = 0; at < len;) {
        mk_str piece = next_entry_piece(v, p, len - at);
        memcpy(out + at, piece.p, piece.len);
        at += piece.len;
    }
    out[len] = 0;
    *value = mk_str_of(out, len);
    return 0;
}

int store_table_get(const struct store_table *t, mk_str key, uint64_t now,
                    void *(*alloc)(void *ctx, size_t size), void *ctx, mk_str *value)
{
    struct locked_shard v;
    struct cursor p;
    int e = lock_shard(t, key, now, &v);
    if (e)
        return e;
    uint32_t i = find_entry(&v, &p);
    size_t len = i ? entry_at(&v, i)->value_len : 0;
    return unlock_shard(&v, i ? copy_value_out(&v, &p, len, alloc(ctx, len + 1), value) : -ENOENT);
}

static int set_value(const struct store_table *t, mk_str key, mk_str value, uint64_t now, uint64_t expires,
                     bool must_exist)
{
    struct locked_shard v;
    struct cursor p;
    int e = lock_shard(t, key, now, &v);
    if (e)
        return e;
    uint32_t old = find_entry(&v, &p);
    if (!old && must_exist)
        return unlock_shard(&v, -ENOENT);
    return unlock_shard(&v, write_entry(&v, old, value, expires, false));
}

int store_table_set(const struct store_table *t, mk_str key, mk_str value, uint64_t now, uint64_t expires)
{
    return set_value(t, key, value, now, expires, false);
}

int store_table_replace(const struct store_table *t, mk_str key, mk_str value, uint64_t now, uint64_t expires)
{
    return set_value(t, key, value, now, expires, true);
}

int store_table_add(const struct store_table *t, uint32_t owner, mk_str key, mk_str value, uint64_t now,
                    uint64_t expires)
{
    struct locked_shard v;
    struct cursor p;
    int e = lock_shard(t, key, now, &v);
    if (e)
        return e;
    v.owner = owner;
    if (find_entry(&v, &p))
        return unlock_shard(&v, -EEXIST);
    return unlock_shard(&v, exceeds_client_share(&v) ? -EDQUOT : write_entry(&v, 0, value, expires, true));
}

uint32_t store_table_client_id(const struct store_table *t, mk_str address)
{
    uint32_t owner = (uint32_t)mk_hash(&shard_at(t, 0)->key, address);
    return owner ? owner : 1;
}

int store_table_delete_if(const struct store_table *t, mk_str key, mk_str value, uint64_t now)
{
    struct locked_shard v;
    struct cursor p;
    int e = lock_shard(t, key, now, &v);
    if (e)
        return e;
    uint32_t i = find_entry(&v, &p);
    if (value.p && (!i || entry_at(&v, i)->value_len != value.len || !entry_text_matches(&v, &p, value)))
        return unlock_shard(&v, -ESTALE);
    if (i)
        delete_entry(&v, i);
    return unlock_shard(&v, i ? 0 : -ENOENT);
}

/* Parses a number, which is stored as decimal text, as in other stores. */
static int parse_number(const struct locked_shard *v, uint32_t i, struct cursor *p, int64_t *out)
{
    char buf[24];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    uint64_t n = 0;
    for (size_t left = entry_at(v, i)->value_len; left && !text.failed;) {
        mk_str piece = next_entry_piece(v, p, left);
        mk_buf_add(&text, piece);
        left -= piece.len;
    }
    mk_str digits = mk_buf_str(&text);
    bool is_negative = mk_str_starts(digits, MK_STR("-"));
    if (text.failed || !mk_num_parse(mk_str_skip(digits, is_negative), &n) || n > INT64_MAX)
        return -EDOM;
    *out = is_negative ? -(int64_t)n : (int64_t)n;
    return 0;
}

static int increment_value(const struct locked_shard *v, int64_t delta, uint64_t expires, int64_t *sum)
{
    char buf[24];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    struct cursor p;
    int64_t n = 0;
    uint32_t old = find_entry(v, &p);
    int e = old ? parse_number(v, old, &p, &n) : 0;
    if (e || __builtin_add_overflow(n, delta, sum))
        return -EDOM;
    if (old)
        expires = entry_at(v, old)->expires;
    mk_buf_add_int(&text, *sum);
    return write_entry(v, old, mk_buf_str(&text), expires, true);
}

int store_table_incr(const struct store_table *t, mk_str key, int64_t delta, uint64_t now, uint64_t expires,
                     int64_t *sum)
{
    struct locked_shard v;
    int e = lock_shard(t, key, now, &v);
    return e ? e : unlock_shard(&v, increment_value(&v, delta, expires, sum));
}

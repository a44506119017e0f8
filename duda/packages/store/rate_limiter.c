/* SPDX-License-Identifier: Apache-2.0 */
#include "rate_limiter.h"

#include <duda/shm_mutex.h>
#include <errno.h>
#include <monkey/text.h>
#include <stdatomic.h>
#include <string.h>

enum { PAGE = 4096 };

struct counter {
    uint64_t subject; /* hash of the key; 0: unused */
    uint64_t expires;
    uint64_t n, max;
};

struct bucket {
    struct counter counters[STORE_RATE_LIMITER_WAYS];
};

struct store_rate_limiter_shard {
    _Atomic uint32_t is_ready;
    struct mk_hash_key key; /* secret; only the key of the first shard is used */
    pthread_mutex_t lock;
    _Alignas(64) struct bucket lines[];
};

static struct store_rate_limiter_shard *shard_at(const struct store_rate_limiter *c, size_t i)
{
    return (struct store_rate_limiter_shard *)(void *)(c->memory + i * c->shard_size);
}

int store_rate_limiter_init(struct store_rate_limiter *c, void *memory, size_t size)
{
    c->memory = memory;
    c->shard_size = size / STORE_RATE_LIMITER_SHARDS / PAGE * PAGE;
    if (c->shard_size < sizeof(struct store_rate_limiter_shard) + sizeof(struct bucket))
        return -EINVAL;
    c->n_lines =
        (uint32_t)((c->shard_size - sizeof(struct store_rate_limiter_shard)) / sizeof(struct bucket));
    for (size_t i = 0; i < STORE_RATE_LIMITER_SHARDS; i++) {
        struct store_rate_limiter_shard *p = shard_at(c, i);
        int e = atomic_load(&p->is_ready) ? 0 : duda_shm_mutex_init(&p->lock);
        if (e)
            return e;
        if (!atomic_load(&p->is_ready))
            mk_random(&p->key, sizeof p->key);
        atomic_store(&p->is_ready, 1);
    }
    return 0;
}

static bool is_counter_expired(const struct counter *c, uint64_t now)
{
    return !c->subject || c->expires <= now;
}

/* Returns whether counter `a` is evicted before `b`: the counter further from its limit or, on a tie, the one
 * that expires first. */
static bool is_evicted_before(const struct counter *a, const struct counter *b)
{
    double of_a = (double)a->n / (double)a->max, of_b = (double)b->n / (double)b->max;
    return of_a < of_b || (of_a <= of_b && a->expires < b->expires);
}

/* Returns the counter of the subject, or else the counter to evict. */
static struct counter *find_counter(struct bucket *bucket, uint64_t subject, uint64_t now)
{
    struct counter *best = &bucket->counters[0];
    for (size_t i = 0; i < STORE_RATE_LIMITER_WAYS; i++) {
        struct counter *c = &bucket->counters[i];
        if (c->subject == subject && !is_counter_expired(c, now))
            return c;
        if (!is_counter_expired(best, now) && (is_counter_expired(c, now) || is_evicted_before(c, best)))
            best = c;
    }
    return best;
}

static int count_bucket_use(struct bucket *bucket, uint64_t subject, uint64_t max, uint64_t now,
                            uint64_t expires)
{
    struct counter *c = find_counter(bucket, subject, now);
    if (c->subject != subject || is_counter_expired(c, now))
        *c = (struct counter){.subject = subject, .expires = expires};
    c->max = max ? max : 1;
    if (c->n <= max)
        c->n++;
    return c->n > max ? -EDQUOT : 0;
}

/* A token bucket is stored as a counter that expires when the bucket is full. Its count, which the choice of
 * the counter to evict depends on, is the time until then. */
static int take_bucket_token(struct bucket *bucket, uint64_t subject, uint64_t interval, uint64_t refill,
                             uint64_t now, uint64_t *left)
{
    struct counter *c = find_counter(bucket, subject, now);
    uint64_t is_full_at = c->subject == subject && !is_counter_expired(c, now) ? c->expires : now;
    if (is_full_at - now + interval > refill) {
        *left = is_full_at - now + interval - refill;
        return -EDQUOT;
    }
    *left = is_full_at - now + interval;
    *c = (struct counter){.subject = subject, .expires = now + *left, .n = *left, .max = refill};
    return 0;
}

/* Returns the locked shard of the key; NULL if another process has held it for too long. */
static struct store_rate_limiter_shard *lock_shard(const struct store_rate_limiter *c, uint64_t subject)
{
    struct store_rate_limiter_shard *p = shard_at(c, subject % STORE_RATE_LIMITER_SHARDS);
    int e = duda_shm_mutex_lock(&p->lock);
    if (e == -EBUSY)
        return NULL;
    if (e)
        memset(p->lines, 0, c->n_lines * sizeof *p->lines);
    return p;
}

static struct bucket *bucket_of(const struct store_rate_limiter *c, struct store_rate_limiter_shard *shard,
                                uint64_t subject)
{
    return &shard->lines[(subject >> 8) % c->n_lines];
}

int store_rate_limiter_count(const struct store_rate_limiter *c, mk_str key, uint64_t max, uint64_t now,
                             uint64_t expires)
{
    uint64_t subject = mk_hash(&shard_at(c, 0)->key, key);
    struct store_rate_limiter_shard *p = lock_shard(c, subject);
    if (!p)
        return -EBUSY;
    int e = count_bucket_use(bucket_of(c, p, subject), subject ? subject : 1, max, now, expires);
    pthread_mutex_unlock(&p->lock);
    return e;
}

int store_rate_limiter_take_token(const struct store_rate_limiter *c, mk_str key, uint64_t interval,
                                  uint64_t refill, uint64_t now, uint64_t *left)
{
    uint64_t subject = mk_hash(&shard_at(c, 0)->key, key);
    struct store_rate_limiter_shard *p = lock_shard(c, subject);
    if (!p)
        return -EBUSY;
    int e = take_bucket_token(bucket_of(c, p, subject), subject ? subject : 1, interval, refill, now, left);
    pthread_mutex_unlock(&p->lock);
    return e;
}

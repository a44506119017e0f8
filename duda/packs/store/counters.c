/* SPDX-License-Identifier: Apache-2.0 */
#include "counters.h"

#include <errno.h>
#include <monkey/text.h>
#include <stdatomic.h>
#include <string.h>

#include "shared_lock.h"

enum { PAGE = 4096 };

struct counter {
    uint64_t subject; /* a hash of its key; 0: none */
    uint64_t expires;
    uint64_t n, max;
};

struct line {
    struct counter counters[STORE_COUNTER_WAYS];
};

struct store_counter_part {
    _Atomic uint32_t is_ready;
    struct mk_hash_key key; /* that of the first part counts: clients may choose names */
    pthread_mutex_t lock;
    _Alignas(64) struct line lines[];
};

static struct store_counter_part *part_at(const struct store_counters *c, size_t i)
{
    return (struct store_counter_part *)(void *)(c->memory + i * c->part_size);
}

int store_counters_begin(struct store_counters *c, void *memory, size_t size)
{
    c->memory = memory;
    c->part_size = size / STORE_COUNTER_PARTS / PAGE * PAGE;
    if (c->part_size < sizeof(struct store_counter_part) + sizeof(struct line))
        return -EINVAL;
    c->n_lines = (uint32_t)((c->part_size - sizeof(struct store_counter_part)) / sizeof(struct line));
    for (size_t i = 0; i < STORE_COUNTER_PARTS; i++) {
        struct store_counter_part *p = part_at(c, i);
        int e = atomic_load(&p->is_ready) ? 0 : store_shared_lock_make(&p->lock);
        if (e)
            return e;
        if (!atomic_load(&p->is_ready))
            mk_random(&p->key, sizeof p->key);
        atomic_store(&p->is_ready, 1);
    }
    return 0;
}

static bool is_over(const struct counter *c, uint64_t now)
{
    return !c->subject || c->expires <= now;
}

/* Is it further from its limit? Of two that are as far, the one that is over first. */
static bool is_less(const struct counter *a, const struct counter *b)
{
    double of_a = (double)a->n / (double)a->max, of_b = (double)b->n / (double)b->max;
    return of_a < of_b || (of_a <= of_b && a->expires < b->expires);
}

/* The counter of the subject, or the one that it replaces. */
static struct counter *find(struct line *line, uint64_t subject, uint64_t now)
{
    struct counter *best = &line->counters[0];
    for (size_t i = 0; i < STORE_COUNTER_WAYS; i++) {
        struct counter *c = &line->counters[i];
        if (c->subject == subject && !is_over(c, now))
            return c;
        if (!is_over(best, now) && (is_over(c, now) || is_less(c, best)))
            best = c;
    }
    return best;
}

static int use(struct line *line, uint64_t subject, uint64_t max, uint64_t now, uint64_t expires)
{
    struct counter *c = find(line, subject, now);
    if (c->subject != subject || is_over(c, now))
        *c = (struct counter){.subject = subject, .expires = expires};
    c->max = max ? max : 1;
    if (c->n <= max)
        c->n++;
    return c->n > max ? -EDQUOT : 0;
}

int store_counters_use(const struct store_counters *c, mk_str key, uint64_t max, uint64_t now,
                       uint64_t expires)
{
    uint64_t subject = mk_hash(&part_at(c, 0)->key, key);
    struct store_counter_part *p = part_at(c, subject % STORE_COUNTER_PARTS);
    int e = store_shared_lock_take(&p->lock);
    if (e == -EBUSY)
        return e;
    if (e)
        memset(p->lines, 0, c->n_lines * sizeof *p->lines);
    struct line *line = &p->lines[(subject >> 8) % c->n_lines];
    e = use(line, subject ? subject : 1, max, now, expires);
    pthread_mutex_unlock(&p->lock);
    return e;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "service/lock_table.h"

#include <errno.h>
#include <monkey/mem.h>
#include <monkey/text.h>

/* A hash table of fixed size: locks exist only while handlers use them. */
enum { BUCKETS = 512 };

struct duda_lock_queue {
    struct duda_lock_queue *next;
    uint64_t hash;
    struct duda_lock_waiter *first, **end;
    size_t len;
    char name[];
};

struct duda_lock_table {
    struct mk_hash_key key; /* keyed hash, because clients may choose names */
    struct duda_lock_queue *buckets[BUCKETS];
};

struct duda_lock_table *duda_lock_table_new(void)
{
    struct duda_lock_table *l = mk_mem_zalloc(1, sizeof *l);
    if (l)
        mk_random(&l->key, sizeof l->key);
    return l;
}

void duda_lock_table_free(struct duda_lock_table *l)
{
    mk_mem_free(l);
}

static struct duda_lock_queue **find_lock_queue(struct duda_lock_table *l, mk_str name, uint64_t hash)
{
    struct duda_lock_queue **at = &l->buckets[hash % BUCKETS];
    while (*at && !((*at)->hash == hash && mk_str_eq(mk_str_of((*at)->name, (*at)->len), name)))
        at = &(*at)->next;
    return at;
}

static struct duda_lock_queue *get_or_create_lock_queue(struct duda_lock_table *l, mk_str name)
{
    uint64_t hash = mk_hash(&l->key, name);
    struct duda_lock_queue **at = find_lock_queue(l, name, hash), *made = *at;
    if (made)
        return made;
    made = mk_mem_zalloc(1, sizeof *made + name.len);
    if (!made)
        return NULL;
    memcpy(made->name, name.p, name.len);
    made->len = name.len;
    made->hash = hash;
    made->end = &made->first;
    *at = made;
    return made;
}

int duda_lock_table_enqueue(struct duda_lock_table *l, mk_str name, struct duda_lock_waiter *c)
{
    struct duda_lock_queue *lock = get_or_create_lock_queue(l, name);
    if (!lock)
        return -ENOMEM;
    c->lock = lock;
    c->next = NULL;
    c->at = lock->end;
    *lock->end = c;
    lock->end = &c->next;
    return 0;
}

bool duda_lock_waiter_has_lock(const struct duda_lock_waiter *c)
{
    return c->lock->first == c;
}

const struct duda_lock_waiter *duda_lock_waiter_holder(const struct duda_lock_waiter *c)
{
    return c->lock->first;
}

mk_str duda_lock_waiter_name(const struct duda_lock_waiter *c)
{
    return mk_str_of(c->lock->name, c->lock->len);
}

void duda_lock_table_dequeue(struct duda_lock_table *l, struct duda_lock_waiter *c)
{
    struct duda_lock_queue *lock = c->lock;
    bool had = duda_lock_waiter_has_lock(c);
    *c->at = c->next;
    if (c->next)
        c->next->at = c->at;
    else
        lock->end = c->at;
    c->lock = NULL;
    if (!lock->first) {
        *find_lock_queue(l, mk_str_of(lock->name, lock->len), lock->hash) = lock->next;
        mk_mem_free(lock);
    } else if (had) {
        lock->first->on_lock_granted(lock->first->owner);
    }
}

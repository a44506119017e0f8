/* SPDX-License-Identifier: Apache-2.0 */
#include "service/locks.h"

#include <errno.h>
#include <monkey/mem.h>
#include <monkey/text.h>

/* A table of one size: locks exist only while a handler has them. */
enum { BUCKETS = 512 };

struct duda_locked {
    struct duda_locked *next;
    uint64_t hash;
    struct duda_claim *first, **end;
    size_t len;
    char name[];
};

struct duda_locks {
    struct mk_hash_key key; /* clients may choose names */
    struct duda_locked *buckets[BUCKETS];
};

struct duda_locks *duda_locks_new(void)
{
    struct duda_locks *l = mk_mem_zalloc(1, sizeof *l);
    if (l)
        mk_random(&l->key, sizeof l->key);
    return l;
}

void duda_locks_free(struct duda_locks *l)
{
    mk_mem_free(l);
}

static struct duda_locked **find(struct duda_locks *l, mk_str name, uint64_t hash)
{
    struct duda_locked **at = &l->buckets[hash % BUCKETS];
    while (*at && !((*at)->hash == hash && mk_str_eq(mk_str_of((*at)->name, (*at)->len), name)))
        at = &(*at)->next;
    return at;
}

static struct duda_locked *make(struct duda_locks *l, mk_str name)
{
    uint64_t hash = mk_hash(&l->key, name);
    struct duda_locked **at = find(l, name, hash), *made = *at;
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

int duda_locks_enter(struct duda_locks *l, mk_str name, struct duda_claim *c)
{
    struct duda_locked *lock = make(l, name);
    if (!lock)
        return -ENOMEM;
    c->lock = lock;
    c->next = NULL;
    c->at = lock->end;
    *lock->end = c;
    lock->end = &c->next;
    return 0;
}

bool duda_locks_has(const struct duda_claim *c)
{
    return c->lock->first == c;
}

mk_str duda_locks_name(const struct duda_claim *c)
{
    return mk_str_of(c->lock->name, c->lock->len);
}

void duda_locks_leave(struct duda_locks *l, struct duda_claim *c)
{
    struct duda_locked *lock = c->lock;
    bool had = duda_locks_has(c);
    *c->at = c->next;
    if (c->next)
        c->next->at = c->at;
    else
        lock->end = c->at;
    c->lock = NULL;
    if (!lock->first) {
        *find(l, mk_str_of(lock->name, lock->len), lock->hash) = lock->next;
        mk_mem_free(lock);
    } else if (had) {
        lock->first->on_turn(lock->first->owner);
    }
}

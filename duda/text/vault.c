/* SPDX-License-Identifier: Apache-2.0 */
#include "text/vault.h"

#include <monkey/clock.h>
#include <monkey/text.h>
#include <sched.h>
#include <stdatomic.h>

enum {
    WAYS = 8, /* places that a session may be in */
    SPINS = 1000,
    STALE_S = 2, /* a place that is locked for longer belongs to a worker that has died */
};

struct place {
    _Atomic uint32_t lock; /* 0, or since when it is locked: a stamp that no later holder has */
    uint32_t len;          /* 0: free */
    int64_t ends;
    struct duda_vault_visitor visitor;
    bool came_back; /* its client has sent the number again */
    uint64_t sum;   /* a worker that dies while it writes leaves one that does not fit */
    unsigned char id[DUDA_VAULT_ID];
    char data[DUDA_SESSION_MAX];
};

struct duda_vault_memory {
    _Atomic uint32_t is_ready;
    struct mk_hash_key key;
    struct place places[];
};

static size_t sets_of(size_t n)
{
    return (n + WAYS - 1) / WAYS;
}

size_t duda_vault_size(size_t n)
{
    return sizeof(struct duda_vault_memory) + sets_of(n) * WAYS * sizeof(struct place);
}

void duda_vault_begin(struct duda_vault *v, void *memory, size_t n)
{
    v->memory = memory;
    v->n_sets = sets_of(n);
    if (!atomic_load(&v->memory->is_ready))
        mk_random(&v->memory->key, sizeof v->memory->key);
    atomic_store(&v->memory->is_ready, 1);
}

/* ---- One place ---- */

static uint32_t clock_s(void)
{
    return (uint32_t)(mk_clock_ms() / 1000) + 1; /* never 0 */
}

/* A place that is ours; `place` is NULL: it is not. */
struct hold {
    struct place *place;
    uint32_t stamp;
};

static struct hold lock(struct place *p)
{
    for (unsigned i = 0; i < SPINS; i++) {
        uint32_t since = 0, now = clock_s();
        if (atomic_compare_exchange_strong(&p->lock, &since, now))
            return (struct hold){p, now};
        bool is_stale = (int32_t)(now - since) > STALE_S; /* it may have been taken a second after `now` */
        if (is_stale && atomic_compare_exchange_strong(&p->lock, &since, now))
            return (struct hold){p, now};
        sched_yield();
    }
    return (struct hold){0};
}

/* If it took so long that another worker has taken it, it stays that one's. */
static void unlock(struct hold h)
{
    atomic_compare_exchange_strong(&h.place->lock, &h.stamp, 0);
}

static uint64_t sum_of(const struct duda_vault *v, const struct place *p)
{
    uint64_t both[2] = {mk_hash(&v->memory->key, mk_str_of((const char *)p->id, sizeof p->id)),
                        mk_hash(&v->memory->key, mk_str_of(p->data, p->len))};
    return mk_hash(&v->memory->key, mk_str_of((const char *)both, sizeof both)) ^ (uint64_t)p->ends;
}

/* It is locked. */
static bool is_live(const struct duda_vault *v, const struct place *p, int64_t now)
{
    return p->len > 0 && p->len <= DUDA_SESSION_MAX && p->ends > now && p->sum == sum_of(v, p);
}

static bool has_id(const struct place *p, const unsigned char *id)
{
    return mk_secret_eq(mk_str_of((const char *)p->id, DUDA_VAULT_ID),
                        mk_str_of((const char *)id, DUDA_VAULT_ID));
}

static void clear(struct place *p)
{
    p->len = 0;
    memset(p->id, 0, sizeof p->id);
    memset(p->data, 0, sizeof p->data);
}

/* ---- Which place ---- */

/* Numbers of sessions are random: they need no hash. */
static struct place *set_of(const struct duda_vault *v, const unsigned char *id)
{
    uint64_t bits;
    memcpy(&bits, id, sizeof bits);
    return v->memory->places + bits % v->n_sets * WAYS;
}

/* None: it is nowhere. */
static struct hold find(const struct duda_vault *v, const unsigned char *id)
{
    struct place *set = set_of(v, id);
    for (size_t i = 0; i < WAYS; i++) {
        struct hold h = has_id(&set[i], id) ? lock(&set[i]) : (struct hold){0};
        if (h.place && has_id(h.place, id))
            return h;
        if (h.place)
            unlock(h);
    }
    return (struct hold){0};
}

static bool is_free(const struct place *p, int64_t now)
{
    return p->len == 0 || p->ends <= now;
}

/* How many places an address has with one session more. */
static unsigned share_of(const struct place *set, uint64_t address, uint64_t of_new)
{
    unsigned n = address == of_new;
    for (size_t i = 0; i < WAYS; i++)
        n += set[i].visitor.address == address;
    return n;
}

/* What is compared when one session of a set must go. */
struct worth {
    bool is_known;
    unsigned share;
    bool came_back;
    int64_t ends;
};

static bool is_less(struct worth a, struct worth b)
{
    if (a.is_known != b.is_known)
        return b.is_known;
    if (a.share != b.share)
        return a.share > b.share;
    return a.came_back != b.came_back ? b.came_back : a.ends < b.ends;
}

/* A free one, or the one that is worth least. */
static struct place *choose(struct place *set, uint64_t of_new, int64_t now)
{
    struct place *best = NULL;
    struct worth least = {0};
    for (size_t i = 0; i < WAYS; i++) {
        struct place *p = &set[i];
        if (is_free(p, now))
            return p;
        struct worth w = {p->visitor.is_known, share_of(set, p->visitor.address, of_new), p->came_back,
                          p->ends};
        if (best && !is_less(w, least))
            continue;
        best = p;
        least = w;
    }
    return best;
}

/* None: its place is in use. */
static struct hold find_room(const struct duda_vault *v, const unsigned char *id,
                             const struct duda_vault_visitor *visitor, int64_t now)
{
    struct place *set = set_of(v, id);
    for (unsigned i = 0; i < SPINS; i++) {
        struct place *p = choose(set, visitor->address, now);
        int64_t ends = p->ends;
        bool was_free = is_free(p, now), was_known = p->visitor.is_known;
        struct hold h = lock(p);
        if (!h.place)
            return h;
        if (was_free ? is_free(p, now) : p->ends <= ends && p->visitor.is_known == was_known)
            return h;
        unlock(h); /* another worker has put a session there since */
    }
    return (struct hold){0};
}

/* ---- Sessions ---- */

bool duda_vault_load(const struct duda_vault *v, const unsigned char id[DUDA_VAULT_ID], int64_t now,
                     uint32_t idle, struct mk_buf *out)
{
    struct hold h = find(v, id);
    struct place *p = h.place;
    if (!p)
        return false;
    bool good = is_live(v, p, now);
    if (good) {
        mk_buf_add(out, mk_str_of(p->data, p->len));
        p->ends = now + idle;
        p->came_back = true;
        p->sum = sum_of(v, p);
    } else {
        clear(p);
    }
    unlock(h);
    return good && !out->failed;
}

static bool fits(mk_str data)
{
    return data.len && data.len <= DUDA_SESSION_MAX;
}

static void put(const struct duda_vault *v, struct place *p, const unsigned char *id, mk_str data,
                const struct duda_vault_visitor *visitor, int64_t ends)
{
    clear(p);
    p->visitor = *visitor;
    memcpy(p->id, id, DUDA_VAULT_ID);
    memcpy(p->data, data.p, data.len);
    p->ends = ends;
    p->len = (uint32_t)data.len;
    p->sum = sum_of(v, p);
}

uint64_t duda_vault_address(const struct duda_vault *v, const struct mk_peer *client)
{
    return mk_hash(&v->memory->key, mk_str_of((const char *)client->ip, sizeof client->ip));
}

bool duda_vault_save(const struct duda_vault *v, const unsigned char id[DUDA_VAULT_ID], mk_str data,
                     const struct duda_vault_visitor *visitor, int64_t now, uint32_t seconds)
{
    struct hold h = fits(data) ? find_room(v, id, visitor, now) : (struct hold){0};
    if (!h.place)
        return false;
    put(v, h.place, id, data, visitor, now + seconds);
    h.place->came_back = false;
    unlock(h);
    return true;
}

bool duda_vault_replace(const struct duda_vault *v, const unsigned char id[DUDA_VAULT_ID], mk_str data,
                        const struct duda_vault_visitor *visitor, int64_t now, uint32_t seconds)
{
    struct hold h = fits(data) ? find(v, id) : (struct hold){0};
    if (!h.place)
        return false;
    bool good = is_live(v, h.place, now);
    if (good)
        put(v, h.place, id, data, visitor, now + seconds);
    else
        clear(h.place);
    unlock(h);
    return good;
}

bool duda_vault_drop(const struct duda_vault *v, const unsigned char id[DUDA_VAULT_ID])
{
    struct hold h = find(v, id);
    if (!h.place)
        return false;
    clear(h.place);
    unlock(h);
    return true;
}

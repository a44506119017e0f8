/* SPDX-License-Identifier: Apache-2.0 */
#include "service/session_shm.h"

#include <monkey/clock.h>
#include <monkey/text.h>
#include <sched.h>
#include <stdatomic.h>

enum {
    WAYS = 8, /* slots that a session may use */
    SPINS = 1000,
    STALE_S = 2, /* a slot locked for longer belongs to a dead worker */
};

struct session_slot {
    _Atomic uint32_t slot_lock; /* 0, or the time of locking: a stamp that no later owner has */
    uint32_t len;               /* 0: free */
    int64_t ends;
    struct duda_session_shm_client client;
    bool came_back; /* the client has sent the ID again */
    uint64_t sum;   /* checksum: wrong if a worker died while writing */
    unsigned char id[DUDA_SESSION_SHM_ID];
    char data[DUDA_SESSION_MAX];
};

struct duda_session_shm_memory {
    _Atomic uint32_t is_ready;
    struct mk_hash_key key;
    struct session_slot slots[];
};

static size_t count_sets(size_t n)
{
    return (n + WAYS - 1) / WAYS;
}

size_t duda_session_shm_size(size_t n)
{
    return sizeof(struct duda_session_shm_memory) + count_sets(n) * WAYS * sizeof(struct session_slot);
}

void duda_session_shm_init(struct duda_session_shm *v, void *memory, size_t n)
{
    v->memory = memory;
    v->n_sets = count_sets(n);
    if (!atomic_load(&v->memory->is_ready))
        mk_random(&v->memory->key, sizeof v->memory->key);
    atomic_store(&v->memory->is_ready, 1);
}

/* ---- One slot ---- */

static uint32_t clock_s(void)
{
    return (uint32_t)(mk_clock_ms() / 1000) + 1; /* never 0 */
}

/* A slot locked by us; session_slot is NULL: none. */
struct locked_slot {
    struct session_slot *session_slot;
    uint32_t stamp;
};

static struct locked_slot slot_lock(struct session_slot *p)
{
    for (unsigned i = 0; i < SPINS; i++) {
        uint32_t since = 0, now = clock_s();
        if (atomic_compare_exchange_strong(&p->slot_lock, &since, now))
            return (struct locked_slot){p, now};
        bool is_stale = (int32_t)(now - since) > STALE_S; /* `since` may be a second after `now` */
        if (is_stale && atomic_compare_exchange_strong(&p->slot_lock, &since, now))
            return (struct locked_slot){p, now};
        sched_yield();
    }
    return (struct locked_slot){0};
}

/* If another worker has meanwhile taken over the lock as stale, leaves the lock to that worker. */
static void slot_unlock(struct locked_slot h)
{
    atomic_compare_exchange_strong(&h.session_slot->slot_lock, &h.stamp, 0);
}

static uint64_t slot_checksum(const struct duda_session_shm *v, const struct session_slot *p)
{
    uint64_t both[2] = {mk_hash(&v->memory->key, mk_str_of((const char *)p->id, sizeof p->id)),
                        mk_hash(&v->memory->key, mk_str_of(p->data, p->len))};
    return mk_hash(&v->memory->key, mk_str_of((const char *)both, sizeof both)) ^ (uint64_t)p->ends;
}

/* The slot must be locked. */
static bool slot_is_valid(const struct duda_session_shm *v, const struct session_slot *p, int64_t now)
{
    return p->len > 0 && p->len <= DUDA_SESSION_MAX && p->ends > now && p->sum == slot_checksum(v, p);
}

static bool slot_has_id(const struct session_slot *p, const unsigned char *id)
{
    return mk_consttime_eq(mk_str_of((const char *)p->id, DUDA_SESSION_SHM_ID),
                           mk_str_of((const char *)id, DUDA_SESSION_SHM_ID));
}

static void slot_clear(struct session_slot *p)
{
    p->len = 0;
    memset(p->id, 0, sizeof p->id);
    memset(p->data, 0, sizeof p->data);
}

/* ---- Choice of a slot ---- */

/* Returns the slots that the session may use. Session IDs are random and need no hash. */
static struct session_slot *find_slot_set(const struct duda_session_shm *v, const unsigned char *id)
{
    uint64_t bits;
    memcpy(&bits, id, sizeof bits);
    return v->memory->slots + bits % v->n_sets * WAYS;
}

/* Finds and locks the slot of the session. Its slot pointer is NULL if there is no such session. */
static struct locked_slot find_and_lock_slot(const struct duda_session_shm *v, const unsigned char *id)
{
    struct session_slot *set = find_slot_set(v, id);
    for (size_t i = 0; i < WAYS; i++) {
        struct locked_slot h = slot_has_id(&set[i], id) ? slot_lock(&set[i]) : (struct locked_slot){0};
        if (h.session_slot && slot_has_id(h.session_slot, id))
            return h;
        if (h.session_slot)
            slot_unlock(h);
    }
    return (struct locked_slot){0};
}

static bool slot_is_free(const struct session_slot *p, int64_t now)
{
    return p->len == 0 || p->ends <= now;
}

/* Returns the number of slots of the set that a client address occupies, including the one for the new
 * session. */
static unsigned count_client_slots(const struct session_slot *set, uint64_t address, uint64_t of_new)
{
    unsigned n = address == of_new;
    for (size_t i = 0; i < WAYS; i++)
        n += set[i].client.address == address;
    return n;
}

/* Decides which session of a set is evicted. */
struct eviction_rank {
    bool is_revocation, is_known;
    unsigned share;
    bool came_back;
    int64_t ends;
};

static bool is_worth_less(struct eviction_rank a, struct eviction_rank b)
{
    if (a.is_revocation != b.is_revocation)
        return b.is_revocation;
    if (a.is_known != b.is_known)
        return b.is_known;
    if (a.share != b.share)
        return a.share > b.share;
    return a.came_back != b.came_back ? b.came_back : a.ends < b.ends;
}

/* Returns a free slot, or the first to be evicted. */
static struct session_slot *choose_evicted_slot(struct session_slot *set, uint64_t of_new, int64_t now)
{
    struct session_slot *best = NULL;
    struct eviction_rank least = {0};
    for (size_t i = 0; i < WAYS; i++) {
        struct session_slot *p = &set[i];
        if (slot_is_free(p, now))
            return p;
        struct eviction_rank w = {p->client.is_revocation, p->client.is_known,
                                  count_client_slots(set, p->client.address, of_new), p->came_back, p->ends};
        if (best && !is_worth_less(w, least))
            continue;
        best = p;
        least = w;
    }
    return best;
}

/* Locks a slot for a new session. Its slot pointer is NULL if another worker has locked the slot. */
static struct locked_slot lock_slot_for_insert(const struct duda_session_shm *v, const unsigned char *id,
                                               const struct duda_session_shm_client *client, int64_t now)
{
    struct session_slot *set = find_slot_set(v, id);
    for (unsigned i = 0; i < SPINS; i++) {
        struct session_slot *p = choose_evicted_slot(set, client->address, now);
        int64_t ends = p->ends;
        struct duda_session_shm_client before = p->client;
        bool was_free = slot_is_free(p, now);
        struct locked_slot h = slot_lock(p);
        if (!h.session_slot)
            return h;
        bool is_same_rank =
            p->client.is_known == before.is_known && p->client.is_revocation == before.is_revocation;
        if (was_free ? slot_is_free(p, now) : p->ends <= ends && is_same_rank)
            return h;
        slot_unlock(h); /* another worker has stored a session there in the meantime */
    }
    return (struct locked_slot){0};
}

/* ---- Sessions ---- */

bool duda_session_shm_load(const struct duda_session_shm *v, const unsigned char id[DUDA_SESSION_SHM_ID],
                           int64_t now, uint32_t idle, struct mk_buf *out)
{
    struct locked_slot h = find_and_lock_slot(v, id);
    struct session_slot *p = h.session_slot;
    if (!p)
        return false;
    bool good = slot_is_valid(v, p, now);
    if (good) {
        mk_buf_add(out, mk_str_of(p->data, p->len));
        if (idle)
            p->ends = now + idle;
        p->came_back = true;
        p->sum = slot_checksum(v, p);
    } else {
        slot_clear(p);
    }
    slot_unlock(h);
    return good && !out->failed;
}

static bool session_data_fits(mk_str data)
{
    return data.len && data.len <= DUDA_SESSION_MAX;
}

static void slot_write(const struct duda_session_shm *v, struct session_slot *p, const unsigned char *id,
                       mk_str data, const struct duda_session_shm_client *client, int64_t ends)
{
    slot_clear(p);
    p->client = *client;
    memcpy(p->id, id, DUDA_SESSION_SHM_ID);
    memcpy(p->data, data.p, data.len);
    p->ends = ends;
    p->len = (uint32_t)data.len;
    p->sum = slot_checksum(v, p);
}

uint64_t duda_session_shm_hash_client(const struct duda_session_shm *v, const struct mk_addr *client)
{
    return mk_hash(&v->memory->key, mk_str_of((const char *)client->ip, sizeof client->ip));
}

bool duda_session_shm_insert(const struct duda_session_shm *v, const unsigned char id[DUDA_SESSION_SHM_ID],
                             mk_str data, const struct duda_session_shm_client *client, int64_t now,
                             uint32_t seconds)
{
    struct locked_slot h =
        session_data_fits(data) ? lock_slot_for_insert(v, id, client, now) : (struct locked_slot){0};
    if (!h.session_slot)
        return false;
    slot_write(v, h.session_slot, id, data, client, now + seconds);
    h.session_slot->came_back = false;
    slot_unlock(h);
    return true;
}

bool duda_session_shm_replace(const struct duda_session_shm *v, const unsigned char id[DUDA_SESSION_SHM_ID],
                              mk_str data, const struct duda_session_shm_client *client, int64_t now,
                              uint32_t seconds)
{
    struct locked_slot h = session_data_fits(data) ? find_and_lock_slot(v, id) : (struct locked_slot){0};
    if (!h.session_slot)
        return false;
    bool good = slot_is_valid(v, h.session_slot, now);
    if (good)
        slot_write(v, h.session_slot, id, data, client, now + seconds);
    else
        slot_clear(h.session_slot);
    slot_unlock(h);
    return good;
}

int64_t duda_session_shm_expiry(const struct duda_session_shm *v, const unsigned char id[DUDA_SESSION_SHM_ID],
                                int64_t now)
{
    struct locked_slot h = find_and_lock_slot(v, id);
    if (!h.session_slot)
        return 0;
    int64_t ends = slot_is_valid(v, h.session_slot, now) ? h.session_slot->ends : 0;
    slot_unlock(h);
    return ends;
}

bool duda_session_shm_delete(const struct duda_session_shm *v, const unsigned char id[DUDA_SESSION_SHM_ID])
{
    struct locked_slot h = find_and_lock_slot(v, id);
    if (!h.session_slot)
        return false;
    slot_clear(h.session_slot);
    slot_unlock(h);
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/conn_limit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/platform.h"

/* Another worker's request goes first only if it has waited longer by at least this much: for less, it is not
 * worthwhile to close an idle connection and open one in the other worker. */
enum { SLACK_MS = 4 };
/* A worker that overruns its own queue timeout by this much counts as stuck. */
enum { LATE_MS = 1000 };
/* Maximum attempts to assign a slot to a client. An attempt is repeated only if another worker unassigns a
 * slot of the same client at the same moment. */
enum { ATTEMPTS = 1000 };

#define LOAD(p)     __atomic_load_n(p, __ATOMIC_RELAXED)
#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)

bool mk_conn_limit_init(struct mk_conn_limit *l, struct mk_config *config)
{
    l->lock_fd = -1;
    memset(l->events, -1, sizeof l->events);
    l->memory = mk_config_shared(config, "upstream/limit", sizeof *l->memory);
    return l->memory;
}

static int create_lock_fd(void)
{
    int fd = memfd_create("monkey-upstream-rows", MFD_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int create_event_fd(void)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

bool mk_conn_limit_open_fds(struct mk_conn_limit *l, struct mk_config *config)
{
    bool ok = true;
    if (mk_platform.owns_process)
        ok = (l->lock_fd = mk_config_shared_fd(config, "upstream/rows", create_lock_fd)) >= 0;
    for (unsigned i = 0; ok && i < MK_CONN_LIMIT_EVENTS; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "upstream/event %u", i);
        ok = (l->events[i] = mk_config_shared_fd(config, name, create_event_fd)) >= 0;
    }
    return ok;
}

void mk_conn_limit_reset_backend(const struct mk_conn_limit *l, unsigned backend)
{
    memset(mk_conn_limit_backend(l, backend), 0, sizeof(struct mk_conn_limit_backend));
    if (backend >= l->memory->n_backends)
        __atomic_store_n(&l->memory->n_backends, backend + 1, __ATOMIC_RELEASE);
}

/* ---- Clients ---- */

static uint32_t *client_bucket(struct mk_conn_limit_backend *b, uint64_t client)
{
    return &b->served[client % MK_CONN_LIMIT_BUCKETS];
}

/* The bucket is incremented first and decremented last, so that it never counts too few, even if the worker
 * dies in between. */
static void set_slot_client(struct mk_conn_limit_backend *b, unsigned slot, uint64_t client)
{
    if (client)
        __atomic_fetch_add(client_bucket(b, client), 1, __ATOMIC_RELAXED);
    uint64_t old = __atomic_exchange_n(&b->clients[slot], client, __ATOMIC_ACQ_REL);
    if (old)
        __atomic_fetch_sub(client_bucket(b, old), 1, __ATOMIC_RELAXED);
}

static unsigned count_client_slots(const struct mk_conn_limit_backend *b, unsigned max, uint64_t client)
{
    unsigned n = 0;
    for (unsigned i = 0; i < max; i++)
        n += LOAD(&b->clients[i]) == client;
    return n;
}

/* Would the client exceed its share with one more slot? `already`: 1 if that slot has already been assigned
 * to the client, otherwise 0. A share is at least 1. */
static bool exceeds_share(const struct mk_conn_limit *l, const struct mk_conn_limit_rule *r, uint64_t client,
                          unsigned already)
{
    struct mk_conn_limit_backend *b = mk_conn_limit_backend(l, r->backend);
    if (!client || LOAD(client_bucket(b, client)) <= already)
        return false;
    unsigned allowed = r->share + already;
    return r->share && r->share < r->max && LOAD(client_bucket(b, client)) >= allowed &&
           count_client_slots(b, r->max, client) >= allowed;
}

bool mk_conn_limit_is_share_used_up(const struct mk_conn_limit *l, const struct mk_conn_limit_rule *r,
                                    uint64_t client)
{
    return exceeds_share(l, r, client, 0);
}

/* Workers that assign slots to the same client at the same time may see each other's slots and all unassign
 * their own. The last one to do so finds free capacity in the share, and retries. */
bool mk_conn_limit_assign_slot(const struct mk_conn_limit *l, const struct mk_conn_limit_rule *r,
                               unsigned slot, uint64_t client)
{
    for (unsigned i = 0; i < ATTEMPTS; i++) {
        set_slot_client(mk_conn_limit_backend(l, r->backend), slot, client);
        __atomic_thread_fence(__ATOMIC_SEQ_CST); /* of two workers that assign slots at the same time, at
                                                  * least one sees the other */
        if (!exceeds_share(l, r, client, 1))
            return true;
        mk_conn_limit_unassign_slot(l, r->backend, slot);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        if (exceeds_share(l, r, client, 0))
            return false;
    }
    return false;
}

void mk_conn_limit_unassign_slot(const struct mk_conn_limit *l, unsigned backend, unsigned slot)
{
    set_slot_client(mk_conn_limit_backend(l, backend), slot, 0);
}

/* ---- Rows of workers ---- */

static bool lock_row(const struct mk_conn_limit *l, unsigned row, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)row, .l_len = 1};
    return fcntl(l->lock_fd, F_SETLK, &lock) == 0;
}

/* The byte after those of the rows. */
enum { CHANGE_LOCK = MK_UPSTREAM_WORKERS };

bool mk_conn_limit_lock_changes(const struct mk_conn_limit *l)
{
    return l->lock_fd < 0 || lock_row(l, CHANGE_LOCK, F_WRLCK);
}

void mk_conn_limit_unlock_changes(const struct mk_conn_limit *l)
{
    if (l->lock_fd >= 0)
        (void)lock_row(l, CHANGE_LOCK, F_UNLCK);
}

static bool release_row_in_backend(const struct mk_conn_limit *l, unsigned backend, unsigned row)
{
    struct mk_conn_limit_backend *b = mk_conn_limit_backend(l, backend);
    bool had = false;
    for (unsigned k = 0; k < MK_CONN_LIMIT_WAITERS; k++)
        had |= __atomic_exchange_n(&b->waiters[row][k].since_ms, 0, __ATOMIC_RELAXED) != 0;
    __atomic_fetch_and(&b->hiding[row / 64], ~(UINT64_C(1) << row % 64), __ATOMIC_SEQ_CST);
    for (unsigned s = 0; s < MK_CONN_LIMIT_MAX; s++)
        if (LOAD(&b->slots[s]) == row + 1) {
            set_slot_client(b, s, 0);
            __atomic_store_n(&b->slots[s], 0, __ATOMIC_RELEASE);
            had = true;
        }
    return had;
}

/* Clears the row of a worker that joins, leaves or has died. */
static void clear_row(const struct mk_conn_limit *l, unsigned row)
{
    for (unsigned i = 0; i < LOAD(&l->memory->n_backends) && i < MK_UPSTREAM_SERVERS; i++)
        if (release_row_in_backend(l, i, row))
            mk_conn_limit_wake_waiters(l, i);
    if (l->on_empty)
        l->on_empty(l->ctx, row);
}

/* Locks the row if workers are processes. Otherwise only marks it: a thread cannot die without its process,
 * so no other worker has to clear its row. */
static bool try_acquire_row(const struct mk_conn_limit *l, unsigned row)
{
    uint32_t *is_taken = &l->memory->rows[row].is_taken, none = 0;
    if (l->lock_fd >= 0 && !lock_row(l, row, F_WRLCK))
        return false;
    if (l->lock_fd < 0)
        return __atomic_compare_exchange_n(is_taken, &none, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    STORE(is_taken, 1);
    return true;
}

bool mk_conn_limit_acquire_row(const struct mk_conn_limit *l, unsigned *row)
{
    for (*row = 0; *row < MK_UPSTREAM_WORKERS; ++*row) {
        if (!try_acquire_row(l, *row))
            continue;
        uint32_t n = LOAD(&l->memory->n_rows);
        while (n <= *row && !__atomic_compare_exchange_n(&l->memory->n_rows, &n, *row + 1, true,
                                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            ;
        clear_row(l, *row);
        return true;
    }
    return false;
}

void mk_conn_limit_release_row(const struct mk_conn_limit *l, unsigned row)
{
    clear_row(l, row);
    __atomic_store_n(&l->memory->rows[row].is_taken, 0, __ATOMIC_RELEASE);
    if (l->lock_fd >= 0)
        (void)lock_row(l, row, F_UNLCK);
}

void mk_conn_limit_free_dead_rows(const struct mk_conn_limit *l, unsigned row)
{
    if (l->lock_fd < 0)
        return;
    for (unsigned i = 0; i < LOAD(&l->memory->n_rows) && i < MK_UPSTREAM_WORKERS; i++)
        if (i != row && LOAD(&l->memory->rows[i].is_taken) && lock_row(l, i, F_WRLCK))
            mk_conn_limit_release_row(l, i);
}

/* ---- Slots ---- */

bool mk_conn_limit_acquire_slot(const struct mk_conn_limit *l, unsigned backend, unsigned max, unsigned row,
                                unsigned *slot)
{
    uint16_t *slots = mk_conn_limit_backend(l, backend)->slots, mine = (uint16_t)(row + 1);
    for (*slot = 0; *slot < max && *slot < MK_CONN_LIMIT_MAX; ++*slot) {
        uint16_t none = 0;
        if (!LOAD(&slots[*slot]) && __atomic_compare_exchange_n(&slots[*slot], &none, mine, false,
                                                                __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return true;
    }
    return false;
}

void mk_conn_limit_release_slot(const struct mk_conn_limit *l, unsigned backend, unsigned slot)
{
    struct mk_conn_limit_backend *b = mk_conn_limit_backend(l, backend);
    if (LOAD(&b->clients[slot]))
        set_slot_client(b, slot, 0);
    __atomic_store_n(&b->slots[slot], 0, __ATOMIC_RELEASE);
}

bool mk_conn_limit_has_free_slot(const struct mk_conn_limit *l, const struct mk_conn_limit_rule *r)
{
    const uint16_t *slots = mk_conn_limit_backend(l, r->backend)->slots;
    for (unsigned i = 0; i < r->max && i < MK_CONN_LIMIT_MAX; i++)
        if (!LOAD(&slots[i]))
            return true;
    return false;
}

/* ---- Order of the workers ---- */

static void set_waiters_unpublished(const struct mk_conn_limit *l, unsigned backend, unsigned row, bool hides)
{
    uint64_t *word = &mk_conn_limit_backend(l, backend)->hiding[row / 64], bit = UINT64_C(1) << row % 64;
    if (!(LOAD(word) & bit) == !hides)
        return;
    if (hides)
        __atomic_fetch_or(word, bit, __ATOMIC_SEQ_CST);
    else
        __atomic_fetch_and(word, ~bit, __ATOMIC_SEQ_CST);
}

void mk_conn_limit_publish_waiters(const struct mk_conn_limit *l, unsigned backend, unsigned row,
                                   const struct mk_conn_limit_waiter waiters[MK_CONN_LIMIT_WAITERS],
                                   bool hides)
{
    if (hides)
        set_waiters_unpublished(l, backend, row, true); /* first: readers must never miss a waiting request */
    struct mk_conn_limit_waiter *shown = mk_conn_limit_backend(l, backend)->waiters[row];
    for (unsigned k = 0; k < MK_CONN_LIMIT_WAITERS; k++) {
        if (LOAD(&shown[k].client) != waiters[k].client)
            STORE(&shown[k].client, waiters[k].client);
        if (LOAD(&shown[k].since_ms) != waiters[k].since_ms)
            STORE(&shown[k].since_ms, waiters[k].since_ms);
    }
    /* The bit is cleared only when no request waits: readers read the bitmap and the waiters one after the
     * other, and could miss a request that moves from one to the other in between. */
    if (!waiters[0].since_ms)
        set_waiters_unpublished(l, backend, row, false);
}

static uint64_t waiter_stale_at_ms(const struct mk_conn_limit_rule *r, uint64_t since_ms)
{
    return since_ms + r->wait_ms + LATE_MS;
}

/* Finds a request in one worker's row that started waiting before *best, and sets *best to the start of its
 * wait. *best 0: the current time. Reads the clock only if a request waits, which is rare. */
static bool find_older_in_row(const struct mk_conn_limit *l, const struct mk_conn_limit_rule *r,
                              const struct mk_conn_limit_waiter *waiters, uint64_t *best)
{
    bool found = false;
    for (unsigned k = 0; k < MK_CONN_LIMIT_WAITERS; k++) {
        uint64_t at = LOAD(&waiters[k].since_ms);
        if (MK_LIKELY(!at))
            continue;
        if (!*best)
            *best = mk_clock_ms();
        if (at + SLACK_MS > *best || waiter_stale_at_ms(r, at) < mk_clock_ms() ||
            mk_conn_limit_is_share_used_up(l, r, LOAD(&waiters[k].client)))
            continue;
        *best = at;
        found = true;
    }
    return found;
}

int mk_conn_limit_find_older_waiter(const struct mk_conn_limit *l, const struct mk_conn_limit_rule *r,
                                    unsigned row, uint64_t since_ms)
{
    const struct mk_conn_limit_backend *b = mk_conn_limit_backend(l, r->backend);
    uint32_t n = LOAD(&l->memory->n_rows);
    uint64_t best = since_ms;
    int found = -1;
    for (uint32_t i = 0; i < n && i < MK_UPSTREAM_WORKERS; i++)
        if (i != row && find_older_in_row(l, r, b->waiters[i], &best))
            found = (int)i;
    return found;
}

uint64_t mk_conn_limit_next_stale_waiter_ms(const struct mk_conn_limit *l, const struct mk_conn_limit_rule *r,
                                            unsigned row)
{
    const struct mk_conn_limit_backend *b = mk_conn_limit_backend(l, r->backend);
    uint64_t now = mk_clock_ms(), next = UINT64_MAX;
    for (unsigned i = 0; i < LOAD(&l->memory->n_rows) && i < MK_UPSTREAM_WORKERS; i++)
        for (unsigned k = 0; i != row && k < MK_CONN_LIMIT_WAITERS; k++) {
            uint64_t since = LOAD(&b->waiters[i][k].since_ms), at = since ? waiter_stale_at_ms(r, since) : 0;
            if (at >= now && at < next)
                next = at;
        }
    return next;
}

/* ---- Waking workers ---- */

int mk_conn_limit_wake_fd(const struct mk_conn_limit *l, unsigned row)
{
    return l->events[row % MK_CONN_LIMIT_EVENTS];
}

/* The eventfds are never read: each write is an edge for every watcher. The counter would overflow only after
 * 2^64 writes. */
void mk_conn_limit_wake_row(const struct mk_conn_limit *l, unsigned backend, unsigned row)
{
    static const uint64_t one = 1;
    __atomic_fetch_or(&l->memory->rows[row].woken[backend / 64], UINT64_C(1) << backend % 64,
                      __ATOMIC_SEQ_CST);
    if (mk_conn_limit_wake_fd(l, row) >= 0)
        (void)!write(mk_conn_limit_wake_fd(l, row), &one, sizeof one);
}

void mk_conn_limit_wake_each_unpublished(const struct mk_conn_limit *l, unsigned backend, unsigned row)
{
    const struct mk_conn_limit_backend *b = mk_conn_limit_backend(l, backend);
    uint32_t n = LOAD(&l->memory->n_rows);
    for (unsigned i = 0; i < MK_UPSTREAM_WORKERS && i < n; i++) {
        uint64_t word = LOAD(&b->hiding[i / 64]);
        if (MK_LIKELY(!word))
            i |= 63;
        else if (i != row && word >> i % 64 & 1)
            mk_conn_limit_wake_row(l, backend, i);
    }
}

void mk_conn_limit_wake_waiters(const struct mk_conn_limit *l, unsigned backend)
{
    const struct mk_conn_limit_backend *b = mk_conn_limit_backend(l, backend);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    for (unsigned row = 0; row < LOAD(&l->memory->n_rows) && row < MK_UPSTREAM_WORKERS; row++)
        if (LOAD(&b->waiters[row][0].since_ms) || LOAD(&b->waiters[row][1].since_ms))
            mk_conn_limit_wake_row(l, backend, row);
}

bool mk_conn_limit_pop_woken(const struct mk_conn_limit *l, unsigned row, uint64_t woken[MK_CONN_LIMIT_WORDS])
{
    bool is_woken = false;
    for (unsigned i = 0; i < MK_CONN_LIMIT_WORDS; i++) {
        woken[i] = __atomic_exchange_n(&l->memory->rows[row].woken[i], 0, __ATOMIC_SEQ_CST);
        is_woken |= woken[i] != 0;
    }
    return is_woken;
}

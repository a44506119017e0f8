/* SPDX-License-Identifier: Apache-2.0 */
/* Connection limit of each backend, in memory shared by all workers: the slots, the share of one client, and
 * the request that has waited longest. This module uses neither connections nor the event loop. A worker may
 * die at any instruction: its row number identifies the slots and waiting requests that it held.
 *
 * No request waits while a slot that it may use is free. A worker that releases a slot or part of a share, or
 * whose request stops waiting, wakes the next worker in order; a woken worker that does not use the slot
 * wakes the next one. A worker publishes its waiting requests, or what it has released, before it reads the
 * rows of other workers: if two workers do so at the same time, at least one sees the other. */
#ifndef MK_UPSTREAM_CONN_LIMIT_H
#define MK_UPSTREAM_CONN_LIMIT_H

#include <monkey/clock.h>
#include <monkey/text.h>
#include <monkey/upstream.h>

/* Maximum number of backends and of worker processes, including those of earlier configurations. */
enum { MK_UPSTREAM_SERVERS = 256, MK_UPSTREAM_WORKERS = 1024 };

enum {
    MK_CONN_LIMIT_MAX = 1024, /* maximum connections to one backend */
    MK_CONN_LIMIT_BUCKETS = 64,
    MK_CONN_LIMIT_WAITERS = 2, /* published waiting requests per worker and backend */
    MK_CONN_LIMIT_EVENTS = 16, /* eventfds that wake workers; if there are more workers, some of them share an
                                * eventfd */
    MK_CONN_LIMIT_WORDS = MK_UPSTREAM_SERVERS / 64
};

/* A waiting request. */
struct mk_conn_limit_waiter {
    uint64_t since_ms; /* 0: no request waits */
    uint64_t client;   /* key of the client; 0: no share limits the request */
};

/* Shared memory of one backend. */
struct mk_conn_limit_backend {
    uint16_t slots[MK_CONN_LIMIT_MAX];   /* for each connection: row of its worker, from 1; 0: free slot */
    uint64_t clients[MK_CONN_LIMIT_MAX]; /* client served by the connection; 0: none */
    /* Upper bound of the number of slots that serve clients in the same bucket; a dying worker may leave it
     * too high by one. Thanks to this bound, most requests need not count the slots of their client. */
    uint32_t served[MK_CONN_LIMIT_BUCKETS];
    /* For each worker: the longest waiting request that may use the backend, and the longest waiting request
     * of another client that has not used up its share. */
    struct mk_conn_limit_waiter waiters[MK_UPSTREAM_WORKERS][MK_CONN_LIMIT_WAITERS];
    /* Bitmap of the rows that have waiting requests of further clients, which `waiters` does not contain. The
     * shares of these clients may have free capacity later. */
    uint64_t hiding[MK_UPSTREAM_WORKERS / 64];
};

struct mk_conn_limit_memory {
    uint32_t n_rows, n_backends; /* used so far */
    struct mk_conn_limit_row {
        uint32_t is_taken;
        uint64_t woken[MK_CONN_LIMIT_WORDS]; /* bitmap of backends */
    } rows[MK_UPSTREAM_WORKERS];
    struct mk_conn_limit_backend of[MK_UPSTREAM_SERVERS];
};

struct mk_conn_limit {
    struct mk_conn_limit_memory *memory;
    /* The worker of row N locks byte N of this file; the kernel releases the lock when the worker exits. -1:
     * workers are threads of this process. */
    int lock_fd;
    int events[MK_CONN_LIMIT_EVENTS]; /* -1: no wakeups */
    /* Called when a row was cleared because its worker joins, leaves or has died. */
    void (*on_empty)(void *ctx, unsigned row);
    void *ctx;
};

/* Limits of a backend from the configuration. */
struct mk_conn_limit_rule {
    unsigned backend; /* index of the stats slot of the backend */
    unsigned max;     /* maximum connections; 0: no limit */
    unsigned share;   /* maximum per client; 0: no limit */
    uint64_t wait_ms; /* a worker whose request waits longer counts as stuck */
};

static inline struct mk_conn_limit_backend *mk_conn_limit_backend(const struct mk_conn_limit *l,
                                                                  unsigned backend)
{
    return &l->memory->of[backend];
}

/* Master only. False: out of memory, and the error was reported. */
bool mk_conn_limit_init(struct mk_conn_limit *l, struct mk_config *config);
/* Master only; call it before workers start. False: out of descriptors, and the error was reported. */
bool mk_conn_limit_open_fds(struct mk_conn_limit *l, struct mk_config *config);

/* Clears the state of the backend. Call it when its stats slot is assigned to another backend. */
void mk_conn_limit_reset_backend(const struct mk_conn_limit *l, unsigned backend);

/* ---- Rows of workers ---- */

/* Allocates a row for this worker. False: all rows belong to live workers. */
bool mk_conn_limit_acquire_row(const struct mk_conn_limit *l, unsigned *row);
void mk_conn_limit_release_row(const struct mk_conn_limit *l, unsigned row);
/* Clears the rows of dead workers. `row` is the caller's own row, which is skipped. */
void mk_conn_limit_free_dead_rows(const struct mk_conn_limit *l, unsigned row);

/* Excludes other processes that change servers. Does not wait, because that would block the loop of the worker. The
 * kernel releases the lock of a process that dies. False: another process has the lock. */
bool mk_conn_limit_lock_changes(const struct mk_conn_limit *l);
void mk_conn_limit_unlock_changes(const struct mk_conn_limit *l);

/* ---- Slots ---- */

/* Claims one of `max` slots. False: all are in use. */
bool mk_conn_limit_acquire_slot(const struct mk_conn_limit *l, unsigned backend, unsigned max, unsigned row,
                                unsigned *slot);
void mk_conn_limit_release_slot(const struct mk_conn_limit *l, unsigned backend, unsigned slot);
bool mk_conn_limit_has_free_slot(const struct mk_conn_limit *l, const struct mk_conn_limit_rule *r);

/* ---- Clients ---- */

/* Has the client used up its share of slots? */
bool mk_conn_limit_is_share_used_up(const struct mk_conn_limit *l, const struct mk_conn_limit_rule *r,
                                    uint64_t client);
/* Assigns the slot's connection to the client. False: another worker was faster, and the client would exceed
 * its share. */
bool mk_conn_limit_assign_slot(const struct mk_conn_limit *l, const struct mk_conn_limit_rule *r,
                               unsigned slot, uint64_t client);
/* Marks the slot as serving no client. */
void mk_conn_limit_unassign_slot(const struct mk_conn_limit *l, unsigned backend, unsigned slot);

/* ---- Order of the workers ---- */

/* Publishes this worker's waiting requests for the backend; `hides`: requests of further clients are waiting
 * as well. */
void mk_conn_limit_publish_waiters(const struct mk_conn_limit *l, unsigned backend, unsigned row,
                                   const struct mk_conn_limit_waiter waiters[MK_CONN_LIMIT_WAITERS],
                                   bool hides);
/* True: no other worker has ever had a row, so only requests of this worker wait. */
static inline bool mk_conn_limit_has_one_row(const struct mk_conn_limit *l)
{
    return __atomic_load_n(&l->memory->n_rows, __ATOMIC_RELAXED) < 2;
}
/* Row of another worker whose request precedes a request of this row that has waited since `since_ms` (0: it
 * starts waiting now); -1: none. */
int mk_conn_limit_find_older_waiter(const struct mk_conn_limit *l, const struct mk_conn_limit_rule *r,
                                    unsigned row, uint64_t since_ms);
/* The next time at which another worker with a waiting request counts as stuck; from then on, this row does
 * not wait for that request. UINT64_MAX: none. */
uint64_t mk_conn_limit_next_stale_waiter_ms(const struct mk_conn_limit *l, const struct mk_conn_limit_rule *r,
                                            unsigned row);

/* ---- Waking workers ---- */

/* Edge-triggered eventfd that becomes readable when this row, or another row that shares it, is woken. */
int mk_conn_limit_wake_fd(const struct mk_conn_limit *l, unsigned row);
void mk_conn_limit_wake_row(const struct mk_conn_limit *l, unsigned backend, unsigned row);
/* Wakes the other workers whose bit in `hiding` is set for the backend; usually there are none. */
void mk_conn_limit_wake_each_unpublished(const struct mk_conn_limit *l, unsigned backend, unsigned row);
static inline void mk_conn_limit_wake_unpublished(const struct mk_conn_limit *l, unsigned backend,
                                                  unsigned row)
{
    if (__atomic_load_n(&l->memory->of[backend].hiding[0], __ATOMIC_RELAXED) ||
        __atomic_load_n(&l->memory->n_rows, __ATOMIC_RELAXED) > 64)
        mk_conn_limit_wake_each_unpublished(l, backend, row);
}
/* Wakes all workers whose requests wait for the backend. */
void mk_conn_limit_wake_waiters(const struct mk_conn_limit *l, unsigned backend);
/* Stores in `woken` the backends for which the row was woken since the last call. False: none. */
bool mk_conn_limit_pop_woken(const struct mk_conn_limit *l, unsigned row,
                             uint64_t woken[MK_CONN_LIMIT_WORDS]);

#endif

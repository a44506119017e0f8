/* SPDX-License-Identifier: Apache-2.0 */
/* The limit of connections to each backend, in memory that all workers share: the slots, the share of one client,
 * and which request has waited longest. It knows no connection and no loop. A worker may die at any instruction:
 * its row shows what it held.
 *
 * No request waits while a slot is free that it may have. A worker that gives up a slot, a share or a waiting request
 * wakes the worker that comes next; a worker that is woken and does not use the slot wakes the next one. A worker
 * shows what it wants, or has given up, before it looks at others: of two that do so at once, one sees the other. */
#ifndef MK_UPSTREAM_CONN_LIMIT_H
#define MK_UPSTREAM_CONN_LIMIT_H

#include <monkey/clock.h>
#include <monkey/text.h>
#include <monkey/upstream.h>

/* The largest number of backends, and of worker processes, those of former configurations included. */
enum { MK_UPSTREAM_SERVERS = 256, MK_UPSTREAM_WORKERS = 1024 };

enum {
    MK_CONN_LIMIT_MAX = 1024, /* connections to one backend */
    MK_CONN_LIMIT_BUCKETS = 64,
    MK_CONN_LIMIT_WAITERS = 2, /* of each worker and backend */
    MK_CONN_LIMIT_EVENTS = 16, /* descriptors by which workers are woken; more workers share them */
    MK_CONN_LIMIT_WORDS = MK_UPSTREAM_SERVERS / 64
};

/* A request that waits. */
struct mk_conn_limit_waiter {
    uint64_t since_ms; /* 0: none waits */
    uint64_t client;   /* 0: no share limits it */
};

/* In shared memory, of one backend. */
struct mk_conn_limit_backend {
    uint16_t slots[MK_CONN_LIMIT_MAX];   /* of each connection: the row of its worker, from 1; 0: free */
    uint64_t clients[MK_CONN_LIMIT_MAX]; /* the client that the connection serves; 0: none */
    /* How many slots serve clients of the same bucket, or more: a worker that dies may leave one too many. So
     * most requests need not count the slots of their client. */
    uint32_t served[MK_CONN_LIMIT_BUCKETS];
    /* Of each worker the request that has waited longest and may use the backend, and the one that has waited
     * longest of other clients whose share has room. */
    struct mk_conn_limit_waiter waiters[MK_UPSTREAM_WORKERS][MK_CONN_LIMIT_WAITERS];
    /* Rows, a bit each, with requests of more clients than those two: their shares may have room later. */
    uint64_t hiding[MK_UPSTREAM_WORKERS / 64];
};

struct mk_conn_limit_memory {
    uint32_t n_rows, n_backends; /* used so far */
    struct mk_conn_limit_row {
        uint32_t is_taken;
        uint64_t woken[MK_CONN_LIMIT_WORDS]; /* for which backends, a bit each */
    } rows[MK_UPSTREAM_WORKERS];
    struct mk_conn_limit_backend of[MK_UPSTREAM_SERVERS];
};

struct mk_conn_limit {
    struct mk_conn_limit_memory *memory;
    /* Its byte N is locked by the worker of row N; the kernel unlocks it when that worker ends. -1: workers are
     * threads of this process. */
    int lock_fd;
    int events[MK_CONN_LIMIT_EVENTS]; /* -1: nothing is woken */
    /* A row is emptied: of a worker that joins, leaves or has died. */
    void (*on_empty)(void *ctx, unsigned row);
    void *ctx;
};

/* What limits a backend, as a configuration has it. */
struct mk_conn_limit_rule {
    unsigned backend; /* its stats slot */
    unsigned max;     /* connections; 0: no limit */
    unsigned share;   /* of them for one client; 0: all */
    uint64_t wait_ms; /* a worker whose request waits longer is blocked */
};

static inline struct mk_conn_limit_backend *mk_conn_limit_backend(const struct mk_conn_limit *l,
                                                                  unsigned backend)
{
    return &l->memory->of[backend];
}

/* In the master. False: no memory, which is reported. */
bool mk_conn_limit_open(struct mk_conn_limit *l, struct mk_config *config);
/* In the master, before its workers start. False: no descriptors, which is reported. */
bool mk_conn_limit_open_fds(struct mk_conn_limit *l, struct mk_config *config);

/* The backend's slot of statistics goes to another one. */
void mk_conn_limit_reset_backend(const struct mk_conn_limit *l, unsigned backend);

/* ---- Rows of workers ---- */

/* A row for this worker. False: all belong to workers that live. */
bool mk_conn_limit_acquire_row(const struct mk_conn_limit *l, unsigned *row);
void mk_conn_limit_release_row(const struct mk_conn_limit *l, unsigned row);
/* The worker of this row takes back what others held that have died. */
void mk_conn_limit_free_dead_rows(const struct mk_conn_limit *l, unsigned row);

/* ---- Slots ---- */

/* Claims one of `max` slots. False: all are taken. */
bool mk_conn_limit_acquire_slot(const struct mk_conn_limit *l, unsigned backend, unsigned max, unsigned row,
                                unsigned *slot);
void mk_conn_limit_release_slot(const struct mk_conn_limit *l, unsigned backend, unsigned slot);
bool mk_conn_limit_has_free_slot(const struct mk_conn_limit *l, const struct mk_conn_limit_rule *r);

/* ---- Clients ---- */

/* Has the client as many slots as it may? */
bool mk_conn_limit_is_share_used_up(const struct mk_conn_limit *l, const struct mk_conn_limit_rule *r,
                                    uint64_t client);
/* The connection in the slot serves the client. False: another worker was faster, and now the client would
 * have too many. */
bool mk_conn_limit_assign_slot(const struct mk_conn_limit *l, const struct mk_conn_limit_rule *r,
                               unsigned slot, uint64_t client);
/* It serves none any more. */
void mk_conn_limit_unassign_slot(const struct mk_conn_limit *l, unsigned backend, unsigned slot);

/* ---- Order of the workers ---- */

/* Shows to other workers which requests of this one wait for the backend; `hides`: those of other clients do, too. */
void mk_conn_limit_publish_waiters(const struct mk_conn_limit *l, unsigned backend, unsigned row,
                                   const struct mk_conn_limit_waiter waiters[MK_CONN_LIMIT_WAITERS],
                                   bool hides);
/* The row of another worker whose request gets the backend before one of this row that has waited since then
 * (0: from now on); -1: none. */
int mk_conn_limit_find_older_waiter(const struct mk_conn_limit *l, const struct mk_conn_limit_rule *r,
                                    unsigned row, uint64_t since_ms);
/* When the next request of another worker has waited so long that its worker is blocked, and is passed by others;
 * UINT64_MAX: none waits. */
uint64_t mk_conn_limit_next_stale_waiter_ms(const struct mk_conn_limit *l, const struct mk_conn_limit_rule *r,
                                            unsigned row);

/* ---- Waking workers ---- */

/* What becomes readable, edge-triggered, when the row is woken, or another one that shares it. */
int mk_conn_limit_wake_fd(const struct mk_conn_limit *l, unsigned row);
void mk_conn_limit_wake_row(const struct mk_conn_limit *l, unsigned backend, unsigned row);
/* Wakes the other workers with requests that they do not show: usually there are none. */
void mk_conn_limit_scan_unpublished(const struct mk_conn_limit *l, unsigned backend, unsigned row);
static inline void mk_conn_limit_wake_unpublished(const struct mk_conn_limit *l, unsigned backend,
                                                  unsigned row)
{
    if (__atomic_load_n(&l->memory->of[backend].hiding[0], __ATOMIC_RELAXED) ||
        __atomic_load_n(&l->memory->n_rows, __ATOMIC_RELAXED) > 64)
        mk_conn_limit_scan_unpublished(l, backend, row);
}
/* Wakes all workers whose requests wait for the backend. */
void mk_conn_limit_wake_waiters(const struct mk_conn_limit *l, unsigned backend);
/* For which backends the row was woken since the last call: false for none. */
bool mk_conn_limit_take_woken(const struct mk_conn_limit *l, unsigned row,
                              uint64_t woken[MK_CONN_LIMIT_WORDS]);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The limit of connections to each backend, in memory that all workers share: the slots, the share of one client,
 * and which request has waited longest. It knows no connection and no loop. A worker may die at any instruction:
 * its row shows what it held. */
#ifndef MK_UPSTREAM_LIMIT_H
#define MK_UPSTREAM_LIMIT_H

#include <monkey/text.h>
#include <monkey/upstream.h>

enum {
    MK_LIMIT_MAX = 1024, /* connections to one backend */
    MK_LIMIT_BUCKETS = 64,
    MK_LIMIT_WAITERS = 2 /* of each worker and backend */
};

/* A request that waits. */
struct mk_limit_waiter {
    uint64_t since_ms; /* 0: none waits */
    uint64_t client;   /* 0: no share limits it */
};

/* In shared memory, of one backend. */
struct mk_limit_backend {
    uint16_t slots[MK_LIMIT_MAX];   /* of each connection: the row of its worker, from 1; 0: free */
    uint64_t clients[MK_LIMIT_MAX]; /* the client that the connection serves; 0: none */
    /* How many slots serve clients of the same bucket, or more: a worker that dies may leave one too many. So
     * most requests need not count the slots of their client. */
    uint32_t served[MK_LIMIT_BUCKETS];
    /* Of each worker the request that has waited longest and may use the backend, and the one that has waited
     * longest of other clients whose share has room. */
    struct mk_limit_waiter waiters[MK_UPSTREAM_WORKERS][MK_LIMIT_WAITERS];
};

struct mk_limit_memory {
    uint32_t n_rows, n_backends;           /* used so far */
    uint32_t pids[MK_UPSTREAM_WORKERS];    /* of the worker that has the row; 0: none */
    uint32_t indexes[MK_UPSTREAM_WORKERS]; /* mk_worker_index() of that worker */
    struct mk_limit_backend of[MK_UPSTREAM_SERVERS];
};

struct mk_limit {
    struct mk_limit_memory *memory;
    /* A row is emptied: of a worker that joins, leaves or has died. */
    void (*on_empty)(void *ctx, unsigned row);
    void *ctx;
};

/* What limits a backend, as a configuration has it. */
struct mk_limit_rule {
    unsigned backend; /* its stats slot */
    unsigned max;     /* connections; 0: no limit */
    unsigned share;   /* of them for one client; 0: all */
    uint64_t wait_ms; /* a worker whose request waits longer is blocked */
};

static inline struct mk_limit_backend *mk_limit_backend(const struct mk_limit *l, unsigned backend)
{
    return &l->memory->of[backend];
}

/* In the master. False: no memory, which is reported. */
bool mk_limit_open(struct mk_limit *l, struct mk_config *config);

/* CLOCK_MONOTONIC, the same in all processes. */
uint64_t mk_limit_now_ms(void);

/* The backend's slot of statistics goes to another one. */
void mk_limit_reset(const struct mk_limit *l, unsigned backend);

/* ---- Rows of workers ---- */

/* A row for this worker. False: all belong to workers that live. */
bool mk_limit_join(const struct mk_limit *l, unsigned index, unsigned *row);
void mk_limit_leave(const struct mk_limit *l, unsigned row);
/* Takes back what workers held that have died. */
void mk_limit_reap(const struct mk_limit *l);

/* ---- Slots ---- */

/* Claims one of `max` slots. False: all are taken. */
bool mk_limit_claim(const struct mk_limit *l, unsigned backend, unsigned max, unsigned row, unsigned *slot);
void mk_limit_release(const struct mk_limit *l, unsigned backend, unsigned slot);

/* ---- Clients ---- */

/* Has the client as many slots as it may? */
bool mk_limit_is_used_up(const struct mk_limit *l, const struct mk_limit_rule *r, uint64_t client);
/* The connection in the slot serves the client. False: another worker was faster, and now the client would
 * have too many. */
bool mk_limit_assign(const struct mk_limit *l, const struct mk_limit_rule *r, unsigned slot, uint64_t client);
/* It serves none any more. */
void mk_limit_unassign(const struct mk_limit *l, unsigned backend, unsigned slot);

/* ---- Order of the workers ---- */

/* Shows to other workers which requests of this one wait for the backend. */
void mk_limit_show_waiters(const struct mk_limit *l, unsigned backend, unsigned row,
                           const struct mk_limit_waiter waiters[MK_LIMIT_WAITERS]);
/* The row of another worker whose request gets the backend before one of this row that has waited since then
 * (0: from now on); -1: none. */
int mk_limit_find_older(const struct mk_limit *l, const struct mk_limit_rule *r, unsigned row,
                        uint64_t since_ms);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What all workers know of the servers, in shared memory: state, counts, and the budget of connections. A
 * worker may die at any instruction: its row shows what it held. */
#ifndef MK_UPSTREAM_BOARD_H
#define MK_UPSTREAM_BOARD_H

#include <monkey/text.h>
#include <monkey/upstream.h>

#include "upstream/settings.h"

enum { MK_BOARD_BUCKETS = 64 };

/* What is not shown of a server. */
struct mk_ledger {
    uint64_t key;                     /* of upstream and server; 0: unused */
    uint64_t down_until_ms;           /* CLOCK_MONOTONIC, in all processes the same; 0: it did not fail */
    uint64_t up_since_ms;             /* when it came back */
    uint32_t fails;                   /* in a row */
    uint32_t is_check_failed;         /* its last HealthFall health checks failed */
    uint32_t checks_in_a_row;         /* with another result than that says */
    uint64_t trouble_ms, nameless_ms; /* when the log was last told of these: */
    uint32_t trouble;                 /* the error by which it failed last; 0: it answers */
    uint32_t is_nameless;             /* its name does not resolve */
    uint16_t slots[MK_BUDGET_MAX];    /* of each connection within the budget: the row of its worker,
                                      from 1; 0: free */
    uint64_t clients[MK_BUDGET_MAX];  /* of each slot: the client that its connection serves; 0: none */
    /* How many slots serve clients of the same bucket, or more: a worker that dies may leave one too many. So
     * most requests need not count the slots of their client. */
    uint32_t served[MK_BOARD_BUCKETS];
    /* Of each worker the exchange that has waited longest and may use the server, and the one that has waited
     * longest of other clients whose share has room. */
    struct mk_waiter {
        uint64_t since_ms; /* 0: none waits */
        uint64_t client;
    } oldest[MK_UPSTREAM_WORKERS][2];
};

struct mk_ledgers {
    struct mk_hash_key key;                /* of clients */
    uint64_t n_shown;                      /* how many configurations have shown their servers */
    uint32_t pids[MK_UPSTREAM_WORKERS];    /* of the worker that has the row; 0: none */
    uint32_t indexes[MK_UPSTREAM_WORKERS]; /* mk_worker_index() of that worker */
    struct mk_ledger of[MK_UPSTREAM_SERVERS];
};

struct mk_board {
    struct mk_upstream_board *shown;
    struct mk_ledgers *ledgers;
};

/* The places that a configuration uses once it serves. */
struct mk_board_plan {
    uint64_t keys[MK_UPSTREAM_SERVERS]; /* 0: none */
};

/* What the board showed before a configuration did. */
struct mk_board_former {
    uint64_t n_shown; /* with that configuration; 0: it has not */
    uint32_t pid;     /* of the master */
    struct {
        uint32_t backup, weight, max;
        char first; /* of the server's name; NUL: it was hidden */
    } of[MK_UPSTREAM_SERVERS];
};

/* In the master. False: no memory, which is reported. */
bool mk_board_open(struct mk_board *b, struct mk_config *config);
/* In the master, or in a process that only tries a configuration out: the place of a server, the same for the
 * same names as long as it lives. The board does not change. False: all are taken. */
bool mk_board_find(const struct mk_board *b, struct mk_board_plan *plan, mk_str upstream, mk_str server,
                   unsigned *place);
/* In the master: the configuration was accepted, and that is the server. */
void mk_board_name(struct mk_board *b, unsigned place, mk_str upstream, mk_str server);
/* In the master: the configuration does not have this server any more. */
void mk_board_hide(struct mk_board *b, unsigned place);
/* In the master: before the servers of a configuration are shown, */
void mk_board_keep(struct mk_board *b, struct mk_board_former *former);
/* and when it goes: if none was shown since, it never served, and the one before it goes on. */
void mk_board_restore(struct mk_board *b, const struct mk_board_former *former);

/* A row for this process. False: all rows belong to processes that live. */
bool mk_board_enter(struct mk_board *b, unsigned index, unsigned *row);
void mk_board_leave(struct mk_board *b, unsigned row);
/* Takes back what workers held that have died. */
void mk_board_reap(struct mk_board *b);

/* Takes one of `max` connections to a server; false: all are taken. */
bool mk_board_claim(struct mk_board *b, unsigned place, unsigned max, unsigned row, unsigned *slot);
/* The connection in the slot serves no client any more. */
void mk_board_release(struct mk_board *b, unsigned place, unsigned slot);
/* The connection in the slot serves this client; 0: none. */
void mk_board_serve(const struct mk_board *b, unsigned place, unsigned slot, uint64_t client);
/* How many slots serve the client, at most. */
unsigned mk_board_count_at_most(const struct mk_board *b, unsigned place, uint64_t client);

static inline struct mk_upstream_info *mk_board_info(const struct mk_board *b, unsigned place)
{
    return &b->shown->servers[place].info;
}

static inline struct mk_ledger *mk_board_ledger(const struct mk_board *b, unsigned place)
{
    return &b->ledgers->of[place];
}

static inline struct mk_upstream_gauge *mk_board_gauge(const struct mk_board *b, unsigned place, unsigned row)
{
    return &b->shown->servers[place].of[row];
}

#endif

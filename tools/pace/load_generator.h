/* SPDX-License-Identifier: Apache-2.0 */
/* The load: takes requests from the schedule as they are due, puts each on a free connection, and tallies
 * what becomes of it. A request that finds all connections busy waits, and keeps the instant at which it was
 * due. */
#ifndef PACE_LOAD_GENERATOR_H
#define PACE_LOAD_GENERATOR_H

#include <signal.h>

#include "pace/connection.h"
#include "pace/schedule.h"
#include "pace/tally.h"

struct pace_load_generator {
    /* Set these before pace_load_generator_init(). */
    struct mk_sockaddr address;
    mk_str request;
    struct pace_response_check *reference; /* what is not recorded yet, the first answer records */
    unsigned n;                            /* connections */
    uint64_t timeout;                      /* of a request, nanoseconds from when it was due */
    bool closes;                           /* one request on each connection */
    bool spins;                            /* wait without sleeping */
    const volatile sig_atomic_t *stop;     /* not 0: nothing more is sent */
    /* Its own. */
    struct pace_poller waiter;
    struct pace_connection *connections;
    struct mk_list closed, idle, busy, again; /* `busy` in the order of their instants */
    unsigned n_busy, busy_max;
    bool opens; /* rather open one more than use one that is idle */
    char *room;
    uint64_t planned; /* when it wanted to wake up */
    uint64_t looked;  /* when it last knew all that had come */
    uint64_t seen;    /* what is read now had not come before */
    uint64_t at;      /* when it turned to what it does now */
    int starved_fd;
    uint64_t starved; /* as it was last read */
    struct pace_schedule *schedule;
    struct pace_tally *tally;
};

mk_err pace_load_generator_init(struct pace_load_generator *l) MK_MUST_USE;
void pace_load_generator_fini(struct pace_load_generator *l);
/* One request, alone; it is not part of any measurement. */
void pace_load_generator_send_one(struct pace_load_generator *l, struct pace_tally *t);
/* Opens all connections that are closed, each with one request. */
void pace_load_generator_connect_all(struct pace_load_generator *l, struct pace_tally *t);
/* Runs the schedule from now on for so long, and until all that was due has ended. */
void pace_load_generator_run(struct pace_load_generator *l, struct pace_schedule *s, uint64_t duration,
                             struct pace_tally *t);

#endif

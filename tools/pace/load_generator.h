/* SPDX-License-Identifier: Apache-2.0 */
/* The load generator takes each request from the schedule when it is due, sends it on a free connection and
 * counts the result. While all connections are busy, a due request waits and keeps its due time. */
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
    struct pace_response_check *reference; /* the first response becomes the reference */
    unsigned n;                            /* connections */
    uint64_t timeout;                      /* ns from the due time of a request */
    bool closes;                           /* one request per connection */
    bool spins;                            /* busy-wait instead of sleeping */
    const volatile sig_atomic_t *stop;     /* if not 0, send no more requests */
    /* Private. */
    struct pace_poller waiter;
    struct pace_connection *connections;
    struct mk_list closed, idle, busy, again; /* `busy` is sorted by due time */
    unsigned n_busy, busy_max;
    bool opens; /* prefer a new connection over an idle one */
    char *buffer;
    uint64_t planned; /* the wake-up time requested from the poller */
    uint64_t looked;  /* time of the last poll */
    uint64_t seen;    /* time of the poll before it: events that are pending now arrived later */
    uint64_t at;      /* start of the current step */
    int starved_fd;
    uint64_t starved; /* run-queue wait time at the last reading */
    struct pace_schedule *schedule;
    struct pace_tally *tally;
};

mk_err pace_load_generator_init(struct pace_load_generator *l) MK_MUST_USE;
void pace_load_generator_fini(struct pace_load_generator *l);
/* Sends one request outside any measurement. */
void pace_load_generator_send_one(struct pace_load_generator *l, struct pace_tally *t);
/* Opens all closed connections, with one request on each. */
void pace_load_generator_connect_all(struct pace_load_generator *l, struct pace_tally *t);
/* Runs the schedule for `duration`, then waits until all due requests have ended. */
void pace_load_generator_run(struct pace_load_generator *l, struct pace_schedule *s, uint64_t duration,
                             struct pace_tally *t);

#endif

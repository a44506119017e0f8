/* SPDX-License-Identifier: Apache-2.0 */
/* A database in a worker: its connections, and statements and transactions that wait for one. */
#ifndef DUDA_POSTGRES_BASE_H
#define DUDA_POSTGRES_BASE_H

#include "conn.h"

struct postgres_waiter {
    struct postgres_waiter *next;
    struct duda *d;
    struct postgres_conn *conn;
    bool is_over;
};

struct postgres_base {
    struct duda_sql sql; /* the first */
    const struct postgres_settings *settings;
    struct mk_worker *worker;
    struct mk_turn_end *turn;
    struct mk_alarm *alarm;
    struct postgres_conn *conns;
    struct postgres_job *waiting, **last;            /* statements */
    struct postgres_waiter *wanting, **wanting_last; /* transactions */
    unsigned n_waiting;
    bool ticks;
};

int postgres_base_open(struct postgres_base *b, struct mk_worker *w,
                       const struct postgres_settings *settings);
void postgres_base_close(struct postgres_base *b);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of all handlers of a worker: sent together, answered in their order. */
#ifndef DUDA_REDIS_QUEUE_H
#define DUDA_REDIS_QUEUE_H

#include "conn.h"

/* A handler that waits, on its stack. */
struct redis_wait {
    struct duda *d;
    struct duda_redis_reply *replies;
    size_t got;
    bool is_over;
    int error;
};

/* Commands that are sent in one piece, and their replies. */
struct redis_job {
    struct redis_job *next;
    struct redis_wait *wait; /* NULL: the handler does not wait any more */
    uint64_t due_ms;
    size_t left; /* replies that are to come */
    size_t len;  /* of its bytes in q->bytes, until it is sent */
};

struct redis_queue {
    struct redis_conn conn; /* the first: a connection is its queue */
    struct mk_turn_end *turn;
    struct mk_alarm *alarm;
    struct redis_job *sent, **sent_end, *waiting, **waiting_end;
    struct redis_job *spare;
    struct mk_buf bytes; /* of all jobs that wait, one after the other */
    unsigned n, n_spare;
    uint64_t down_ms; /* since when; 0: it is not */
    bool ticks;
};

int redis_queue_init(struct redis_queue *q, struct mk_worker *w, const struct redis_settings *settings);
void redis_queue_fini(struct redis_queue *q);
/* Takes a job of `n_replies`, for which redis_conn_write() then writes its commands to q->bytes, and
 * redis_queue_add() says that they are there. -EBUSY, or the error because of which the server is out of
 * reach. */
int redis_queue_begin(struct redis_queue *q, struct redis_wait *wait, size_t n_replies,
                      struct redis_job **out);
/* 0; -ENOMEM: there was no memory for the commands, and the job has ended. */
int redis_queue_add(struct redis_queue *q, struct redis_job *job);

#endif

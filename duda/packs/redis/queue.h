/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of all handlers of a worker: sent together, answered in their order. */
#ifndef DUDA_REDIS_QUEUE_H
#define DUDA_REDIS_QUEUE_H

#include "conn.h"

/* Commands that are sent in one piece, and their replies. On the heap; freed by the queue after on_end. */
struct redis_job {
    struct redis_job *next;
    /* reply is NULL at the end, with 0 or an error. NULL when the handler does not wait any more. */
    void (*on_reply)(void *ctx, const redisReply *reply, int error);
    void *ctx;
    uint64_t due_ms;
    size_t left; /* replies that are to come */
    struct mk_buf bytes;
};

struct redis_queue {
    struct redis_conn conn; /* the first: a connection is its queue */
    struct mk_turn_end *turn;
    struct mk_alarm *alarm;
    struct redis_job *sent, **sent_end, *waiting, **waiting_end;
    unsigned n;
    uint64_t down_ms; /* since when; 0: it is not */
    bool ticks;
};

int redis_queue_init(struct redis_queue *q, struct mk_worker *w, const struct redis_settings *settings);
void redis_queue_fini(struct redis_queue *q);
/* Takes the job if it is 0; else -EBUSY or the error because of which the server is out of reach. */
int redis_queue_add(struct redis_queue *q, struct redis_job *job);
struct redis_job *redis_job_new(size_t n_replies);
void redis_job_free(struct redis_job *job);

#endif

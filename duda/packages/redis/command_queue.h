/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of all handlers of a worker: sent together, answered in their order. */
#ifndef DUDA_REDIS_COMMAND_QUEUE_H
#define DUDA_REDIS_COMMAND_QUEUE_H

#include <duda/wait.h>

#include "conn.h"

/* What a handler waits for. */
struct redis_reply_wait {
    struct duda_wait *wait; /* its wait, which may be for several of these */
    struct duda_redis_reply *replies;
    size_t got;
    bool is_over, is_unsent; /* unsent: it has failed before its bytes left */
    int error;
};

/* Commands that are sent in one piece, and their replies. */
struct redis_batch {
    struct package_request request; /* the first: a request is its job */
    struct redis_reply_wait *wait;  /* NULL: the handler does not wait any more */
    size_t left;                    /* replies that are to come */
    size_t len;                     /* of its bytes in q->bytes, until it is sent */
};

struct redis_command_queue {
    struct redis_conn conn; /* the first: a connection is its queue */
    struct package_request_queue spare;
    struct mk_buf bytes; /* of all jobs that wait, one after the other */
    size_t dead;         /* at their begin: of jobs that have failed */
    unsigned n_like;     /* handlers that ask this node, in the queue or beside it */
    uint64_t demoted_ms; /* when its server was last found to be a replica; 0: never */
    bool retires;        /* the connection gets no more commands, and is closed after the last reply */
    bool
        is_node; /* of a cluster: another one may take its place, so that no command waits until it is back */
};

/* Its server takes no writes any more, but the address may lead to another one by now: connects anew, once
 * all that was sent is answered. */
void redis_command_queue_retire(struct redis_command_queue *q);
/* At that address; NULL: the server of the settings. */
int redis_command_queue_init(struct redis_command_queue *q, struct mk_worker *w,
                             const struct redis_settings *settings, const char *address);
void redis_command_queue_fini(struct redis_command_queue *q);
/* Jobs that wait for the connection, or for replies. */
static inline size_t redis_command_queue_count(const struct redis_command_queue *q)
{
    return q->conn.stream.link.waiting.n + q->conn.stream.link.sent.n;
}
/* Takes a job of `n_replies`, for which redis_command_format() then writes its commands to q->bytes, and
 * redis_batch_enqueue() says that they are there. -EBUSY, or the error because of which the server is out of
 * reach. */
int redis_batch_begin(struct redis_command_queue *q, struct redis_reply_wait *wait, size_t n_replies,
                      struct redis_batch **out);
/* 0; -ENOMEM: there was no memory for the commands, and the job has ended. */
int redis_batch_enqueue(struct redis_command_queue *q, struct redis_batch *batch);

#endif

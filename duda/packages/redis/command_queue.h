/* SPDX-License-Identifier: Apache-2.0 */
/* The pipelined commands of all handlers of a worker. */
#ifndef DUDA_REDIS_COMMAND_QUEUE_H
#define DUDA_REDIS_COMMAND_QUEUE_H

#include <duda/wait.h>

#include "conn.h"

/* The replies that a handler waits for. */
struct redis_reply_wait {
    struct duda_wait *wait; /* the handler's wait; several redis_reply_wait structs may share it */
    struct duda_redis_reply *replies;
    size_t got;
    bool is_over, is_not_sent; /* is_not_sent: the batch failed before its bytes were sent */
    int error;
};

/* Commands that are sent together, and their replies. */
struct redis_batch {
    struct package_request request; /* must be first: a request is cast to its batch */
    struct redis_reply_wait *wait;  /* NULL: the handler no longer waits */
    size_t left;                    /* outstanding replies */
    size_t len;                     /* length of its bytes in q->bytes, until they are sent */
};

struct redis_command_queue {
    struct redis_conn conn; /* must be first: a connection is cast to its queue */
    struct package_request_queue spare;
    struct mk_buf bytes;     /* commands of all waiting batches, concatenated */
    size_t dead;             /* length of the prefix of `bytes` that belongs to failed batches */
    unsigned n_users;        /* handlers that use this node, in the queue or outside it */
    uint64_t was_replica_ms; /* last time the server turned out to be a replica; 0: never */
    bool retires;            /* sends no more commands, and closes after the last reply */
    bool is_node;            /* a cluster node: commands fail at once if it is down */
};

/* Reconnects after the last outstanding reply: the server no longer accepts writes, and its address may
 * belong to another server by now. */
void redis_command_queue_retire(struct redis_command_queue *q);
/* Creates a queue for the server at `address`; NULL: the server of the settings. */
int redis_command_queue_init(struct redis_command_queue *q, struct mk_worker *w,
                             const struct redis_settings *settings, const char *address);
void redis_command_queue_fini(struct redis_command_queue *q);
/* Returns the number of batches that wait for the connection or for replies. */
static inline size_t redis_command_queue_count(const struct redis_command_queue *q)
{
    return q->conn.stream.base.waiting.n + q->conn.stream.base.sent.n;
}
/* Starts a batch with `n_replies` replies. The caller then writes the commands to q->bytes with
 * redis_command_format(), and submits them with redis_batch_enqueue(). Returns 0, -EBUSY, -ENOMEM, or the
 * error that makes the server unavailable. */
int redis_batch_begin(struct redis_command_queue *q, struct redis_reply_wait *wait, size_t n_replies,
                      struct redis_batch **out);
/* Returns 0, or -ENOMEM if there is no memory for the commands; the batch has then ended. */
int redis_batch_enqueue(struct redis_command_queue *q, struct redis_batch *batch);

#endif

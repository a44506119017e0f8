/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that are sent together over one connection, and the handler that waits for their replies. */
#ifndef DUDA_REDIS_REQUEST_H
#define DUDA_REDIS_REQUEST_H

#include "command_queue.h"

struct redis_request {
    const struct duda_redis_command *commands;
    size_t n;
    bool is_transaction;       /* send the commands between MULTI and EXEC */
    bool sends_asking;         /* prepend ASKING */
    uint64_t extra_timeout_ms; /* added to Timeout; UINT64_MAX: no timeout */
};

/* A request in flight. */
struct redis_pending_request {
    struct redis_reply_wait wait;
    struct redis_batch *batch;
};

/* A handler that waits for the replies to several requests. The group is on its stack. */
struct redis_request_group {
    struct duda_wait wait; /* must be first */
    struct redis_pending_request *all;
    size_t n;
    int error; /* the error that cancelled the handler */
};

/* Returns the number of replies: one for each command, one for a preceding ASKING, and those to MULTI and
 * EXEC. */
size_t redis_request_reply_count(const struct redis_request *r);
/* Runs a single request. Returns 0 or an error; *is_not_sent says whether the caller may try another
 * server. */
int redis_request_run(struct duda_ctx *d, struct redis_command_queue *q, const struct redis_request *r,
                      struct duda_redis_reply *replies, bool *is_not_sent);

/* Begins a group of requests. Returns 0, or the error that cancelled the handler. duda_wait_end(&a->wait)
 * ends the group and abandons unfinished requests. */
int redis_request_group_begin(struct redis_request_group *a, struct duda_ctx *d,
                              struct redis_pending_request *all, size_t n);
/* Starts `s`, a request of the group. Returns 0, or the error that prevented the start; s->wait.is_not_sent
 * is like *is_not_sent above. */
int redis_request_begin(struct redis_request_group *a, struct redis_command_queue *q,
                        const struct redis_request *r, struct duda_redis_reply *replies,
                        struct redis_pending_request *s);
/* Waits for the replies to a started request. */
int redis_request_wait(struct redis_request_group *a, const struct redis_pending_request *s);

#endif

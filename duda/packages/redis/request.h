/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that go together over one connection, and a handler that waits for their replies. */
#ifndef DUDA_REDIS_REQUEST_H
#define DUDA_REDIS_REQUEST_H

#include "command_queue.h"

struct redis_request {
    const struct duda_redis_command *commands;
    size_t n;
    bool is_whole;    /* a transaction */
    bool asks;        /* ASKING goes ahead */
    uint64_t late_ms; /* added to Timeout; UINT64_MAX: without limit */
};

/* One that is under way. */
struct redis_pending_request {
    struct redis_reply_wait wait;
    struct redis_batch *batch;
};

/* A handler that waits for the replies to some; on its stack. */
struct redis_request_group {
    struct duda_wait wait; /* the first */
    struct redis_pending_request *all;
    size_t n;
    int error; /* what has ended the handler meanwhile */
};

/* Replies: one for each command, one for ASKING ahead of them, and those of MULTI and EXEC around them. */
size_t redis_request_reply_count(const struct redis_request *r);
/* One alone: 0 or an error; is_unsent says whether another server may do it. */
int redis_request_run(struct duda_ctx *d, struct redis_command_queue *q, const struct redis_request *r,
                      struct duda_redis_reply *replies, bool *is_unsent);

/* Several at once: 0, or what has ended the handler. duda_wait_end(&a->wait) ends it: what is not over then is of no interest. */
int redis_request_group_begin(struct redis_request_group *a, struct duda_ctx *d,
                              struct redis_pending_request *all, size_t n);
/* 0, or why `s`, one of them, was not begun; s->wait.is_unsent is as above. */
int redis_request_begin(struct redis_request_group *a, struct redis_command_queue *q,
                        const struct redis_request *r, struct duda_redis_reply *replies,
                        struct redis_pending_request *s);
/* Waits for the replies to one that was begun. */
int redis_request_wait(struct redis_request_group *a, const struct redis_pending_request *s);

#endif

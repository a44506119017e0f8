/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that go together over one connection, and a handler that waits for their replies. */
#ifndef DUDA_REDIS_REQUEST_H
#define DUDA_REDIS_REQUEST_H

#include "queue.h"

struct redis_request {
    const struct duda_redis_command *commands;
    size_t n;
    bool is_whole;    /* a transaction */
    bool asks;        /* ASKING goes ahead */
    uint64_t late_ms; /* added to Timeout; UINT64_MAX: without limit */
};

/* One that is under way. */
struct redis_sending {
    struct redis_wait wait;
    struct redis_job *job;
};

/* Replies: one for each command, one for ASKING ahead of them, and those of MULTI and EXEC around them. */
size_t redis_request_replies(const struct redis_request *r);
/* 0, or why it was not begun; s->wait.is_unsent says whether another server may do it. */
int redis_request_begin(struct duda *d, struct redis_queue *q, const struct redis_request *r,
                        struct duda_redis_reply *replies, struct redis_sending *s);
/* Waits for the replies, and gives up waiting if the handler ends. */
int redis_request_wait(struct redis_sending *s);

#endif

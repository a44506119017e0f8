/* SPDX-License-Identifier: Apache-2.0 */
/* Replies as hiredis reads them, made at once in the memory of the handler that waits for them. */
#ifndef DUDA_REDIS_REPLY_H
#define DUDA_REDIS_REPLY_H

#include <duda/redis.h>
#include <hiredis/hiredis.h>

struct redis_block;

/* Reads the replies of one connection. */
struct redis_parser {
    redisReader *reader;
    /* Where the next reply goes to; d is NULL: into its own memory, until the next reply. */
    struct duda *d;
    struct duda_redis_reply *to;
    struct redis_block *blocks; /* its own memory; the last one is the first */
    size_t list_max;            /* members that all lists of a reply may have together */
    size_t members;             /* that they have so far */
    bool is_out_of_memory;      /* of the handler: the reply was read, and not kept */
};

int redis_parser_init(struct redis_parser *p);
void redis_parser_fini(struct redis_parser *p);
/* Forgets what it has of a reply. */
void redis_parser_reset(struct redis_parser *p);
/* 0 with *out, which is p->to or in the parser's own memory until the next call; -EAGAIN; -EMSGSIZE: there
 * are more members than list_max; -EPROTO or -ENOMEM, and p->reader->errstr says why. After an error the
 * connection is of no use any more. */
int redis_parser_next(struct redis_parser *p, struct duda_redis_reply **out);
/* What a complaint of the server means: -ENOSPC: it has no room; -EAGAIN: not now; else -EREMOTEIO. */
int redis_reply_error(const struct duda_redis_reply *reply);

#endif

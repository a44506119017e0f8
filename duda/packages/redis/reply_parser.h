/* SPDX-License-Identifier: Apache-2.0 */
/* Replies in the protocols RESP2 and RESP3, made at once in the memory of the handler that waits for them. A
 * value of RESP3 becomes what RESP2 has in its place, so that a handler sees the same in both. */
#ifndef DUDA_REDIS_REPLY_PARSER_H
#define DUDA_REDIS_REPLY_PARSER_H

#include <duda/redis.h>

struct redis_block;

/* How deep lists may be nested. */
enum { REDIS_DEPTH_MAX = 16 };

/* A list that is being read. */
struct redis_level {
    struct duda_redis_reply *next; /* the place of its next member */
    size_t left;                   /* members to come */
    bool is_attribute;             /* it says something of the value that follows */
};

/* Reads the replies of one connection. */
struct redis_reply_parser {
    struct mk_buf in;
    size_t at;      /* before it, all of `in` is read */
    size_t scanned; /* before it, there is no end of the line that begins at `at` */
    /* Where the next reply goes to; d is NULL: into its own memory, until the next reply. */
    struct duda_ctx *d;
    struct duda_redis_reply *to;
    struct duda_redis_reply root, skipped; /* skipped: a value that nobody wants */
    struct redis_block *blocks;            /* its own memory; the last one is the first */
    struct redis_level levels[REDIS_DEPTH_MAX];
    unsigned depth;
    unsigned skips;        /* the depth of the attribute that is being read; 0: none is */
    size_t list_max;       /* members that all lists of a reply may have together */
    size_t members;        /* that they have so far */
    bool is_push;          /* the value is no reply: the server has sent it unasked */
    bool is_out_of_memory; /* of the handler: the reply was read, and not kept */
    const char *why;       /* after -EPROTO and -ENOMEM */
};

/* list_max is set, the rest is zero. */
void redis_reply_parser_init(struct redis_reply_parser *p);
void redis_reply_parser_fini(struct redis_reply_parser *p);
/* Forgets what it has of a reply. */
void redis_reply_parser_reset(struct redis_reply_parser *p);
/* Bytes that have arrived. 0 or -ENOMEM. */
int redis_reply_parser_feed(struct redis_reply_parser *p, mk_str bytes);
/* 0 with *out, which is p->to or in the parser's own memory until the next call; -EAGAIN; -EMSGSIZE: there
 * are more members than list_max; -EPROTO or -ENOMEM, and p->why says why. After an error the connection is
 * of no use any more. */
int redis_reply_parser_next(struct redis_reply_parser *p, struct duda_redis_reply **out);
/* What an error of the server means: -ENOSPC: it has no room; -EAGAIN: not now; else -EREMOTEIO. */
int redis_reply_errno(const struct duda_redis_reply *reply);

#endif

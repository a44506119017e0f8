/* SPDX-License-Identifier: Apache-2.0 */
/* Parses RESP2 and RESP3 replies directly into the memory of the waiting handler. RESP3 values are mapped to
 * their RESP2 equivalents, so handlers see no difference. */
#ifndef DUDA_REDIS_REPLY_PARSER_H
#define DUDA_REDIS_REPLY_PARSER_H

#include <duda/redis.h>

struct redis_block;

/* Maximum nesting of lists. */
enum { REDIS_DEPTH_MAX = 16 };

/* A list that is being parsed. */
struct redis_level {
    struct duda_redis_reply *next; /* destination of the next member */
    size_t left;                   /* remaining members */
    bool is_attribute;             /* an attribute, which describes the next value */
};

/* Parses the replies of one connection. */
struct redis_reply_parser {
    struct mk_buf in;
    size_t at;      /* offset of the unparsed bytes of `in` */
    size_t scanned; /* the line that begins at `at` has no line ending before this offset */
    /* The handler that gets the next reply, and where it is stored. If `d` is NULL, the reply is stored in
     * the memory of the parser, valid until the next reply. */
    struct duda_ctx *d;
    struct duda_redis_reply *to;
    struct duda_redis_reply root, skipped; /* skipped: receives values that are not needed */
    struct redis_block *blocks;            /* memory of the parser, most recent first */
    struct redis_level levels[REDIS_DEPTH_MAX];
    unsigned depth;
    unsigned skips;         /* nesting depth of the attribute being skipped; 0: none */
    size_t list_max;        /* maximum number of members in all lists of a reply */
    size_t members;         /* members so far */
    bool is_push;           /* a push message, not a reply */
    bool is_out_of_memory;  /* the handler has no memory: the reply was parsed, but not stored */
    const char *error_text; /* set after -EPROTO and -ENOMEM */
};

/* The caller has set list_max; the other members are zero. */
void redis_reply_parser_init(struct redis_reply_parser *p);
void redis_reply_parser_fini(struct redis_reply_parser *p);
/* Discards a partial reply. */
void redis_reply_parser_reset(struct redis_reply_parser *p);
/* Adds received bytes. Returns 0 or -ENOMEM. */
int redis_reply_parser_feed(struct redis_reply_parser *p, mk_str bytes);
/* Parses the next reply. Returns 0 and sets *out, which is p->to or is valid until the next call; -EAGAIN if
 * the reply is incomplete; -EMSGSIZE if it has more members than list_max; or -EPROTO or -ENOMEM, with a
 * message in p->error_text. After an error other than -EAGAIN, close the connection. */
int redis_reply_parser_next(struct redis_reply_parser *p, struct duda_redis_reply **out);
/* Maps an error reply to an errno value: -ENOSPC if the server is out of memory, -EAGAIN if the command may
 * succeed later, otherwise -EREMOTEIO. */
int redis_reply_errno(const struct duda_redis_reply *reply);

#endif

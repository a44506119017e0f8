/* SPDX-License-Identifier: Apache-2.0 */
/* A response of HTTP/1 as it comes in from a server, or of CGI as it comes from a program, in pieces of any
 * size: heads, content, trailers, end. What it holds of a head that came in pieces is bounded; content is
 * handed on as slices of the input. Does no I/O. */
#ifndef MK_HTTP_REPLY_H
#define MK_HTTP_REPLY_H

#include "base/buf.h"
#include "http/chunked.h"
#include "http/reply_head.h"

enum { MK_REPLY_HEAD_MAX = 32 * 1024, MK_REPLY_INTERIM_MAX = 8, MK_REPLY_TRAILERS_MAX = 8192 };

enum mk_reply_step {
    MK_REPLY_MORE,     /* all of *in was used, and the end is not reached */
    MK_REPLY_HEADED,   /* r->head is there, of an interim response (its status is below 200) or of the final
                          one; its text is valid until the next call, while the input is */
    MK_REPLY_DATA,     /* *data is a piece of the content, never empty */
    MK_REPLY_TRAILERS, /* *data is a piece of the trailer section: see mk_chunked_next */
    MK_REPLY_END,      /* it is complete; *in is what follows it: after 101, the other protocol */
    MK_REPLY_BAD,      /* it is no response: see `problem` */
};

struct mk_reply {
    struct mk_reply_head head;
    uint64_t length;     /* bytes of content so far */
    const char *problem; /* static */
    bool begun;          /* some byte of it came */
    uint8_t state;
    uint8_t n_interim;
    uint8_t fields_max;
    struct mk_reply_request request;
    uint64_t left;
    struct mk_chunked chunked;
    struct mk_buf text; /* of a head that came in pieces */
};

/* `fields` is room for the `fields_max` lines of a head, and must live as long; with NULL and 0 no lines are
 * kept. */
void mk_reply_init(struct mk_reply *r, struct mk_reply_request request, struct mk_field *fields,
                   unsigned fields_max);
/* Frees what it holds. To read the next response, call mk_reply_init() again. */
void mk_reply_fini(struct mk_reply *r);
/* Takes what it can from the beginning of *in and moves *in behind it. How the bytes were cut changes nothing
 * but the pieces of the data. After the end, and after MK_REPLY_BAD, the answer stays the same. */
enum mk_reply_step mk_reply_next(struct mk_reply *r, mk_str *in, mk_str *data) MK_MUST_USE;
/* Has all of its content been handed out, so that only its end may be missing? */
bool mk_reply_is_over(const struct mk_reply *r);
/* How much content is to come, where the head has said it; else UINT64_MAX. */
uint64_t mk_reply_left(const struct mk_reply *r);
/* The server closed: MK_REPLY_END or MK_REPLY_BAD. */
enum mk_reply_step mk_reply_close(struct mk_reply *r) MK_MUST_USE;

#endif

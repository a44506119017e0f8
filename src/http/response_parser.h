/* SPDX-License-Identifier: Apache-2.0 */
/* A response of HTTP/1 as it comes in from a server, or of CGI as it comes from a program, in pieces of any
 * size: heads, content, trailers, end. What it holds of a head that came in pieces is bounded; content is
 * handed on as slices of the input. Does no I/O. */
#ifndef MK_HTTP_RESPONSE_PARSER_H
#define MK_HTTP_RESPONSE_PARSER_H

#include "base/buf.h"
#include "http/chunked.h"
#include "http/response_head.h"

enum {
    MK_RESPONSE_PARSER_HEAD_MAX = 32 * 1024,
    MK_RESPONSE_PARSER_1XX_MAX = 8,
    MK_RESPONSE_PARSER_TRAILERS_MAX = 8192
};

enum mk_response_parser_event {
    MK_RESPONSE_PARSER_MORE, /* all of *in was used, and the end is not reached */
    MK_RESPONSE_PARSER_HEAD, /* r->head is there, of an interim response (its status is below 200) or of the final
                          one; its text is valid until the next call, while the input is */
    MK_RESPONSE_PARSER_DATA,     /* *data is a piece of the content, never empty */
    MK_RESPONSE_PARSER_TRAILERS, /* *data is a piece of the trailer section: see mk_chunked_decode */
    MK_RESPONSE_PARSER_END,      /* it is complete; *in is what follows it: after 101, the other protocol */
    MK_RESPONSE_PARSER_ERROR,    /* it is no response: see `problem` */
};

struct mk_response_parser {
    struct mk_response_head head;
    uint64_t length;     /* bytes of content so far */
    const char *problem; /* static */
    bool begun;          /* some byte of it came */
    uint8_t state;
    uint8_t n_interim;
    uint8_t fields_max;
    struct mk_response_parser_options request;
    uint64_t left;
    struct mk_chunked chunked;
    struct mk_buf text; /* of a head that came in pieces */
};

/* `fields` is room for the `fields_max` lines of a head, and must live as long; with NULL and 0 no lines are
 * kept. */
void mk_response_parser_init(struct mk_response_parser *r, struct mk_response_parser_options request,
                             struct mk_header_field *fields, unsigned fields_max);
/* Frees what it holds. To read the next response, call mk_response_parser_init() again. */
void mk_response_parser_fini(struct mk_response_parser *r);
/* Takes what it can from the beginning of *in and moves *in behind it. How the bytes were cut changes nothing
 * but the pieces of the data. After the end, and after MK_RESPONSE_PARSER_ERROR, the answer stays the same. */
enum mk_response_parser_event mk_response_parser_next(struct mk_response_parser *r, mk_str *in,
                                                      mk_str *data) MK_MUST_USE;
/* Has all of its content been handed out, so that only its end may be missing? */
bool mk_response_parser_has_all_body(const struct mk_response_parser *r);
/* How much content is to come, where the head has said it; else UINT64_MAX. */
uint64_t mk_response_parser_body_left(const struct mk_response_parser *r);
/* The server closed: MK_RESPONSE_PARSER_END or MK_RESPONSE_PARSER_ERROR. */
enum mk_response_parser_event mk_response_parser_eof(struct mk_response_parser *r) MK_MUST_USE;

#endif

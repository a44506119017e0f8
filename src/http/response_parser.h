/* SPDX-License-Identifier: Apache-2.0 */
/* Incremental parser for HTTP/1 or CGI responses in pieces of any size: heads, body, trailers, end. Buffers
 * only fragmented heads, whose length is limited; body data is returned as slices of the input. Does no
 * I/O. */
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
    MK_RESPONSE_PARSER_MORE, /* all input was consumed, but the end was not reached */
    MK_RESPONSE_PARSER_HEAD, /* r->head is the complete head of an interim response (status below 200) or of
                              * the final response; its text is valid until the next call, as long as the
                              * input is not changed */
    MK_RESPONSE_PARSER_DATA, /* *data is a piece of the body, never empty */
    MK_RESPONSE_PARSER_TRAILERS, /* *data is a piece of the trailer section: see mk_chunked_decode() */
    MK_RESPONSE_PARSER_END,      /* complete; *in is the data after it: after 101, data of the new protocol */
    MK_RESPONSE_PARSER_ERROR,    /* invalid response: see `problem` */
};

struct mk_response_parser {
    struct mk_response_head head;
    uint64_t length;     /* body bytes so far */
    const char *problem; /* static */
    bool begun;          /* a byte of the response has arrived */
    uint8_t state;
    uint8_t n_interim;
    uint8_t fields_max;
    struct mk_response_parser_options request;
    uint64_t left;
    struct mk_chunked chunked;
    struct mk_buf text; /* buffer of a fragmented head */
};

/* `fields` has space for `fields_max` lines of a head, and must outlive the parser; with NULL and 0, no lines
 * are stored. */
void mk_response_parser_init(struct mk_response_parser *r, struct mk_response_parser_options request,
                             struct mk_header_field *fields, unsigned fields_max);
/* Frees the parser's buffer. Call mk_response_parser_init() again before the next response. */
void mk_response_parser_fini(struct mk_response_parser *r);
/* Consumes input: moves *in forward. Fragmentation affects only how data is split. After the end or
 * MK_RESPONSE_PARSER_ERROR, further calls return the same event. */
enum mk_response_parser_event mk_response_parser_next(struct mk_response_parser *r, mk_str *in,
                                                      mk_str *data) MK_MUST_USE;
/* Was the whole body returned? The end of the message may still be missing. */
bool mk_response_parser_has_all_body(const struct mk_response_parser *r);
/* Returns the body bytes left, if declared by the head; else UINT64_MAX. */
uint64_t mk_response_parser_body_left(const struct mk_response_parser *r);
/* Call this at EOF. Returns MK_RESPONSE_PARSER_END if the response is complete, else
 * MK_RESPONSE_PARSER_ERROR. */
enum mk_response_parser_event mk_response_parser_eof(struct mk_response_parser *r) MK_MUST_USE;

#endif

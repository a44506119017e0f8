/* SPDX-License-Identifier: Apache-2.0 */
/* Strict parser for the response heads of HTTP/1 (RFC 9112, section 4) and CGI (RFC 3875, section 6.3): a
 * response that two clients could interpret differently is rejected. Allocates nothing: all text points into
 * the input. */
#ifndef MK_HTTP_RESPONSE_HEAD_H
#define MK_HTTP_RESPONSE_HEAD_H

#include "http/header.h"

/* How the body length is determined (RFC 9112, section 6.3). */
enum mk_response_body_kind {
    MK_RESPONSE_BODY_NONE,
    MK_RESPONSE_BODY_LENGTH,
    MK_RESPONSE_BODY_CHUNKED,
    MK_RESPONSE_BODY_UNTIL_CLOSE
};

/* Properties of the request, and the syntax of the response. */
struct mk_response_parser_options {
    bool head;    /* HEAD request: the response has no body */
    bool upgrade; /* upgrade requested: 101 is allowed */
    /* The response has CGI syntax (from FastCGI, SCGI, uwsgi or a pipe): a `Status` header replaces the
     * status line, although a status line is accepted as well; lines may end with LF alone; chunked coding is
     * not allowed. */
    bool cgi;
};

struct mk_response_head {
    unsigned status, minor; /* `minor` is the x of HTTP/1.x: 0 or 1 */
    mk_str reason;
    enum mk_response_body_kind body;
    uint64_t length;   /* Content-Length, even if the response has no body, such as a response to HEAD */
    bool has_length;   /* the head declares a length */
    bool keep_alive;   /* the connection may be reused */
    bool names_fields; /* Connection lists names other than `close` and `keep-alive` */
    bool has_status;   /* CGI: the head has a status; otherwise, `status` is 302 if the head has a Location,
                        * and 200 if not */
    unsigned n_others; /* CGI: number of headers other than Status, Location, Content-Type, Content-Length and
                        * those that only a server may set */
    mk_str location;   /* CGI; absent: none */
    struct mk_headers fields;
    bool is_too_long; /* the error is that the head is too long */
    mk_str where;     /* the invalid line; absent: the error concerns no particular line */
};

/* Returns the length of the head at the beginning of `text`, including its empty line; 0: incomplete. The
 * first `seen` bytes were searched before. */
size_t mk_response_head_end(mk_str text, size_t seen, struct mk_response_parser_options request);

/* Parses a complete head, including its empty line. The caller has set h->fields.at to memory for
 * `fields_max` lines (at most MK_HEADERS_MAX); with 0, no lines are stored. Returns NULL, or a static error
 * text. */
const char *mk_response_head_parse(struct mk_response_head *h, mk_str text, unsigned fields_max,
                                   struct mk_response_parser_options request) MK_MUST_USE;

/* Parses a head that may be incomplete. True: it is complete and valid, and *text is the data after it. */
bool mk_response_head_try_parse(struct mk_response_head *h, mk_str *text, unsigned fields_max,
                                struct mk_response_parser_options request) MK_MUST_USE;

/* CGI: is the response a local redirect (RFC 3875, section 6.2.2)? Its Location is then a path, and it has
 * neither a status nor a header that n_others counts. */
bool mk_response_head_is_local_redirect(const struct mk_response_head *h);

/* CGI: iterates over the headers of a parsed head that are for the client: neither Status, nor
 * Content-Length, nor a header that only a server may set. *lines is initially the head. False at the end. */
bool mk_response_head_next_header(mk_str *lines, struct mk_header_field *field);

/* Parses a status line that a program wrote, such as "HTTP/1.1 200 OK". False: the line is invalid, or the
 * status is below `min`. */
bool mk_response_head_parse_status(mk_str line, unsigned min, unsigned *status);

#endif

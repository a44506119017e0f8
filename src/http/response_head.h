/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a response, read to the letter: a response that two clients could understand in two ways is
 * refused. Of HTTP/1 (RFC 9112, section 4), or as a CGI program writes it (RFC 3875, section 6.3). Allocates
 * nothing: all text points into the input. */
#ifndef MK_HTTP_RESPONSE_HEAD_H
#define MK_HTTP_RESPONSE_HEAD_H

#include "http/header.h"

/* How the length of the content is determined (RFC 9112, section 6.3). */
enum mk_response_body_kind {
    MK_RESPONSE_BODY_NONE,
    MK_RESPONSE_BODY_LENGTH,
    MK_RESPONSE_BODY_CHUNKED,
    MK_RESPONSE_BODY_UNTIL_CLOSE
};

/* The request that the response answers. */
struct mk_response_parser_options {
    bool head;    /* its method is HEAD: the response has no content */
    bool upgrade; /* it asked for another protocol: 101 is an answer */
    /* The response is what a CGI program writes, over FastCGI, SCGI, uwsgi or a pipe: fields, among them
     * `Status`, in place of a status line, which may be there all the same; lines may end with LF alone;
     * there are no chunks. */
    bool cgi;
};

struct mk_response_head {
    unsigned status, minor; /* the x of HTTP/1.x: 0 or 1 */
    mk_str reason;
    enum mk_response_body_kind body;
    uint64_t length;   /* for MK_RESPONSE_BODY_LENGTH, and what the head says where there is no content */
    bool has_length;   /* the head says it */
    bool keep_alive;   /* the connection may be used again */
    bool names_fields; /* Connection names more than `close` and `keep-alive` */
    bool has_status;   /* of CGI: the head says its status; else it is 302 with a Location, and 200 without */
    unsigned n_others; /* of CGI: fields other than Status, Location, Content-Type, Content-Length and those
                          that only a server may set */
    mk_str location;   /* of CGI; absent: none */
    struct mk_headers fields;
    bool is_too_long; /* what is wrong is its size */
    mk_str where;     /* the line that is wrong; absent: none in particular */
};

/* How long the head at the beginning of `text` is, its empty line included; 0: its end is not there. `seen`
 * bytes were searched before. */
size_t mk_response_head_end(mk_str text, size_t seen, struct mk_response_parser_options request);

/* `text` is a whole head, its empty line included. The caller has set h->fields.at to room for `fields_max`
 * lines (at most MK_HEADERS_MAX); with 0 no lines are kept. NULL, or what is wrong with the head: static. */
const char *mk_response_head_parse(struct mk_response_head *h, mk_str text, unsigned fields_max,
                                   struct mk_response_parser_options request) MK_MUST_USE;

/* The same of a head that may be cut off. True: it is whole and well, and *text is what follows it. */
bool mk_response_head_try_parse(struct mk_response_head *h, mk_str *text, unsigned fields_max,
                                struct mk_response_parser_options request) MK_MUST_USE;

/* Of CGI: is the Location a path of this server, and does the head say nothing else (RFC 3875,
 * section 6.2.2)? */
bool mk_response_head_is_local_redirect(const struct mk_response_head *h);

/* Of CGI: the next field of a head that was parsed, of those that are for the client: neither Status, nor
 * Content-Length, nor one that only a server may set. *lines is the head at first. False at its end. */
bool mk_response_head_next_header(mk_str *lines, struct mk_header_field *field);

/* The status of a line such as "HTTP/1.1 200 OK", as programs write it, from `min` on. False: it is none. */
bool mk_response_head_parse_status(mk_str line, unsigned min, unsigned *status);

#endif

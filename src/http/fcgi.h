/* SPDX-License-Identifier: Apache-2.0 */
/* Records of FastCGI 1.0, seen from a server that gives one request at a time to a responder: writes those of
 * the request, reads those of the response in pieces of any size. Strict: what a responder may not send is an
 * error. Does no I/O, and allocates nothing. */
#ifndef MK_HTTP_FCGI_H
#define MK_HTTP_FCGI_H

#include "base/buf.h"

enum {
    MK_FCGI_HEADER = 8,
    MK_FCGI_CONTENT_MAX = 65535, /* of a record */
    MK_FCGI_REQUEST = 1,         /* the number of each request: a connection has one at a time */
};

enum mk_fcgi_type {
    MK_FCGI_BEGIN = 1,
    MK_FCGI_END = 3,
    MK_FCGI_PARAMS = 4,
    MK_FCGI_STDIN = 5,
    MK_FCGI_STDOUT = 6,
    MK_FCGI_STDERR = 7,
};

/* ---- Writing ---- */

/* The header of a record with content of that length, which follows without padding. */
void mk_fcgi_write_header(char out[MK_FCGI_HEADER], enum mk_fcgi_type type, size_t len);
/* The record that begins a request to a responder, which keeps the connection. */
void mk_fcgi_append_begin_request(struct mk_buf *out);
/* The stream of PARAMS: begin it, add its pairs, end it with what the beginning answered. */
size_t mk_fcgi_begin_params(struct mk_buf *out);
/* How many of the bytes that say the two lengths are NUL. */
size_t mk_fcgi_append_param(struct mk_buf *out, mk_str name, mk_str value);
void mk_fcgi_end_params(struct mk_buf *out, size_t begun);

/* ---- Reading ---- */

enum mk_fcgi_event {
    MK_FCGI_MORE, /* all of *in was used, and the end is not reached */
    MK_FCGI_OUT,  /* *data is a piece of the standard output, never empty */
    MK_FCGI_ERR,  /* *data is a piece of the standard error, never empty */
    MK_FCGI_OVER, /* the request has ended: see `status`; *in is what follows */
    MK_FCGI_BAD,  /* these are no records of such a response: see `problem` */
};

/* Why a responder ended a request. */
enum mk_fcgi_status {
    MK_FCGI_COMPLETE,
    MK_FCGI_CANNOT_MULTIPLEX,
    MK_FCGI_OVERLOADED,
    MK_FCGI_UNKNOWN_ROLE,
};

struct mk_fcgi {
    const char *problem; /* static */
    uint8_t status;      /* enum mk_fcgi_status, once it is over */
    uint8_t state;
    uint8_t type; /* of the record that is being read */
    uint8_t n_block;
    uint8_t block[MK_FCGI_HEADER]; /* the header, or the content of the END record, as far as it is there */
    uint16_t left;                 /* content of the record that is to come */
    uint8_t padding;               /* that follows it */
    bool is_out_over;              /* the standard output has ended */
};

void mk_fcgi_init(struct mk_fcgi *f);
/* Takes what it can from the beginning of *in and moves *in behind it. How the bytes were cut changes nothing
 * but the pieces of the data. After the end, and after MK_FCGI_BAD, the answer stays the same. */
enum mk_fcgi_event mk_fcgi_parse(struct mk_fcgi *f, mk_str *in, mk_str *data) MK_MUST_USE;
/* The last n bytes of the piece of the standard output that mk_fcgi_parse() has just handed out were not used:
 * the next call hands them out again. *in begins with them again. */
void mk_fcgi_unread(struct mk_fcgi *f, mk_str *in, size_t n);

#endif

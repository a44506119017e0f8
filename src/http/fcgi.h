/* SPDX-License-Identifier: Apache-2.0 */
/* FastCGI 1.0 records for a server that sends one request at a time to a responder: writes request records,
 * and parses response records from pieces of any size. Strict: anything that a responder must not send is an
 * error. Does no I/O and allocates nothing. */
#ifndef MK_HTTP_FCGI_H
#define MK_HTTP_FCGI_H

#include "base/buf.h"

enum {
    MK_FCGI_HEADER = 8,
    MK_FCGI_CONTENT_MAX = 65535, /* per record */
    MK_FCGI_REQUEST = 1,         /* ID of every request: a connection carries one at a time */
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

/* Writes the header of a record with that content length; the content follows without padding. */
void mk_fcgi_write_header(char out[MK_FCGI_HEADER], enum mk_fcgi_type type, size_t len);
/* Appends BEGIN_REQUEST for a responder, with the keep-connection flag. */
void mk_fcgi_append_begin_request(struct mk_buf *out);
/* The PARAMS stream: begin it, append its pairs, and end it with the value that mk_fcgi_begin_params()
 * returned. */
size_t mk_fcgi_begin_params(struct mk_buf *out);
/* Appends a pair. Returns how many bytes of its two encoded lengths are NUL, so that the caller can tell
 * these from NUL bytes in names and values. */
size_t mk_fcgi_append_param(struct mk_buf *out, mk_str name, mk_str value);
void mk_fcgi_end_params(struct mk_buf *out, size_t begun);

/* ---- Reading ---- */

enum mk_fcgi_event {
    MK_FCGI_MORE, /* all input was consumed, but the end was not reached */
    MK_FCGI_OUT,  /* *data is a piece of standard output, never empty */
    MK_FCGI_ERR,  /* *data is a piece of standard error, never empty */
    MK_FCGI_OVER, /* the request has ended: see `status`; *in is the data after it */
    MK_FCGI_BAD,  /* invalid records: see `problem` */
};

/* Protocol status in END_REQUEST. */
enum mk_fcgi_status {
    MK_FCGI_COMPLETE,
    MK_FCGI_CANNOT_MULTIPLEX,
    MK_FCGI_OVERLOADED,
    MK_FCGI_UNKNOWN_ROLE,
};

struct mk_fcgi {
    const char *problem; /* static */
    uint8_t status;      /* enum mk_fcgi_status, after the end */
    uint8_t state;
    uint8_t type; /* type of the current record */
    uint8_t n_block;
    uint8_t block[MK_FCGI_HEADER]; /* received part of the header, or of the body of END_REQUEST */
    uint16_t left;                 /* content bytes left in the record */
    uint8_t padding;               /* padding bytes after the content */
    bool is_out_over;              /* standard output has ended */
};

void mk_fcgi_init(struct mk_fcgi *f);
/* Consumes input: moves *in forward. Fragmentation affects only how data is split. After the end or
 * MK_FCGI_BAD, further calls return the same event. */
enum mk_fcgi_event mk_fcgi_parse(struct mk_fcgi *f, mk_str *in, mk_str *data) MK_MUST_USE;
/* Unreads the last n bytes of the piece of standard output that the last call returned: puts them at the
 * start of *in again, so that the next call returns them. */
void mk_fcgi_unread(struct mk_fcgi *f, mk_str *in, size_t n);

#endif

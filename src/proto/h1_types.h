/* SPDX-License-Identifier: Apache-2.0 */
/* The state of HTTP/1 for the current request. Types only, so that the files of HTTP/1 need not include each
 * other in a circle. */
#ifndef MK_PROTO_H1_TYPES_H
#define MK_PROTO_H1_TYPES_H

#include "http/chunked.h"
#include "http/framing.h"
#include "proto/http_stream.h"

/* Does the connection go on behind this exchange (RFC 9112, section 9.3)? */
enum mk_h1_persistence {
    MK_H1_CLOSED_BY_CLIENT, /* no: the client asks for it, or its request is malformed */
    MK_H1_CLOSED_BY_SERVER, /* no: the server ends it; the client may send more */
    MK_H1_PERSISTENT,       /* yes */
    MK_H1_WRITE_SHUTDOWN,   /* no: the server has already closed its side, at the end of a tunnel */
};

/* What delimits the content of the response (RFC 9112, section 6.3). */
enum mk_h1_delimiter {
    MK_H1_BY_LENGTH, /* or there is none */
    MK_H1_BY_CHUNKS,
    MK_H1_BY_CLOSE,
};

/* Lives in the arena of its exchange. */
struct mk_h1 {
    struct mk_http_stream d; /* first */

    /* The request. */
    enum mk_body body; /* framing of its content */
    uint64_t left;     /* bytes of MK_BODY_LENGTH that have not arrived */
    struct mk_chunked *chunked;
    struct mk_buf *trailers; /* the part of the section that has arrived; NULL: none */

    /* The response. */
    enum mk_h1_persistence persistence;
    enum mk_h1_delimiter delimiter;
    size_t from; /* where it begins in the scratch, while it is MK_RESPONSE_BUFFERED */
};

#endif

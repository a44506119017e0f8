/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1 state of the current request. Types only, to avoid circular includes. */
#ifndef MK_CONNECTION_H1_TYPES_H
#define MK_CONNECTION_H1_TYPES_H

#include "connection/http_stream.h"
#include "http/chunked.h"
#include "http/framing.h"

/* Can the connection be reused after this exchange (keep-alive; RFC 9112, section 9.3)? */
enum mk_h1_persistence {
    MK_H1_CLOSED_BY_CLIENT, /* no: the client does not want to keep it, or sent a malformed request */
    MK_H1_CLOSED_BY_SERVER, /* no: the server decided to close it, and the client may still be sending */
    MK_H1_PERSISTENT,       /* yes */
    MK_H1_WRITE_SHUTDOWN,   /* no: a tunnel has ended, and the server has shut down its sending side */
};

/* The framing of the response body (RFC 9112, section 6.3). */
enum mk_h1_delimiter {
    MK_H1_BY_LENGTH, /* Content-Length, or no body */
    MK_H1_BY_CHUNKS,
    MK_H1_BY_CLOSE,
};

/* Allocated in the arena of its exchange. */
struct mk_h1 {
    struct mk_http_stream d; /* first */

    /* The request. */
    enum mk_body body; /* framing of the request body */
    uint64_t left;     /* bytes of the body not yet received, if `body` is MK_BODY_LENGTH */
    struct mk_chunked *chunked;
    struct mk_buf *trailers; /* received part of the trailer section; NULL: none */

    /* The response. */
    enum mk_h1_persistence persistence;
    enum mk_h1_delimiter delimiter;
    size_t from; /* offset of the response in the output buffer, while it is MK_RESPONSE_BUFFERED */
};

#endif

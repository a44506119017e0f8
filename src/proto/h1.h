/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.0 and HTTP/1.1 on a connection (RFC 9112). */
#ifndef MK_PROTO_H1_H
#define MK_PROTO_H1_H

#include "http/chunked.h"
#include "http/framing.h"
#include "proto/coldread.h"
#include "proto/conn.h"

extern const struct mk_conn_ops mk_h1_ops;

/* ops->advance for a connection that was entered already; leaves it. */
void mk_h1_serve(struct mk_conn *c);

/* What HTTP/1 has to remember of the request under way; lives in its arena. */
struct mk_h1 {
    struct mk_conn *conn;
    struct mk_exchange *x;

    /* Content of the request, on its way in. */
    enum mk_body body;    /* MK_BODY_NONE once all of it was read */
    uint64_t left;        /* of MK_BODY_LENGTH */
    uint64_t received;    /* so far */
    uint64_t content_max; /* -EMSGSIZE above it */
    struct mk_chunked *chunked;
    struct mk_buf *trailers; /* the section, as far as it came; NULL: nothing of it */
    mk_err broken;           /* what reading it came to, sticky */
    bool expects_continue;   /* 100 is still owed */
    bool wants_input;        /* somebody waits for content */
    bool may_follow;         /* the peer has not said that this is its last request */

    /* The response, on its way out. */
    bool go;   /* flow or source may be called (again) */
    bool keep; /* another request may follow */
    bool in_chunks;
    bool complete; /* all its bytes were produced */
    bool unsent;   /* all of it is in the scratch, from there on: it can still become another one */
    size_t from;
    bool recorded;
    bool hears;                   /* in a tunnel: somebody wants to know what the peer says */
    bool shut;                    /* in a tunnel: we have said that no more will come */
    struct mk_coldread *coldread; /* a disk is being waited for */
    uint64_t to_send;             /* of the content, where its length is known */
    uint64_t sent;
    enum mk_ending ending;
};

/* May whoever waits be called again? After a resume, or when there is the input that it asked for. */
static inline bool mk_h1_take_turn(struct mk_h1 *h)
{
    bool go = h->go || (h->wants_input && (h->conn->readable || mk_conn_input(h->conn).len > 0));
    h->go = false;
    if (go)
        h->wants_input = false;
    if (go && h->conn->clock == MK_CLOCK_HANDLER)
        h->conn->clock = MK_CLOCK_NONE; /* the next wait has all of its time */
    return go;
}

#endif

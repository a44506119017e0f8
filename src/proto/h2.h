/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 on a connection (RFC 9113): one connection, many requests at a time. What is said here is about all
 * of them; a single one is a stream (h2_stream.h). */
#ifndef MK_PROTO_H2_H
#define MK_PROTO_H2_H

#include "http/h2frame.h"
#include "http/hpack.h"
#include "http/priority.h"
#include "proto/conn.h"

extern const struct mk_conn_ops mk_h2_ops;

/* Takes over a connection that was entered already, in the state IDLE or HEAD, with the client's preface (or
 * the first bytes of it) as the next of its input; leaves it. */
void mk_h2_serve(struct mk_conn *c);

enum { MK_H2_BUCKETS = 16, MK_H2_RESETS_KEPT = 32 };

struct mk_h2_stream;

struct mk_h2 {
    struct mk_conn *conn;
    struct mk_hpack *decoder;
    struct mk_h2_stream *buckets[MK_H2_BUCKETS]; /* those that are open, by their number */
    unsigned n_streams;
    uint32_t last_stream;               /* the highest that the client has opened */
    uint32_t final_stream;              /* with `leaving`: none above it is served */
    uint32_t resets[MK_H2_RESETS_KEPT]; /* streams that we ended lately: the client may not know yet */
    unsigned n_resets;

    /* Windows (RFC 9113, section 5.2). */
    int64_t receive_window;    /* what the client may still send of content */
    int64_t send_window;       /* what the client takes of content, on the whole */
    int32_t stream_window;     /* of a new stream */
    uint32_t owed;             /* content that came and was not given back to the client's window yet */
    struct mk_list with_debts; /* streams that owe such, too */

    struct mk_list woken;               /* streams whose handler may go on */
    struct mk_list ready[MK_URGENCIES]; /* streams that have something to send */
    unsigned ready_mask;                /* which of these are not empty, perhaps */

    /* A head that comes in several frames. */
    struct mk_buf block;
    uint32_t block_stream; /* 0: there is none */
    bool block_ends;       /* the stream ends with it */
    unsigned block_frames;

    /* What a client may do that is of no use to anybody; see h2_guard.h. */
    uint32_t patience;
    uint64_t patience_ms;

    unsigned n_flushes;   /* of the scratch */
    uint32_t table_max;   /* what the client allows our heads to use of its memory: nothing is used, */
    bool owes_table_size; /* but it has to be told when this became less */
    uint32_t told_at;     /* requests that had come when the first GOAWAY went */
    uint32_t idle_at;     /* and when it was found to be idle */

    bool greeted;    /* the preface was seen */
    bool introduced; /* its first SETTINGS were */
    bool drain_told; /* the first GOAWAY is out, and a PING that tells when it has arrived */
    bool leaving;    /* the final one is out: when the last stream has ended, so does the connection */
    bool deserted;   /* the client has said that it leaves: the same */
    bool failed;     /* with an error: nothing is read any more */
    bool lost;       /* the socket is */
    bool halved;     /* the client sends no more */
};

/* The scratch of the worker, which takes frames while the connection is served. */
static inline struct mk_buf *mk_h2_out(const struct mk_h2 *h2)
{
    return &h2->conn->service->out;
}

#endif

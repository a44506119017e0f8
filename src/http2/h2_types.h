/* SPDX-License-Identifier: Apache-2.0 */
/* The state of an HTTP/2 connection and of each stream (RFC 9113). Types only, so that the files of HTTP/2
 * need not include each other in a circle. */
#ifndef MK_HTTP2_H2_TYPES_H
#define MK_HTTP2_H2_TYPES_H

#include "base/assert.h"
#include "http2/h2_frame.h"
#include "http2/h2_priority.h"
#include "http2/hpack.h"
#include "proto/http2.h"
#include "proto/http_stream.h"

enum { MK_H2_BUCKETS = 16, MK_H2_RESETS_KEPT = 32 };

/* What the client has sent on the connection, and so what may come next. */
enum mk_h2_remote {
    MK_H2_REMOTE_PREFACE,  /* nothing; the preface comes first, */
    MK_H2_REMOTE_SETTINGS, /* then its SETTINGS, */
    MK_H2_REMOTE_OPEN,     /* then any frame */
    MK_H2_REMOTE_GOAWAY,   /* the same; GOAWAY was received */
    MK_H2_REMOTE_CLOSED, /* nothing will follow: all frames are read. mk_conn_is_half_closed() is true earlier, when
                              the FIN arrives, and the frames ahead of the FIN still count */
    MK_H2_REMOTES
};

/* What the server has sent about the end of the connection. */
enum mk_h2_local {
    MK_H2_LOCAL_OPEN,
    MK_H2_LOCAL_WARNED, /* a GOAWAY without a last stream is sent, and a PING that tells when it has arrived
                         */
    MK_H2_LOCAL_GOAWAY, /* the GOAWAY that names the last stream is sent */
    MK_H2_LOCAL_FAILED, /* a GOAWAY with an error is sent; no more input is read */
    MK_H2_LOCAL_LOST,   /* the socket is broken */
    MK_H2_LOCALS
};

struct mk_h2_stream;

struct mk_h2 {
    struct mk_conn *conn;
    struct mk_sm remote, local; /* enum mk_h2_remote, mk_h2_local */
    struct mk_hpack *decoder;
    struct mk_h2_stream *buckets[MK_H2_BUCKETS]; /* streams that are not closed, by their identifier */
    struct mk_list closed;                       /* their memory is freed between two steps of a turn */
    unsigned n_streams;                          /* in the buckets */
    uint32_t last_stream;                        /* the highest that the client has opened */
    uint32_t final_stream;                       /* the last one that is served, as our GOAWAY says */
    uint32_t resets[MK_H2_RESETS_KEPT]; /* streams that we reset recently: the client may not know yet */
    unsigned n_resets;

    /* Windows (RFC 9113, section 5.2). */
    int64_t send_window;    /* content that the client accepts, on all streams together */
    int32_t stream_window;  /* the same of a new stream */
    int64_t receive_window; /* content that the client may still send */
    int64_t held;           /* unread content */
    uint32_t share;         /* receive window of a new stream */
    uint32_t spare;         /* not part of any window yet: widens those of streams whose handlers read */
    uint32_t early; /* content beyond its share that a stream may have from a client that has not seen our
                       SETTINGS */
    struct mk_list touched; /* streams whose receive window may be opened */

    struct mk_list woken;               /* streams to run in this turn */
    struct mk_list ready[MK_URGENCIES]; /* streams that have something to send */
    unsigned ready_mask;                /* which of these lists may have entries */

    /* A field block that arrives in several frames. */
    struct mk_buf block;
    uint32_t block_stream; /* 0: there is none */
    unsigned block_flags;  /* of the first frame */
    unsigned block_frames;

    /* The budget for useless frames; see h2_abuse.h. */
    uint32_t patience;
    uint64_t patience_ms;

    /* The easiest limits among the closed streams with output that may still be unsent; NULL: the server's
     * limits. */
    const struct mk_request_limits *limits_left;
    struct mk_request_limits left; /* those, since a stream may have its own */

    unsigned n_flushes;   /* of the scratch */
    uint32_t table_max;   /* the table size that the client allows: it is not used, */
    bool owes_table_size; /* but the next head must confirm a reduction */
    uint32_t warned_at;   /* requests that had come when the first GOAWAY was sent */
    uint32_t idle_at;     /* and when the connection was last idle */
};

struct mk_h2_body_chunk;

/* A stream: one request and its response. Lives in the arena of its exchange. Its state (RFC 9113,
 * section 5.1) is d.state; a closed one that is also recorded takes part in nothing any more. */
struct mk_h2_stream {
    struct mk_http_stream d; /* first */
    struct mk_h2 *h2;
    struct mk_h2_stream *next; /* in its bucket */
    struct mk_list turn;       /* in h2->woken, h2->ready or h2->closed */
    struct mk_list touched;    /* in h2->touched */
    struct mk_timer timer;
    struct mk_conn_rate rate;
    uint64_t progress; /* bytes of content that moved, in or out */
    uint32_t id;
    uint8_t clock; /* enum mk_clock */
    uint8_t due;   /* a clock that has run out and was not handled yet */
    struct mk_h2_priority priority;

    /* The request. */
    struct mk_h2_body_chunk *first, *last; /* unread content */
    uint64_t announced;                    /* its Content-Length, MK_REQUEST_LENGTH_UNKNOWN */
    int64_t receive_window, held;          /* as in struct mk_h2 */
    uint32_t window_size;                  /* what the window is opened to, less what is held */

    /* The response. */
    int64_t send_window;
    size_t head_from, head_to; /* where its head and the content that directly follows are in the scratch, */
    unsigned head_flush;       /* unless it was flushed since */
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* State of an HTTP/2 connection and its streams (RFC 9113). Types only, to avoid circular includes. */
#ifndef MK_HTTP2_H2_TYPES_H
#define MK_HTTP2_H2_TYPES_H

#include "base/assert.h"
#include "connection/http2.h"
#include "connection/http_stream.h"
#include "http2frame/h2_frame.h"
#include "http2frame/hpack.h"

/* The Priority header (RFC 9218): urgency of a response, and whether partial data is useful. */
enum { MK_URGENCIES = 8, MK_URGENCY_USUAL = 3 };

struct mk_h2_priority {
    uint8_t urgency; /* 0 is the most urgent */
    bool incremental;
};

enum { MK_H2_BUCKETS = 16, MK_H2_RESETS_KEPT = 32 };

/* The client's progress on the connection; determines which frames may come next. */
enum mk_h2_remote {
    MK_H2_REMOTE_PREFACE,  /* nothing received; the preface comes next */
    MK_H2_REMOTE_SETTINGS, /* preface received; SETTINGS come next */
    MK_H2_REMOTE_OPEN,     /* SETTINGS received; any frame may follow */
    MK_H2_REMOTE_GOAWAY,   /* GOAWAY received; any frame may follow */
    MK_H2_REMOTE_CLOSED,   /* EOF: all frames are read. mk_conn_is_half_closed() is true earlier, when the FIN
                          * arrives, and frames before the FIN still count */
    MK_H2_REMOTES
};

/* The server's announcements of the end of the connection. */
enum mk_h2_local {
    MK_H2_LOCAL_OPEN,
    MK_H2_LOCAL_WARNED, /* a GOAWAY that refuses no stream was sent, with a PING that shows when it has
                         * arrived */
    MK_H2_LOCAL_GOAWAY, /* the final GOAWAY, with the last stream, was sent */
    MK_H2_LOCAL_FAILED, /* a GOAWAY with an error was sent; no more input is read */
    MK_H2_LOCAL_LOST,   /* the socket is broken */
    MK_H2_LOCALS
};

struct mk_h2_stream;

struct mk_h2 {
    struct mk_conn *conn;
    struct mk_state remote, local; /* enum mk_h2_remote, mk_h2_local */
    struct mk_hpack_decoder *decoder;
    struct mk_h2_stream *buckets[MK_H2_BUCKETS]; /* open streams, by identifier */
    struct mk_list closed;                       /* to be freed by mk_h2_stream_free_closed() */
    unsigned n_streams;                          /* in the buckets */
    uint32_t last_stream;                        /* highest stream opened by the client */
    uint32_t final_stream;                       /* last stream that is served, according to our GOAWAY */
    uint32_t resets[MK_H2_RESETS_KEPT]; /* streams that we reset recently: the client may not know yet */
    unsigned n_resets;

    /* Windows (RFC 9113, section 5.2). */
    int64_t send_window;    /* send window of the connection */
    int32_t stream_window;  /* initial send window of a new stream */
    int64_t receive_window; /* receive window of the connection */
    int64_t held;           /* unread body bytes of all streams */
    uint32_t share;         /* receive window of a new stream */
    uint32_t spare;         /* bytes of the limit that belong to no stream's window yet: they widen the
                             * windows of streams whose handlers read */
    uint32_t early; /* bytes beyond the share of a stream that a client may send before it has seen our
                     * SETTINGS */
    struct mk_list touched; /* streams that may need a WINDOW_UPDATE */

    struct mk_list woken;               /* streams to run when the connection is served next */
    struct mk_list ready[MK_URGENCIES]; /* streams with output */
    unsigned ready_mask;                /* bitmap of lists that may have entries */

    /* A header block that arrives in several frames. */
    struct mk_buf block;
    uint32_t block_stream; /* 0: none */
    unsigned block_flags;  /* flags of the first frame */
    unsigned block_frames;

    /* The abuse budget; see h2_abuse.h. */
    uint32_t abuse_budget;
    uint64_t abuse_refilled_ms;

    /* The most lenient limits of closed streams whose output may still be pending; NULL: the server's
     * limits. */
    const struct mk_request_limits *pending_limits;
    struct mk_request_limits left; /* copy of these limits, which may be freed with their stream */

    unsigned n_flushes;   /* number of flushes of the output buffer */
    uint32_t table_max;   /* HPACK table size that the client allows; the table stays empty */
    bool owes_table_size; /* the client has reduced the table size, and the next head must confirm that */
    uint32_t warned_at;   /* number of requests when the first GOAWAY was sent */
    uint32_t idle_at;     /* number of requests when the connection was last idle */
};

struct mk_h2_body_chunk;

/* A stream: one request and its response. Allocated in the arena of its exchange. Its state (RFC 9113,
 * section 5.1) is d.state; once the stream is closed and logged, mk_h2_stream_is_closed() is true. */
struct mk_h2_stream {
    struct mk_http_stream d; /* first */
    struct mk_h2 *h2;
    struct mk_h2_stream *next; /* next stream in the bucket */
    struct mk_list queue_link; /* in h2->woken, h2->ready or h2->closed */
    struct mk_list touched;    /* in h2->touched */
    struct mk_timer timer;
    struct mk_conn_rate rate;
    uint64_t progress; /* body bytes transferred in both directions */
    uint32_t id;
    uint8_t timeout; /* enum mk_conn_timeout */
    uint8_t due;     /* an expired timeout not handled yet */
    struct mk_h2_priority priority;

    /* The request. */
    struct mk_h2_body_chunk *first, *last; /* unread body data */
    uint64_t announced;                    /* Content-Length; MK_REQUEST_LENGTH_UNKNOWN: none was sent */
    int64_t receive_window, held;          /* receive window and unread body bytes of this stream */
    uint32_t window_size;                  /* target size of the receive window, including the held bytes */

    /* The response. */
    int64_t send_window;
    size_t head_from, head_to; /* range of the head and the following body data in the output buffer */
    unsigned head_flush;       /* value of n_flushes for which that range is valid */
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP/2 session with a backend, and its streams (RFC 9113). Types only, to avoid circular includes. */
#ifndef MK_HTTP2CLIENT_H2_SESSION_TYPE_H
#define MK_HTTP2CLIENT_H2_SESSION_TYPE_H

#include "http/response_parser.h"
#include "http2frame/h2_frame.h"
#include "http2frame/hpack.h"
#include "upstream/pool.h"

enum {
    MK_H2_SESSION_BUCKETS = 64,
    MK_H2_SESSION_STREAMS_MAX = 128,        /* streams of one session, even if the server allows more */
    MK_H2_SESSION_READ_MAX = 32 * 1024,     /* bytes per read from the socket */
    MK_H2_SESSION_OUT_MAX = 64 * 1024,      /* unsent bytes beyond which streams must wait */
    MK_H2_SESSION_UNSENT_MAX = 128 * 1024,  /* unsent bytes beyond which no input is read */
    MK_H2_SESSION_BLOCK_MAX = 64 * 1024,    /* size of a header block in several frames */
    MK_H2_SESSION_WINDOW = 1 << 20,         /* receive window of the session */
    MK_H2_SESSION_STREAM_WINDOW = 65535,    /* initial receive window of a stream, as in RFC 9113 */
    MK_H2_SESSION_WIDE_WINDOW = 256 * 1024, /* receive window of a stream whose reader keeps up */
    MK_H2_SESSION_WIDE_STREAMS_MAX =
        256, /* streams of a worker with a wide window: 64 MB, if their readers stop */
};

enum mk_h2_session_state {
    MK_H2_SESSION_CONNECTING, /* the socket is connecting, or SETTINGS have not arrived */
    MK_H2_SESSION_OPEN,
    MK_H2_SESSION_DRAINING, /* no new streams, because either side has sent GOAWAY */
    MK_H2_SESSION_FAILED,   /* all streams have failed */
    MK_H2_SESSION_STATES
};

extern const struct mk_state_machine mk_h2_session_machine;

struct mk_h2_session_stream;

struct mk_h2_session {
    struct mk_list link;      /* in mk_backend.sessions; not linked once the session has failed */
    struct mk_list unflushed; /* in mk_pool.unflushed */
    struct mk_backend *backend;
    struct mk_upstream_conn conn; /* the socket */
    struct mk_state state;        /* enum mk_h2_session_state */
    bool has_begun;               /* the preface was sent */
    bool is_suspect;              /* a PING was sent to a server that did not respond to a request in time */
    bool is_ping_sent;
    bool has_connect_protocol; /* the server accepts extended CONNECT (RFC 8441) */
    bool owes_table_size; /* the server has reduced the HPACK table, and the next block must confirm it */
    unsigned depth;       /* nesting of functions that use the session: it must not be freed */
    unsigned n_streams;   /* streams attached, including those that are not open yet */
    uint64_t n_requests;  /* streams opened so far */
    uint64_t idle_since_ms;
    int error;                              /* error of all streams, once the session has failed */
    const char *problem;                    /* its description; static */
    struct mk_list streams, ready, blocked; /* all streams; streams to notify; streams that wait to send */
    struct mk_h2_session_stream *buckets[MK_H2_SESSION_BUCKETS]; /* open streams, by identifier */
    struct mk_timer timer; /* while SETTINGS or the acknowledgment of a PING is awaited */

    /* Output. */
    struct mk_buf out;
    size_t sent;      /* bytes of `out` */
    uint32_t next_id; /* identifier of the next stream */
    int64_t send_window;
    uint32_t stream_window; /* initial send window of a stream */
    uint32_t frame_max;     /* largest frame that we send */
    uint32_t streams_max;   /* concurrent streams that the server allows */
    uint32_t table_max;

    /* Input. */
    struct mk_hpack_decoder *decoder;
    struct mk_buf in; /* an incomplete frame */
    char *scratch;    /* mk_pool.http2_scratch, while input is read */
    int64_t receive_window;
    struct mk_buf block;   /* a header block in several frames */
    uint32_t block_stream; /* 0: none */
    unsigned block_flags, block_frames;
    unsigned n_useless; /* frames since `useless_since_ms` that bring no response forward */
    uint64_t useless_since_ms;
};

struct mk_h2_session_stream {
    struct mk_upstream_conn *conn;
    struct mk_h2_session *session;
    struct mk_h2_session_stream *next; /* in the bucket */
    struct mk_list link;               /* in session->streams */
    struct mk_list ready;              /* in session->ready */
    struct mk_list blocked;            /* in session->blocked */
    unsigned events;                   /* to report to the owner of the connection */
    uint32_t id;                       /* 0: its HEADERS were not sent yet */

    /* The request. */
    bool is_local_closed; /* END_STREAM was sent */
    bool is_connect;      /* extended CONNECT: after a 2xx response, bytes in both directions */
    bool is_tunnel;
    uint32_t data_left; /* bytes of the current DATA frame of the request that were not sent yet */
    int64_t send_window;

    /* The response. */
    bool has_head;         /* the final head has arrived */
    bool is_remote_closed; /* END_STREAM has arrived, or the stream was reset */
    bool is_reset;
    uint8_t n_interim;   /* interim heads */
    int error;           /* what reads return after the queued data; 0: no error */
    const char *problem; /* its description; static */
    int64_t receive_window;
    bool is_wide; /* counts in mk_pool.n_http2_wide: the window was wide, and is not used up */
    char *queue;  /* records for the codec; see h2_session_stream.h */
    size_t from, to, cap;
    char inline_queue[];
};

#endif

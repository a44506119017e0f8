/* SPDX-License-Identifier: Apache-2.0 */
/* An upstream request and the states of its two directions. */
#ifndef MK_UPSTREAM_REQUEST_TYPE_H
#define MK_UPSTREAM_REQUEST_TYPE_H

#include <monkey/request.h>
#include <monkey/state_machine.h>
#include <monkey/worker.h>

#include "base/assert.h"
#include "http/upgrade.h"
#include "upstream/codec.h"
#include "upstream/freelist.h"

/* State of the request. */
enum mk_upstream_request_state {
    MK_UPSTREAM_REQUEST_WAITING,  /* waiting for a connection */
    MK_UPSTREAM_REQUEST_OPEN,     /* connected; waiting for the response head */
    MK_UPSTREAM_REQUEST_CONTENT,  /* head received; body readable */
    MK_UPSTREAM_REQUEST_UPGRADED, /* switched to another protocol */
    MK_UPSTREAM_REQUEST_DONE,     /* response read completely, connection released */
    MK_UPSTREAM_REQUEST_FAILED,   /* connection released; see `error` */
    MK_UPSTREAM_REQUEST_STATES
};

/* State of sending, or of the tunnel's outgoing direction. */
enum mk_upstream_request_output {
    MK_UPSTREAM_REQUEST_OUTPUT_NONE,    /* not connected */
    MK_UPSTREAM_REQUEST_OUTPUT_HELD,    /* only the head: the body waits for 100 Continue */
    MK_UPSTREAM_REQUEST_OUTPUT_SENDING, /* sending head and body, while the body is still being read from its
                                           source */
    MK_UPSTREAM_REQUEST_OUTPUT_ENDING,  /* the body's source has ended; the rest is being sent */
    MK_UPSTREAM_REQUEST_OUTPUT_SENT,
    MK_UPSTREAM_REQUEST_OUTPUT_BROKEN, /* the server accepts no more, or the source has failed; a response
                                        * may still arrive */
    MK_UPSTREAM_REQUEST_OUTPUT_STATES
};

/* Reason for the current timeout. */
enum mk_upstream_request_wait_kind {
    MK_UPSTREAM_REQUEST_AWAITS_NOTHING,
    MK_UPSTREAM_REQUEST_AWAITS_ROOM,     /* the server must accept more of the request */
    MK_UPSTREAM_REQUEST_AWAITS_RESPONSE, /* request sent; waiting for the response */
    MK_UPSTREAM_REQUEST_AWAITS_PIECE,    /* waiting for more of the response */
};

/* The request body: `text`, or bytes read from `source`. */
struct mk_upstream_request_body_state {
    mk_str text;
    const struct mk_upstream_request_body *source;
    void *ctx;
    int64_t length; /* MK_LENGTH_UNKNOWN */
    uint64_t done;  /* bytes read so far */
    bool is_held;   /* hold the body until 100 Continue, on every attempt */
    bool is_over;   /* the end of the body, with its terminator, is in `out` or was sent */
    bool is_gone;   /* part of the body was sent and is no longer in `out` */
};

/* Read-ahead for slow readers: see read_ahead.h. */
struct mk_read_ahead {
    struct mk_request *request;   /* the reader's request; NULL: no read-ahead */
    struct mk_spool_queue *queue; /* data read ahead; NULL: the reader keeps up */
    uint64_t taken;               /* bytes read since the last check */
    int error;                    /* error of the spool, whose data is lost */
    bool was_dry;                 /* the server's data ran out at least once since the last check */
    bool is_awaited;              /* the last read returned no data: the reader waits for more */
};

struct mk_upstream_request {
    struct mk_worker *worker;
    struct mk_pool *pool;
    struct mk_freelist *blocks; /* free list that contains this struct when it is not in use */
    size_t size;                /* allocated size of this struct */
    struct mk_upstream *to;
    struct mk_upstream_conn *conn; /* NULL: none */
    const struct mk_codec_ops *codec;
    const struct mk_codec_body_framing *frame;
    void (*on_ready)(void *ctx);
    struct mk_request *resumes; /* request to resume in place of a call to on_ready; NULL: none */
    void *ctx;
    struct mk_state state, output; /* enum mk_upstream_request_state, _output */
    uint8_t awaits;
    bool is_safe_to_repeat;
    bool is_local_redirect;
    uint8_t n_refused;   /* attempts that a server has refused without processing them */
    uint32_t reset_code; /* HTTP/2 error code of the server; 0: none */
    int error;           /* why the request failed, or why its output is MK_UPSTREAM_REQUEST_OUTPUT_BROKEN */
    const char *problem;

    struct mk_upstream_limits limits; /* `max_tries`: servers that may still be tried, including the current
                                         one */

    /* Attempts. */
    struct mk_upstream_conn_options options;
    bool wants_fresh;
    mk_str server_name; /* server of the released connection */
    int server;

    /* The request: its head, followed by buffered body data. */
    struct mk_buf out;
    size_t head_len, sent; /* bytes of `out` */
    struct mk_buf
        *http1_head; /* the head of an upgrade for a server without tunnels over HTTP/2; NULL: none */
    struct mk_upstream_request_body_state content;

    /* The response. */
    struct mk_codec_response_state input;
    struct mk_header *fields; /* headers of the last head; one allocation with its text and the copy of
                               * `in` */
    size_t fields_cap;        /* allocated size */
    mk_str text;              /* text of `fields` */
    unsigned n_fields;
    int64_t length;
    mk_str in;   /* received, not parsed yet */
    mk_str data; /* body data not yet returned */
    struct mk_buf trailers;
    struct mk_buf named; /* field names listed in Connection */

    /* Waiting. */
    struct mk_timer timer;
    uint64_t next_check_ms;    /* when to check for a slow reader; 0: never */
    uint64_t since_ms;         /* start of the current wait */
    uint64_t total_due_ms;     /* until when the response must begin; 0: no limit */
    uint64_t timer_due_ms;     /* when the timer fires; 0: not set */
    struct mk_deferred *later; /* NULL until needed */
    void (*on_later)(void *c);

    struct mk_read_ahead ahead;

    size_t upgrade_len, accept_len;
    char upgrade[]; /* protocol requested by Upgrade, followed by the expected Sec-WebSocket-Accept */
};

/* Notifies the owner that one of the functions of monkey/upstream.h can continue. */
static inline void mk_upstream_request_notify(struct mk_upstream_request *c)
{
    if (c->resumes)
        mk_request_resume(c->resumes);
    else
        c->on_ready(c->ctx);
}

#endif

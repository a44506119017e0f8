/* SPDX-License-Identifier: Apache-2.0 */
/* A request to a server, and the states of its two directions. */
#ifndef MK_UPSTREAM_REQUEST_TYPE_H
#define MK_UPSTREAM_REQUEST_TYPE_H

#include <monkey/sm.h>
#include <monkey/worker.h>

#include "base/assert.h"
#include "http/upgrade.h"
#include "upstream/codec.h"
#include "upstream/freelist.h"

/* How far the request is. */
enum mk_upstream_request_state {
    MK_UPSTREAM_REQUEST_WAITING,  /* for a connection */
    MK_UPSTREAM_REQUEST_OPEN,     /* connected; the head of the response is to come */
    MK_UPSTREAM_REQUEST_CONTENT,  /* the head is there, its content is to be read */
    MK_UPSTREAM_REQUEST_UPGRADED, /* bytes of another protocol */
    MK_UPSTREAM_REQUEST_DONE,     /* all of the response was read, and the connection given back */
    MK_UPSTREAM_REQUEST_FAILED,   /* the connection was given back; why is `error` */
    MK_UPSTREAM_REQUEST_STATES
};

/* How far the request is, or what we send in another protocol. */
enum mk_upstream_request_output {
    MK_UPSTREAM_REQUEST_OUTPUT_NONE,    /* there is no connection to send it on */
    MK_UPSTREAM_REQUEST_OUTPUT_HELD,    /* its head alone: its content waits until the server asks for it */
    MK_UPSTREAM_REQUEST_OUTPUT_SENDING, /* its head and its content, which is pulled meanwhile */
    MK_UPSTREAM_REQUEST_OUTPUT_ENDING,  /* all of the content was pulled; the rest is being sent */
    MK_UPSTREAM_REQUEST_OUTPUT_SENT,
    MK_UPSTREAM_REQUEST_OUTPUT_BROKEN, /* the server takes no more, or there is no more; it may have answered all the
                                same */
    MK_UPSTREAM_REQUEST_OUTPUT_STATES
};

/* What the clock runs for. */
enum mk_upstream_request_wait_kind {
    MK_UPSTREAM_REQUEST_AWAITS_NOTHING,
    MK_UPSTREAM_REQUEST_AWAITS_ROOM,     /* the server is to take more of the request */
    MK_UPSTREAM_REQUEST_AWAITS_RESPONSE, /* the request is sent, the response is to begin */
    MK_UPSTREAM_REQUEST_AWAITS_PIECE,    /* the response is to go on */
};

/* The content of the request: `text`, or what the source makes. */
struct mk_upstream_request_body_state {
    mk_str text;
    const struct mk_upstream_request_body *source;
    void *ctx;
    int64_t length; /* MK_LENGTH_UNKNOWN */
    uint64_t done;  /* so much of it was pulled */
    bool is_held;   /* until the server asks for it, with every attempt */
    bool is_over;   /* all of it, and its end is written */
    bool is_gone;   /* some of it was sent and is not in `out` any more */
};

/* Reading ahead of a slow reader: read_ahead.h. */
struct mk_read_ahead {
    struct mk_request *request;   /* of the reader; NULL: it gets what comes, at its own speed */
    struct mk_spool_queue *queue; /* NULL: it keeps up */
    uint64_t taken;               /* bytes since the last look */
    int error;                    /* of the queue: what was in it is lost */
    bool was_dry;                 /* since the last look the server had nothing for a moment */
    bool is_awaited;              /* the last read found nothing */
};

struct mk_upstream_request {
    struct mk_worker *worker;
    struct mk_freelist *blocks; /* where the memory of requests comes from */
    size_t size;                /* of this */
    struct mk_upstream *to;
    struct mk_upstream_conn *conn; /* NULL: none */
    const struct mk_codec_ops *codec;
    const struct mk_codec_body_framing *frame;
    void (*on_ready)(void *ctx);
    void *ctx;
    void (*on_down)(void *c);   /* the server is down, and has not answered */
    struct mk_sm state, output; /* enum mk_upstream_request_state, _output */
    uint8_t awaits;
    bool is_safe_to_repeat;
    bool is_local_redirect;
    int error; /* why it failed, or why output is MK_UPSTREAM_REQUEST_OUTPUT_BROKEN */
    const char *problem;

    struct mk_upstream_limits limits; /* `max_tries`: servers that may still be asked, this one included */

    /* Attempts. */
    struct mk_upstream_conn_options options;
    bool wants_fresh;
    mk_str server_name; /* of the last connection, once it was given back */
    int server;

    /* The request: its head, and behind it content that is being sent. */
    struct mk_buf out;
    size_t head_len, sent; /* of `out` */
    struct mk_upstream_request_body_state content;

    /* The response. */
    struct mk_codec_response_state input;
    struct mk_header *fields; /* of the last head, its text, and what `in` was: one allocation */
    size_t fields_cap;        /* its size */
    mk_str text;              /* the lines of `fields` */
    unsigned n_fields;
    int64_t length;
    mk_str in;   /* was read, and is to be parsed */
    mk_str data; /* content that is to be handed out */
    struct mk_buf trailers;
    struct mk_buf named; /* the options of Connection, if they name fields */

    /* Waiting. */
    struct mk_timer timer;
    uint64_t looks_ms;         /* when it is to look whether the reader is slow; 0: not */
    uint64_t since_ms;         /* what we await */
    uint64_t rings_ms;         /* when the timer fires; 0: it is not set */
    struct mk_deferred *later; /* NULL until it is needed */
    void (*on_later)(void *c);

    struct mk_read_ahead ahead;

    size_t upgrade_len, accept_len;
    char upgrade[]; /* the protocol that was asked for, and the Sec-WebSocket-Accept that it needs */
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP stream: the common part of HTTP/1 and HTTP/2 exchanges, between dispatch and connection. Reads the
 * response body, counts bytes in both directions, waits for handlers and uncached files, and writes the
 * access-log entry. The protocol, whose own struct begins with this one, does the framing. */
#ifndef MK_CONNECTION_HTTP_STREAM_H
#define MK_CONNECTION_HTTP_STREAM_H

#include <monkey/state_machine.h>

#include "base/assert.h"
#include "connection/conn.h"
#include "connection/prefetch.h"

/* The open directions, in the terms of RFC 9113, section 5.1. An idle stream has no object yet. The two
 * half-closed states are bits, and CLOSED has both. */
enum mk_http_stream_state {
    MK_HTTP_STREAM_OPEN,
    MK_HTTP_STREAM_HALF_CLOSED_REMOTE, /* the request body has been received completely */
    MK_HTTP_STREAM_HALF_CLOSED_LOCAL,  /* the response has been written completely, at least to the output
                                        * buffer */
    MK_HTTP_STREAM_CLOSED = MK_HTTP_STREAM_HALF_CLOSED_REMOTE | MK_HTTP_STREAM_HALF_CLOSED_LOCAL,
    MK_HTTP_STREAM_STATES
};

/* The treatment of incoming body data. */
enum mk_http_stream_input {
    MK_INPUT_WANTED,
    MK_INPUT_AWAITS_CONTINUE, /* the client waits for 100 Continue before it sends the body */
    MK_INPUT_UNWANTED,        /* discarded */
    MK_INPUT_STATES
};

/* Progress of the response beyond the states above. */
enum mk_http_stream_response {
    MK_RESPONSE_PENDING,    /* nothing written */
    MK_RESPONSE_BUFFERED,   /* head in the output buffer, nothing sent: can still be replaced */
    MK_RESPONSE_HEAD_SENT,  /* head sent */
    MK_RESPONSE_BODY_ENDED, /* body source ended; the end of the message is not written yet */
    MK_RESPONSE_RECORDED,   /* access-log entry written */
    MK_RESPONSE_STATES
};

/* The event that must occur before dispatch or the body source is called again. */
enum mk_http_stream_awaits {
    MK_AWAITS_NOTHING,
    MK_AWAITS_RESUME, /* a call to mk_request_resume(), or the end of the disk read of an uncached file */
    MK_AWAITS_BODY,   /* one of these events, or the arrival of request body data */
};

struct mk_http_stream {
    struct mk_conn *conn;
    struct mk_exchange *x;
    struct mk_state state, input, reply; /* enum mk_http_stream_state, _input, _response */
    uint8_t awaits;
    uint64_t received;    /* request body bytes received */
    uint64_t content_max; /* maximum size of the request body: reading more fails with -EMSGSIZE */
    uint64_t content_cap; /* maximum that a handler can set content_max to; from MaxRequestSize */
    uint64_t to_send;     /* response body bytes left to send; MK_RESPONSE_BODY_UNKNOWN: not known */
    uint64_t sent;        /* response body bytes sent */
    struct mk_prefetch *pending_prefetch; /* the disk read that the response waits for */
    enum mk_outcome outcome; /* how the request ended; 0: determined when the access-log entry is written */
};

/* ---- States ---- */

extern const struct mk_state_machine mk_http_stream_machine, mk_http_stream_input_machine,
    mk_http_stream_response_machine;

static inline void mk_http_stream_set_state(struct mk_http_stream *d, enum mk_http_stream_state to)
{
    mk_state_move(&d->state, &mk_http_stream_machine, d, to);
}

static inline void mk_http_stream_set_input_state(struct mk_http_stream *d, enum mk_http_stream_input to)
{
    mk_state_move(&d->input, &mk_http_stream_input_machine, d, to);
}

static inline void mk_http_stream_set_response_state(struct mk_http_stream *d,
                                                     enum mk_http_stream_response to)
{
    mk_state_move(&d->reply, &mk_http_stream_response_machine, d, to);
}

/* Has the request body been received completely? */
static inline bool mk_http_stream_request_received(const struct mk_http_stream *d)
{
    return d->state.current & MK_HTTP_STREAM_HALF_CLOSED_REMOTE;
}

/* Has the response been written completely? */
static inline bool mk_http_stream_response_written(const struct mk_http_stream *d)
{
    return d->state.current & MK_HTTP_STREAM_HALF_CLOSED_LOCAL;
}

/* Each closes one direction of the stream, if it is still open. */
static inline void mk_http_stream_close_remote(struct mk_http_stream *d)
{
    mk_http_stream_set_state(d, d->state.current | MK_HTTP_STREAM_HALF_CLOSED_REMOTE);
}

static inline void mk_http_stream_close_local(struct mk_http_stream *d)
{
    mk_http_stream_set_state(d, d->state.current | MK_HTTP_STREAM_HALF_CLOSED_LOCAL);
}

/* ---- Lifetime ---- */

/* Creates a request with its exchange. Returns `size` bytes in the exchange's arena that begin with the
 * stream; the rest is uninitialized. `space`: the additional memory that the exchange is expected to need; 0:
 * unknown. NULL: out of memory. */
void *mk_http_stream_new(struct mk_conn *c, size_t size, unsigned version, const struct mk_request_ops *ops,
                         size_t space) MK_MUST_USE;
/* Counts the request and passes its access-log entry to hooks and logs, unless this was done before. */
void mk_http_stream_record_request(struct mk_http_stream *d, enum mk_outcome outcome);
/* Frees the exchange and with it the stream. The access-log entry must have been written. */
void mk_http_stream_free(struct mk_http_stream *d);

/* ---- The request ---- */

/* The effective limits of the request. */
static inline const struct mk_request_limits *mk_http_stream_limits(const struct mk_http_stream *d)
{
    return mk_dispatch_limits(d->x);
}
/* Stores the request line (method, space, target) for crash reports. */
void mk_http_stream_note_request_line(struct mk_http_stream *d, mk_str line);
void mk_http_stream_note_request(struct mk_http_stream *d, mk_str method, mk_str target);
/* Returns 0, or 413 if the head alone is longer than a request may be. */
static inline unsigned mk_http_stream_check_head_size(const struct mk_http_stream *d, size_t head_len)
{
    uint64_t max = d->conn->manager->limits->request_max;
    return max && head_len > max ? 413 : 0;
}
/* Checks body limits: 0, or 413 if a head of `head_len` bytes with a body of `length` bytes (0: unknown) is
 * too large. Call it after the target is set, because hosts and paths have their own limits. */
unsigned mk_http_stream_check_body_size(struct mk_http_stream *d, size_t head_len,
                                        uint64_t length) MK_MUST_USE;
/* Implements mk_request_ops.limit_body. */
mk_err mk_http_stream_set_body_max(void *ctx, uint64_t max);
/* Aborts the request of a client that disconnected before the request body was complete. */
void mk_http_stream_abort_body(struct mk_http_stream *d);
/* Allows the next call to dispatch or the body source. */
static inline void mk_http_stream_allow_call(struct mk_http_stream *d)
{
    d->awaits = MK_AWAITS_NOTHING;
}
/* Call it before calling dispatch or the body source. The call after that waits for a resume, unless dispatch
 * or the source sets another condition. */
static inline void mk_http_stream_begin_call(struct mk_http_stream *d)
{
    d->awaits = MK_AWAITS_RESUME;
}
/* Call it when a read found no body data: the next call is due when data arrives. Keeps a resume that came in
 * the meantime. */
static inline void mk_http_stream_await_body(struct mk_http_stream *d)
{
    if (d->awaits == MK_AWAITS_RESUME)
        d->awaits = MK_AWAITS_BODY;
}
/* The timeout for the current wait. */
static inline enum mk_conn_timeout mk_http_stream_timeout(const struct mk_http_stream *d)
{
    return d->awaits == MK_AWAITS_BODY ? MK_TIMEOUT_RATE : MK_TIMEOUT_HANDLER;
}
/* Must the request end because the client has closed its sending side while the handler waits for something
 * other than the body? Only if the handler has called mk_request_cancel_on_disconnect(), or waits without a
 * time limit. */
bool mk_http_stream_is_client_gone(const struct mk_http_stream *d);
/* Does the response body depend on request body data that the client holds back? After the response head, 100
 * Continue would be too late. */
bool mk_http_stream_needs_100_continue(const struct mk_http_stream *d);

/* Request operations that both protocols use; `ctx` is the stream. */
mk_err mk_http_stream_local_addr(void *ctx, struct mk_addr *out);
void mk_http_stream_tls_info(void *ctx, struct mk_tls_conn_info *out);

/* ---- The response ---- */

/* Does a body follow the head of the response? */
static inline bool mk_http_stream_response_has_body(const struct mk_http_stream *d)
{
    return d->x->request.target->method != MK_METHOD_HEAD && mk_status_has_content(d->x->response.status);
}

enum mk_http_stream_pull_body {
    MK_PULL_DATA,  /* *n bytes */
    MK_PULL_END,   /* the body is complete */
    MK_PULL_WAITS, /* waits for the source or a disk */
    MK_PULL_AGAIN, /* no data yet, but call again immediately */
    MK_PULL_FAILED /* the body cannot be completed */
};

/* Reads at most `cap` bytes of the response body. */
enum mk_http_stream_pull_body mk_http_stream_pull_body(struct mk_http_stream *d, char *buf, size_t cap,
                                                       size_t *n);
/* When the body has ended: does its length match the head? */
static inline bool mk_http_stream_is_body_complete(const struct mk_http_stream *d)
{
    return d->to_send == MK_RESPONSE_BODY_UNKNOWN || d->to_send == 0;
}
/* Counts n body bytes as written. */
static inline void mk_http_stream_count_body_sent(struct mk_http_stream *d, uint64_t n)
{
    d->sent += n;
    if (d->to_send != MK_RESPONSE_BODY_UNKNOWN)
        d->to_send -= n;
}
/* Can the part be sent without waiting for a disk? False: a read was started in d->pending_prefetch. */
bool mk_http_stream_is_file_cached(struct mk_http_stream *d, struct mk_response_body_part *part);

/* Ends a response whose body cannot be completed. Sets and returns the outcome. */
enum mk_outcome mk_http_stream_fail_response(struct mk_http_stream *d);
/* Replaces an unsent response with an error: the status requested by its body source, by default 500, or 400
 * if the client did not send its complete body. The head must be written again. */
void mk_http_stream_replace_with_error(struct mk_http_stream *d);

/* ---- Tunnels ---- */

/* Is the response the outgoing direction of a tunnel, and has no error replaced it? */
static inline bool mk_http_stream_is_tunnel(const struct mk_http_stream *d)
{
    return mk_response_body_is_tunnel(&d->x->response.content) && d->x->step == MK_DISPATCH_READY;
}
/* Passes the client's bytes to the tunnel handler, or discards them if the handler wants no more.
 * `has_unread`: there may be unread input. */
void mk_http_stream_deliver_tunnel(struct mk_http_stream *d, bool has_unread);
/* Has the client's direction ended, or does the handler not want the rest? `unread`: the client's data has
 * arrived, but has not been read yet. */
bool mk_http_stream_is_tunnel_input_over(const struct mk_http_stream *d, bool unread);

#endif

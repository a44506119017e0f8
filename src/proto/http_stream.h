/* SPDX-License-Identifier: Apache-2.0 */
/* Drives one exchange between the flow and a connection: what HTTP/1 and HTTP/2 have in common. It pulls the
 * content of the response, counts both directions, waits for handlers and cold files, and makes the record.
 * Framing is up to the protocol, whose own struct begins with this one. */
#ifndef MK_PROTO_HTTP_STREAM_H
#define MK_PROTO_HTTP_STREAM_H

#include <monkey/sm.h>

#include "base/assert.h"
#include "proto/conn.h"
#include "proto/prefetch.h"

/* Which directions are open, in the words of RFC 9113, section 5.1. An idle exchange has no driver yet. The two half
 * closed states are bits, and CLOSED has both. */
enum mk_http_stream_state {
    MK_HTTP_STREAM_OPEN,
    MK_HTTP_STREAM_HALF_CLOSED_REMOTE, /* all content of the request has arrived */
    MK_HTTP_STREAM_HALF_CLOSED_LOCAL,  /* all of the response is written: to the scratch or beyond */
    MK_HTTP_STREAM_CLOSED = MK_HTTP_STREAM_HALF_CLOSED_REMOTE | MK_HTTP_STREAM_HALF_CLOSED_LOCAL,
    MK_HTTP_STREAM_STATES
};

/* What happens to request content when it arrives. */
enum mk_http_stream_input {
    MK_INPUT_WANTED,
    MK_INPUT_AWAITS_CONTINUE, /* the client waits for 100 Continue before it sends any */
    MK_INPUT_UNWANTED,        /* it is discarded */
    MK_INPUT_STATES
};

/* How far the response is, as far as the states above do not say. */
enum mk_http_stream_response {
    MK_RESPONSE_PENDING,  /* nothing of it is written */
    MK_RESPONSE_BUFFERED, /* its head is in the scratch and nothing has left the scratch: it can be replaced */
    MK_RESPONSE_HEAD_SENT,  /* its head is sent */
    MK_RESPONSE_BODY_ENDED, /* its source has ended; the end of the message is not written yet */
    MK_RESPONSE_RECORDED,   /* the record is made */
    MK_RESPONSE_STATES
};

/* What must happen before the flow or the source is called (again). */
enum mk_http_stream_awaits {
    MK_AWAITS_NOTHING,
    MK_AWAITS_RESUME, /* mk_request_resume(), or a cold file */
    MK_AWAITS_BODY,   /* the same, or content of the request */
};

struct mk_http_stream {
    struct mk_conn *conn;
    struct mk_exchange *x;
    struct mk_sm state, input, reply; /* enum mk_http_stream_state, _input, _reply */
    uint8_t awaits;
    uint64_t received;                    /* bytes of content of the request */
    uint64_t content_max;                 /* -EMSGSIZE above it */
    uint64_t content_cap;                 /* no handler can raise content_max above it: MaxRequestSize */
    uint64_t to_send;                     /* content of the response that is left; MK_RESPONSE_BODY_UNKNOWN */
    uint64_t sent;                        /* content of the response so far */
    struct mk_prefetch *pending_prefetch; /* the disk that the response waits for */
    enum mk_outcome ending;               /* 0: decided when the record is made */
};

/* ---- States ---- */

extern const struct mk_sm_machine mk_http_stream_machine, mk_http_stream_input_machine,
    mk_http_stream_response_machine;

static inline void mk_http_stream_set_state(struct mk_http_stream *d, enum mk_http_stream_state to)
{
    mk_sm_move(&d->state, &mk_http_stream_machine, d, to);
}

static inline void mk_http_stream_set_input_state(struct mk_http_stream *d, enum mk_http_stream_input to)
{
    mk_sm_move(&d->input, &mk_http_stream_input_machine, d, to);
}

static inline void mk_http_stream_set_response_state(struct mk_http_stream *d,
                                                     enum mk_http_stream_response to)
{
    mk_sm_move(&d->reply, &mk_http_stream_response_machine, d, to);
}

/* Has all content of the request arrived? */
static inline bool mk_http_stream_request_received(const struct mk_http_stream *d)
{
    return d->state.is & MK_HTTP_STREAM_HALF_CLOSED_REMOTE;
}

/* Is all of the response written? */
static inline bool mk_http_stream_response_written(const struct mk_http_stream *d)
{
    return d->state.is & MK_HTTP_STREAM_HALF_CLOSED_LOCAL;
}

/* One direction ends, if it has not before. */
static inline void mk_http_stream_close_remote(struct mk_http_stream *d)
{
    mk_http_stream_set_state(d, d->state.is | MK_HTTP_STREAM_HALF_CLOSED_REMOTE);
}

static inline void mk_http_stream_close_local(struct mk_http_stream *d)
{
    mk_http_stream_set_state(d, d->state.is | MK_HTTP_STREAM_HALF_CLOSED_LOCAL);
}

/* ---- Life ---- */

/* Creates a request with its exchange. Returns `size` bytes in the arena of the exchange that begin with the
 * driver; the rest is not initialised. `room`: so much memory behind the exchange is what it needs; 0: not
 * known. NULL: out of memory. */
void *mk_http_stream_new(struct mk_conn *c, size_t size, unsigned version, const struct mk_request_ops *ops,
                         size_t room) MK_MUST_USE;
/* Makes the record, if there is none yet. */
void mk_http_stream_record_request(struct mk_http_stream *d, enum mk_outcome ending);
/* Frees the exchange and with it the driver. The record must have been made. */
void mk_http_stream_free(struct mk_http_stream *d);

/* ---- The request ---- */

/* The limits of the request. */
static inline const struct mk_request_limits *mk_http_stream_limits(const struct mk_http_stream *d)
{
    return mk_dispatch_limits(d->x);
}
/* The limit for a head of that size, without content: 0 or 413. */
static inline unsigned mk_http_stream_check_head_size(const struct mk_http_stream *d, size_t head_len)
{
    uint64_t max = d->conn->service->limits->request_max;
    return max && head_len > max ? 413 : 0;
}
/* The limits for content: 0, or 413 when a head of `head_len` bytes with content of `length` bytes (0 when it
 * is not known) is too much. Once the target of the request is set: hosts and paths have limits of their own.
 */
unsigned mk_http_stream_check_body_size(struct mk_http_stream *d, size_t head_len,
                                        uint64_t length) MK_MUST_USE;
/* As mk_request_ops.limit_body. */
mk_err mk_http_stream_set_body_max(void *ctx, uint64_t max);
/* The client has closed before its content was complete: it has aborted the request. */
void mk_http_stream_abort_body(struct mk_http_stream *d);
/* The flow or the source may be called again. */
static inline void mk_http_stream_allow_call(struct mk_http_stream *d)
{
    d->awaits = MK_AWAITS_NOTHING;
}
/* The caller is about to call the flow or the source. Until that says otherwise, it waits for a resume. */
static inline void mk_http_stream_begin_call(struct mk_http_stream *d)
{
    d->awaits = MK_AWAITS_RESUME;
}
/* A read found no content: the next call is due when some has arrived. A resume in the meantime is kept. */
static inline void mk_http_stream_await_body(struct mk_http_stream *d)
{
    if (d->awaits == MK_AWAITS_RESUME)
        d->awaits = MK_AWAITS_BODY;
}
/* The clock for the current wait. */
static inline enum mk_conn_timeout mk_http_stream_timeout(const struct mk_http_stream *d)
{
    return d->awaits == MK_AWAITS_BODY ? MK_TIMEOUT_RATE : MK_TIMEOUT_HANDLER;
}
/* Has the client closed its sending side while the handler waits for something else, and does the handler follow the
 * client, or may it wait without limit? See mk_request_cancel_on_disconnect. */
bool mk_http_stream_is_client_gone(const struct mk_http_stream *d);
/* Does the source of the response need content that the client holds back? After the head of the response it
 * would be too late for 100 Continue. */
bool mk_http_stream_needs_100_continue(const struct mk_http_stream *d);

/* request ops of both protocols; `ctx` is the driver. */
mk_err mk_http_stream_local_addr(void *ctx, struct mk_addr *out);
void mk_http_stream_tls_info(void *ctx, struct mk_tls_conn_info *out);

/* ---- The response ---- */

/* Does content follow its head? */
static inline bool mk_http_stream_response_has_body(const struct mk_http_stream *d)
{
    return d->x->request.asked->method != MK_METHOD_HEAD && mk_status_has_content(d->x->response.status);
}

enum mk_http_stream_pull_body {
    MK_PULL_DATA,  /* *n bytes */
    MK_PULL_END,   /* the content is complete */
    MK_PULL_WAITS, /* it waits for the source or a disk */
    MK_PULL_AGAIN, /* no data yet, but nothing to wait for: pull again */
    MK_PULL_FAILED /* the content cannot be completed */
};

/* Pulls content of the response: at most `cap` bytes into `room`. */
enum mk_http_stream_pull_body mk_http_stream_pull_body(struct mk_http_stream *d, char *room, size_t cap,
                                                       size_t *n);
/* The content has ended. Does its length agree with the head? */
static inline bool mk_http_stream_is_body_complete(const struct mk_http_stream *d)
{
    return d->to_send == MK_RESPONSE_BODY_UNKNOWN || d->to_send == 0;
}
/* Counts n bytes of content as written. */
static inline void mk_http_stream_count_body_sent(struct mk_http_stream *d, uint64_t n)
{
    d->sent += n;
    if (d->to_send != MK_RESPONSE_BODY_UNKNOWN)
        d->to_send -= n;
}
/* Can the part be sent without waiting for a disk? False: d->coldread reads it. */
bool mk_http_stream_is_file_cached(struct mk_http_stream *d, struct mk_response_body_part *part);

/* The content cannot be completed. Sets and returns the reason. */
enum mk_outcome mk_http_stream_fail_response(struct mk_http_stream *d);
/* Puts an error in the place of a response that cannot be sent, and of which nothing has left the scratch:
 * with the status that its source asked for, 500 if none, or 400 when the client did not send all of its
 * content. Its head is to be written again. */
void mk_http_stream_replace_with_error(struct mk_http_stream *d);

/* ---- Tunnels ---- */

/* Is the response the server's direction of a tunnel, and not replaced by an error? */
static inline bool mk_http_stream_is_tunnel(const struct mk_http_stream *d)
{
    return mk_response_body_is_tunnel(&d->x->response.content) && d->x->step == MK_DISPATCH_READY;
}
/* Gives the client's bytes to the handler, or discards them when the handler wants no more. */
void mk_http_stream_deliver_tunnel(struct mk_http_stream *d);
/* Has the client's direction ended, or does the handler not want the rest? `unread`: bytes have arrived that
 * were not read yet. */
bool mk_http_stream_is_tunnel_input_over(const struct mk_http_stream *d, bool unread);

#endif

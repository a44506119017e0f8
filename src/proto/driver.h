/* SPDX-License-Identifier: Apache-2.0 */
/* Drives one exchange between the flow and a connection: what HTTP/1 and HTTP/2 have in common. It pulls the
 * content of the response, counts both directions, waits for handlers and cold files, and makes the record.
 * Framing is up to the protocol, whose own struct begins with this one. */
#ifndef MK_PROTO_DRIVER_H
#define MK_PROTO_DRIVER_H

#include <monkey/sm.h>

#include "base/assert.h"
#include "proto/coldread.h"
#include "proto/conn.h"

/* Which directions are open, in the words of RFC 9113, section 5.1. An idle exchange has no driver yet. The two half
 * closed states are bits, and CLOSED has both. */
enum mk_driver_state {
    MK_DRIVER_OPEN,
    MK_DRIVER_HALF_CLOSED_REMOTE, /* all content of the request has arrived */
    MK_DRIVER_HALF_CLOSED_LOCAL,  /* all of the response is written: to the scratch or beyond */
    MK_DRIVER_CLOSED = MK_DRIVER_HALF_CLOSED_REMOTE | MK_DRIVER_HALF_CLOSED_LOCAL,
    MK_DRIVER_STATES
};

/* What happens to request content when it arrives. */
enum mk_driver_input {
    MK_INPUT_WANTED,
    MK_INPUT_HELD,     /* the client waits for 100 Continue before it sends any */
    MK_INPUT_UNWANTED, /* it is discarded */
    MK_INPUT_STATES
};

/* How far the response is, as far as the states above do not say. */
enum mk_driver_reply {
    MK_REPLY_PENDING,  /* nothing of it is written */
    MK_REPLY_BUFFERED, /* its head is in the scratch and nothing has left the scratch: it can be replaced */
    MK_REPLY_CONTENT,  /* its head is sent */
    MK_REPLY_SPENT,    /* its source has ended; the end of the message is not written yet */
    MK_REPLY_RECORDED, /* the record is made */
    MK_REPLY_STATES
};

/* What must happen before the flow or the source is called (again). */
enum mk_driver_awaits {
    MK_AWAITS_NOTHING,
    MK_AWAITS_RESUME,  /* mk_request_resume(), or a cold file */
    MK_AWAITS_CONTENT, /* the same, or content of the request */
};

struct mk_driver {
    struct mk_conn *conn;
    struct mk_exchange *x;
    struct mk_sm state, input, reply; /* enum mk_driver_state, _input, _reply */
    uint8_t awaits;
    uint64_t received;            /* bytes of content of the request */
    uint64_t content_max;         /* -EMSGSIZE above it */
    uint64_t content_cap;         /* no handler can raise content_max above it: MaxRequestSize */
    uint64_t to_send;             /* content of the response that is left; MK_CONTENT_UNKNOWN */
    uint64_t sent;                /* content of the response so far */
    struct mk_coldread *coldread; /* the disk that the response waits for */
    enum mk_outcome ending;       /* 0: decided when the record is made */
};

/* ---- States ---- */

extern const struct mk_sm_machine mk_driver_machine, mk_driver_input_machine, mk_driver_reply_machine;

static inline void mk_driver_move(struct mk_driver *d, enum mk_driver_state to)
{
    mk_sm_move(&d->state, &mk_driver_machine, d, to);
}

static inline void mk_driver_move_input(struct mk_driver *d, enum mk_driver_input to)
{
    mk_sm_move(&d->input, &mk_driver_input_machine, d, to);
}

static inline void mk_driver_move_reply(struct mk_driver *d, enum mk_driver_reply to)
{
    mk_sm_move(&d->reply, &mk_driver_reply_machine, d, to);
}

/* Has all content of the request arrived? */
static inline bool mk_driver_is_received(const struct mk_driver *d)
{
    return d->state.is & MK_DRIVER_HALF_CLOSED_REMOTE;
}

/* Is all of the response written? */
static inline bool mk_driver_is_written(const struct mk_driver *d)
{
    return d->state.is & MK_DRIVER_HALF_CLOSED_LOCAL;
}

/* One direction ends, if it has not before. */
static inline void mk_driver_close_remote(struct mk_driver *d)
{
    mk_driver_move(d, d->state.is | MK_DRIVER_HALF_CLOSED_REMOTE);
}

static inline void mk_driver_close_local(struct mk_driver *d)
{
    mk_driver_move(d, d->state.is | MK_DRIVER_HALF_CLOSED_LOCAL);
}

/* ---- Life ---- */

/* Creates a request with its exchange. Returns `size` bytes in the arena of the exchange that begin with the
 * driver; the rest is not initialised. `room`: so much memory behind the exchange is what it needs; 0: not
 * known. NULL: out of memory. */
void *mk_driver_new(struct mk_conn *c, size_t size, unsigned version, const struct mk_request_ops *ops,
                    size_t room) MK_MUST_USE;
/* Makes the record, if there is none yet. */
void mk_driver_record(struct mk_driver *d, enum mk_outcome ending);
/* Frees the exchange and with it the driver. The record must have been made. */
void mk_driver_free(struct mk_driver *d);

/* ---- The request ---- */

/* The limits of the request. */
static inline const struct mk_request_limits *mk_driver_limits(const struct mk_driver *d)
{
    return mk_flow_limits(d->x);
}
/* The limit for a head of that size, without content: 0 or 413. */
static inline unsigned mk_driver_limit_head(const struct mk_driver *d, size_t head_len)
{
    uint64_t max = d->conn->service->limits->request_max;
    return max && head_len > max ? 413 : 0;
}
/* The limits for content: 0, or 413 when a head of `head_len` bytes with content of `length` bytes (0 when it
 * is not known) is too much. Once the target of the request is set: hosts and paths have limits of their own.
 */
unsigned mk_driver_limit_content(struct mk_driver *d, size_t head_len, uint64_t length) MK_MUST_USE;
/* As mk_request_ops.limit_body. */
mk_err mk_driver_limit_body(void *ctx, uint64_t max);
/* The client has closed before its content was complete: it has aborted the request. */
void mk_driver_cut_off(struct mk_driver *d);
/* The flow or the source may be called again. */
static inline void mk_driver_resume(struct mk_driver *d)
{
    d->awaits = MK_AWAITS_NOTHING;
}
/* The caller is about to call the flow or the source. Until that says otherwise, it waits for a resume. */
static inline void mk_driver_call(struct mk_driver *d)
{
    d->awaits = MK_AWAITS_RESUME;
}
/* A read found no content: the next call is due when some has arrived. A resume in the meantime is kept. */
static inline void mk_driver_await_content(struct mk_driver *d)
{
    if (d->awaits == MK_AWAITS_RESUME)
        d->awaits = MK_AWAITS_CONTENT;
}
/* The clock for the current wait. */
static inline enum mk_clock mk_driver_clock(const struct mk_driver *d)
{
    return d->awaits == MK_AWAITS_CONTENT ? MK_CLOCK_RATE : MK_CLOCK_HANDLER;
}
/* Has the client closed its sending side while the handler waits for something else, and does the handler follow the
 * client, or may it wait without limit? See mk_request_cancel_on_disconnect. */
bool mk_driver_is_abandoned(const struct mk_driver *d);
/* Does the source of the response need content that the client holds back? After the head of the response it
 * would be too late for 100 Continue. */
bool mk_driver_wants_continue(const struct mk_driver *d);

/* request ops of both protocols; `ctx` is the driver. */
mk_err mk_driver_local(void *ctx, struct mk_addr *out);
void mk_driver_tls(void *ctx, struct mk_tls_facts *out);

/* ---- The response ---- */

/* Does content follow its head? */
static inline bool mk_driver_has_content(const struct mk_driver *d)
{
    return d->x->request.asked->method != MK_METHOD_HEAD && mk_status_has_content(d->x->response.status);
}

enum mk_driver_pull {
    MK_PULL_DATA,  /* *n bytes */
    MK_PULL_END,   /* the content is complete */
    MK_PULL_WAITS, /* it waits for the source or a disk */
    MK_PULL_AGAIN, /* no data yet, but nothing to wait for: pull again */
    MK_PULL_FAILED /* the content cannot be completed */
};

/* Pulls content of the response: at most `cap` bytes into `room`. */
enum mk_driver_pull mk_driver_pull(struct mk_driver *d, char *room, size_t cap, size_t *n);
/* The content has ended. Does its length agree with the head? */
static inline bool mk_driver_is_whole(const struct mk_driver *d)
{
    return d->to_send == MK_CONTENT_UNKNOWN || d->to_send == 0;
}
/* Counts n bytes of content as written. */
static inline void mk_driver_count_sent(struct mk_driver *d, uint64_t n)
{
    d->sent += n;
    if (d->to_send != MK_CONTENT_UNKNOWN)
        d->to_send -= n;
}
/* Can the part be sent without waiting for a disk? False: d->coldread reads it. */
bool mk_driver_is_warm(struct mk_driver *d, struct mk_part *part);

/* The content cannot be completed. Sets and returns the reason. */
enum mk_outcome mk_driver_fail(struct mk_driver *d);
/* Puts an error in the place of a response that cannot be sent, and of which nothing has left the scratch:
 * with the status that its source asked for, 500 if none, or 400 when the client did not send all of its
 * content. Its head is to be written again. */
void mk_driver_replace(struct mk_driver *d);

/* ---- Tunnels ---- */

/* Is the response the server's direction of a tunnel, and not replaced by an error? */
static inline bool mk_driver_is_tunnel(const struct mk_driver *d)
{
    return mk_content_is_tunnel(&d->x->response.content) && d->x->step == MK_FLOW_READY;
}
/* Gives the client's bytes to the handler, or discards them when the handler wants no more. */
void mk_driver_feed_tunnel(struct mk_driver *d);
/* Has the client's direction ended, or does the handler not want the rest? `unread`: bytes have arrived that
 * were not read yet. */
bool mk_driver_is_tunnel_input_over(const struct mk_driver *d, bool unread);

#endif

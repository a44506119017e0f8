/* SPDX-License-Identifier: Apache-2.0 */
/* A connection: its state machine, its clocks, its memory. What is said on it is the business of a protocol
 * (h1.c), which the connection knows only as mk_conn_ops.
 *
 *            +------------------------------- request served ------------------------------+
 *            v                                                                              |
 *   open -> IDLE -> HEAD -> FLOW -> SEND -----------------------------------> (keep alive) -+
 *            |        |      |        |  \-> DRAIN (unread content) --------> (keep alive) -+
 *            |        |      |        |         |
 *            |        |      |        +-> TUNNEL (another protocol) -+
 *            |        |      |        |         |                  v
 *            |        |      |        +---------+-> LINGER (all is said, the peer may still speak)
 *            v        v      v        v         v     |
 *           DEAD <----+------+--------+---------+-----+
 */
#ifndef MK_PROTO_CONN_H
#define MK_PROTO_CONN_H

#include <monkey/sm.h>

#include "proto/conn_manager_type.h"

enum mk_conn_state {
    MK_CONN_IDLE,   /* nothing of a request has come */
    MK_CONN_HEAD,   /* a part of its head has */
    MK_CONN_FLOW,   /* the request is in the corridor */
    MK_CONN_SEND,   /* the response is on its way */
    MK_CONN_DRAIN,  /* it is gone, unread content of the request is not */
    MK_CONN_LINGER, /* all is sent; wait for the peer to read it */
    MK_CONN_SECURE, /* TLS is being agreed upon */
    MK_CONN_TUNNEL, /* another protocol has taken the place of HTTP/1 */
    MK_CONN_MULTI,  /* HTTP/2: its streams have states of their own */
    MK_CONN_DEAD,   /* closed; its memory stays until the turn of the loop ends */
    MK_CONN_STATES
};

/* What a connection waits for, and so which clock runs. */
enum mk_conn_timeout {
    MK_TIMEOUT_NONE,
    MK_TIMEOUT_IDLE,    /* the next request */
    MK_TIMEOUT_HEAD,    /* the rest of a head; never set back */
    MK_TIMEOUT_RATE,    /* bytes of the peer, or room for ours: fast enough? */
    MK_TIMEOUT_HANDLER, /* a handler or source */
    MK_TIMEOUT_LINGER,
    MK_TIMEOUT_TUNNEL,      /* either end of a tunnel */
    MK_TIMEOUT_ACCEPT_HOOK, /* what an accept hook waits for */
};

/* Whether a connection counts for the address of its client. */
enum mk_conn_admission {
    MK_CONN_NOT_COUNTED,
    MK_CONN_AWAITS_HOOK, /* an accept hook waits to learn more of the client: it counts in service->n_awaiting_hooks */
    MK_CONN_COUNTED,
};

extern const struct mk_sm_machine mk_conn_machine;

struct mk_conn;

/* The speed of a client, compared with MinRate. */
struct mk_conn_rate {
    int64_t credit;      /* bytes by which it is ahead */
    uint64_t progressed; /* bytes that had moved when it was last looked at */
};

/* `progress`: bytes that have moved so far. To be asked once in each span. */
bool mk_conn_rate_is_below_min(struct mk_conn_rate *r, uint64_t progress,
                               const struct mk_request_limits *limits);
/* Those of the two that ask the client for less. */
const struct mk_request_limits *mk_conn_rate_more_lenient(const struct mk_request_limits *a,
                                                          const struct mk_request_limits *b);

/* The protocol's side. Called with the connection alive. */
struct mk_conn_ops {
    /* Something may have become possible: bytes came, room came, a request was resumed. */
    void (*advance)(struct mk_conn *c);
    /* The clock that the protocol set ran out. */
    void (*on_timeout)(struct mk_conn *c, enum mk_conn_timeout clock);
    /* The connection is being closed: end what is under way. */
    void (*on_close)(struct mk_conn *c, enum mk_outcome ending);
    /* What the clocks RATE, HANDLER and TUNNEL go by; NULL, as a function or as its answer: the limits of the
     * server. */
    const struct mk_request_limits *(*limits)(const struct mk_conn *c);
    /* The worker is to end: tell the peer, if the protocol has words for it. NULL: it has none. */
    void (*on_drain)(struct mk_conn *c);
    /* Does the peer see without a reset that it did not get all of a response, or is there none, but a tunnel?
     * NULL: no. */
    bool (*may_close_without_reset)(const struct mk_conn *c);
};

/* An idle one costs its struct and nothing else: keep it within 256 bytes. What each turn of a tunnel needs
 * comes first: with thousands of them it comes from memory. */
struct mk_conn {
    struct mk_fd_watch watch;
    const struct mk_conn_ops *ops;
    struct mk_conn_manager *service;
    struct mk_stream stream;
    union {
        struct mk_h1 *h1; /* the request from MK_CONN_FLOW on, NULL between requests */
        struct mk_h2 *h2; /* in MK_CONN_MULTI, and when it lingers after that */
    };
    struct mk_loop_task task; /* freeing, or resuming */
    struct mk_timer timer;
    struct mk_send_queue out;
    uint64_t progress; /* bytes that moved, in or out */
    uint32_t span;     /* that the clock was set to: the limits need not be found again to restart it */
    uint32_t n_saved;
    char *saved;        /* input that was received and not used when the last turn ended */
    struct mk_sm state; /* enum mk_conn_state */
    uint8_t clock;
    uint8_t admission; /* enum mk_conn_admission */
    bool knows_local;
    bool watched; /* in epoll */
    bool task_set;
    bool wants_tls : 1;            /* nothing but TLS is understood on it, */
    bool wants_h2 : 1;             /* or nothing but HTTP/2 */
    bool forwarded_is_secure : 1;  /* a trusted proxy says that its client speaks TLS */
    uint16_t hooks_passed;         /* of the service's accept hooks */
    uint32_t seen;                 /* of the saved input that the head parser has looked at */
    const struct mk_vhosts *hosts; /* that its address leads to */
    struct mk_list link;           /* in service->conns */
    uint64_t moves;                /* the last 16 states, the latest in the lowest four bits */
    struct mk_conn_rate rate;
    uint32_t n_requests;
    struct mk_addr peer;
    struct mk_addr local; /* our end, once it was asked for: see knows_local */
};

/* Takes over the descriptor. NULL when memory is out (the descriptor is still the caller's). */
struct mk_conn *mk_conn_open(struct mk_conn_manager *s, const struct mk_conn_ops *ops, int fd,
                             const struct mk_addr *peer) MK_MUST_USE;
/* Closes now; its memory goes at the end of the turn. */
void mk_conn_close(struct mk_conn *c, enum mk_outcome ending);
/* The same, and what is still in the socket's buffer is thrown away: the peer learns that it is incomplete.
 */
void mk_conn_reset(struct mk_conn *c, enum mk_outcome ending);

static inline void mk_conn_set_state(struct mk_conn *c, enum mk_conn_state to)
{
    mk_sm_move(&c->state, &mk_conn_machine, c, to);
    c->moves = c->moves << 4 | (unsigned)to;
    c->service->counters->moves = c->moves;
}

/* How long the clock runs on the connection; 0: it does not. */
uint32_t mk_conn_timeout_ms(const struct mk_conn *c, enum mk_conn_timeout clock);
/* The same for the clocks of a request: RATE, HANDLER and TUNNEL. */
uint32_t mk_conn_request_timeout_ms(const struct mk_request_limits *l, enum mk_conn_timeout clock);
/* Runs the clock. One that runs already goes on running, but for MK_TIMEOUT_IDLE and MK_TIMEOUT_TUNNEL, which
 * restart. */
void mk_conn_set_timeout(struct mk_conn *c, enum mk_conn_timeout clock);
/* What it was set for is over. The timer may still run out: that costs less than stopping it for each
 * request. */
static inline void mk_conn_stop_timeout(struct mk_conn *c)
{
    c->clock = MK_TIMEOUT_NONE;
}

/* Our end of it; the first call for a connection is a system call. */
mk_err mk_conn_local_addr(struct mk_conn *c, struct mk_addr *out) MK_MUST_USE;
/* What was agreed upon; nothing (all zero before) for a plain one. */
void mk_conn_tls_info(const struct mk_conn *c, struct mk_tls_conn_info *out);

/* All is sent: closes our side, unless it `is_shut` already, and throws away what the client still sends. */
void mk_conn_linger(struct mk_conn *c, bool is_shut);
/* Throws away what the client still sends. False: there is nothing now, or it has closed. */
bool mk_conn_discard_input(struct mk_conn *c);

/* Calls ops->advance at the end of this turn. */
void mk_conn_resume(struct mk_conn *c);
/* The same, behind those in the line of service->handshakes. */
void mk_conn_queue_handshake(struct mk_conn *c);

/* The window holds this connection's input between the two; at the end what is unused is saved, and the
 * connection is watched if it was not. */
void mk_conn_begin_serving(struct mk_conn *c);
void mk_conn_end_serving(struct mk_conn *c);
/* Reads into `room`. Bytes read; 0 at the end of input, -EAGAIN, or another error. A peer that sends faster
 * than we read gets -EAGAIN, too, when its turn is over: the connection is resumed after the others. */
ssize_t mk_conn_read(struct mk_conn *c, char *buf, size_t cap);
/* The same into the window, where room must be left. */
ssize_t mk_conn_fill_input(struct mk_conn *c);

/* Has the client closed its sending side (RFC 9112, section 9.6)? Its FIN has arrived, or a read has met the end of
 * input. Bytes that arrived before the FIN may still be unread: whether the content of a request is complete is
 * mk_http_stream_request_received(), and whether HTTP/2 has read all frames is MK_H2_REMOTE_CLOSED. */
static inline bool mk_conn_is_half_closed(const struct mk_conn *c)
{
    return c->stream.ended;
}

static inline mk_str mk_conn_input(const struct mk_conn *c)
{
    const struct mk_input_buffer *w = &c->service->window;
    return mk_str_of(w->in + w->from, w->to - w->from);
}

static inline void mk_conn_consume_input(struct mk_conn *c, size_t n)
{
    c->service->window.from += n;
}

void mk_conn_close_all(struct mk_conn_manager *s, enum mk_outcome ending);
void mk_conn_free_freelist(struct mk_conn_manager *s);
/* What connections share while their input is handled: made for the first of them. */
bool mk_conn_alloc_buffers(struct mk_conn_manager *s) MK_MUST_USE;

#endif

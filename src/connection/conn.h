/* SPDX-License-Identifier: Apache-2.0 */
/* A connection: its state machine, timeouts and memory. The protocol (HTTP/1 or HTTP/2) parses and writes its
 * bytes; the connection calls it only through mk_conn_ops. The main transitions of HTTP/1 (the states TLS and
 * HTTP2 are not shown):
 *
 *            +----------------------------------- request served ------------------------------+
 *            v                                                                                  |
 *   open -> IDLE -> HEAD -> DISPATCH -> SEND -----------------------------------> (keep alive) -+
 *            |        |      |            |  \-> DRAIN (unread body) -----------> (keep alive) -+
 *            |        |      |            |         |
 *            |        |      |            +-> TUNNEL (another protocol) -+
 *            |        |      |            |         |                  v
 *            |        |      |            +---------+-> LINGER (all data sent, input is discarded)
 *            v        v      v            v         v     |
 *           DEAD <----+------+------------+---------+-----+ */
#ifndef MK_CONNECTION_CONN_H
#define MK_CONNECTION_CONN_H

#include <monkey/state_machine.h>

#include "connection/conn_manager_type.h"

enum mk_conn_state {
    MK_CONN_IDLE,     /* no byte of a request received */
    MK_CONN_HEAD,     /* part of a request head received */
    MK_CONN_DISPATCH, /* the request is being dispatched */
    MK_CONN_SEND,     /* the response is being sent */
    MK_CONN_DRAIN,    /* response sent, discarding the rest of the request body */
    MK_CONN_LINGER,   /* all data sent; waiting for the peer to read it */
    MK_CONN_TLS,      /* TLS handshake */
    MK_CONN_TUNNEL,   /* another protocol has replaced HTTP/1 */
    MK_CONN_HTTP2,    /* HTTP/2: streams have their own states */
    MK_CONN_DEAD,     /* closed; freed at the end of the loop iteration */
    MK_CONN_STATES
};

/* The event that a connection waits for; selects the timeout. */
enum mk_conn_timeout {
    MK_TIMEOUT_NONE,
    MK_TIMEOUT_IDLE,    /* the next request */
    MK_TIMEOUT_HEAD,    /* the rest of a request head; data that arrives does not restart this timeout */
    MK_TIMEOUT_RATE,    /* data from or to the peer, at a rate of at least MinRate */
    MK_TIMEOUT_HANDLER, /* the next step of a handler or body source */
    MK_TIMEOUT_LINGER,
    MK_TIMEOUT_TUNNEL,      /* data from either side of a tunnel */
    MK_TIMEOUT_ACCEPT_HOOK, /* the input that an accept hook waits for */
};

/* Does the connection count toward the limit of its client's address? */
enum mk_conn_admission {
    MK_CONN_NOT_COUNTED,
    MK_CONN_AWAITS_HOOK, /* an accept hook waits for more of the client's data: counted in
                          * manager->n_awaiting_hooks */
    MK_CONN_COUNTED,
};

extern const struct mk_state_machine mk_conn_machine;

struct mk_conn;

/* A client's transfer rate, compared with MinRate. */
struct mk_conn_rate {
    int64_t credit;      /* bytes by which the client is ahead of MinRate */
    uint64_t progressed; /* total bytes transferred up to the last check */
};

/* Is the rate below the minimum? `progress`: total bytes transferred. Call it once every limits->rate_ms. */
bool mk_conn_rate_is_below_min(struct mk_conn_rate *r, uint64_t progress,
                               const struct mk_request_limits *limits);
/* Returns the limits whose minimum rate is more lenient. */
const struct mk_request_limits *mk_conn_rate_more_lenient(const struct mk_request_limits *a,
                                                          const struct mk_request_limits *b);

/* Protocol callbacks. Called only while the connection is open. */
struct mk_conn_ops {
    /* Progress may be possible: data arrived, the socket became writable, or a request was resumed. */
    void (*advance)(struct mk_conn *c);
    /* The task that mk_conn_resume() schedules: it calls mk_conn_begin_resumed(), and then advance() without
     * an indirect call. NULL: a generic task. */
    void (*run_resumed)(struct mk_loop_task *t);
    /* The timeout set by the protocol expired. */
    void (*on_timeout)(struct mk_conn *c, enum mk_conn_timeout timeout);
    /* The connection is being closed: end everything in progress. */
    void (*on_close)(struct mk_conn *c, enum mk_outcome outcome);
    /* Limits for the timeouts RATE, HANDLER and TUNNEL. If the function or its result is NULL: the server's
     * limits. */
    const struct mk_request_limits *(*limits)(const struct mk_conn *c);
    /* The worker is shutting down: notify the peer. NULL: the protocol does not support this. */
    void (*on_drain)(struct mk_conn *c);
    /* Can the connection be closed without a reset, because the peer can detect an incomplete response, or
     * because there is only a tunnel? NULL: no. */
    bool (*may_close_without_reset)(const struct mk_conn *c);
};

/* An idle connection costs only this struct: keep it within 256 bytes. The members that each event of a
 * tunnel needs come first, in as few cache lines as possible: with thousands of tunnels, these lines are not
 * in the processor's cache. */
struct mk_conn {
    struct mk_fd_watch watch;
    const struct mk_conn_ops *ops;
    struct mk_conn_manager *manager;
    struct mk_stream stream;
    union {
        struct mk_h1 *h1; /* the request in MK_CONN_DISPATCH and later; NULL between requests */
        struct mk_h2 *h2; /* the HTTP/2 state, in MK_CONN_HTTP2 and while lingering afterwards */
    };
    struct mk_loop_task task; /* deferred task that frees or resumes the connection */
    struct mk_timer timer;
    struct mk_send_queue out;
    uint64_t progress; /* bytes transferred in both directions */
    uint32_t span;     /* duration of the timeout in ms, kept so that a restart need not look up the limits */
    uint32_t n_saved;
    char *saved;           /* unconsumed input of the last iteration */
    struct mk_state state; /* enum mk_conn_state */
    uint8_t timeout;
    uint8_t admission; /* enum mk_conn_admission */
    bool local_known;
    bool watched; /* registered in epoll */
    bool task_set;
    bool wants_tls : 1;            /* accepts only TLS */
    bool wants_h2 : 1;             /* accepts only HTTP/2 */
    bool forwarded_is_secure : 1;  /* a trusted proxy reports that its client uses TLS */
    uint16_t hooks_passed;         /* number of accept hooks passed */
    uint32_t seen;                 /* saved bytes that the head parser has already scanned */
    const struct mk_vhosts *hosts; /* virtual hosts of this listener */
    struct mk_list link;           /* in manager->conns */
    uint64_t moves;                /* the last 16 states, the latest in the lowest four bits */
    struct mk_conn_rate rate;
    uint32_t n_requests;
    struct mk_addr peer;
    struct mk_addr local; /* local address; valid if local_known */
};

/* Opens a connection, which takes ownership of the descriptor. NULL: out of memory (the caller keeps the
 * descriptor). */
struct mk_conn *mk_conn_open(struct mk_conn_manager *s, const struct mk_conn_ops *ops, int fd,
                             const struct mk_addr *peer) MK_MUST_USE;
/* Closes the connection immediately; the struct is freed at the end of the loop iteration. */
void mk_conn_close(struct mk_conn *c, enum mk_outcome outcome);
/* Closes the connection with a reset and discards unsent data: the peer notices that the data is
 * incomplete. */
void mk_conn_reset(struct mk_conn *c, enum mk_outcome outcome);

static inline void mk_conn_set_state(struct mk_conn *c, enum mk_conn_state to)
{
    mk_state_move(&c->state, &mk_conn_machine, c, to);
    c->moves = c->moves << 4 | (unsigned)to;
    c->manager->counters->moves = c->moves;
}

/* Timeout in ms; 0: none. */
uint32_t mk_conn_timeout_ms(const struct mk_conn *c, enum mk_conn_timeout timeout);
/* Like mk_conn_timeout_ms(), but for the timeouts of a request: RATE, HANDLER and TUNNEL. */
uint32_t mk_conn_request_timeout_ms(const struct mk_request_limits *l, enum mk_conn_timeout timeout);
/* Starts the timeout. If it is running already, it continues, except that MK_TIMEOUT_IDLE and
 * MK_TIMEOUT_TUNNEL restart. */
void mk_conn_set_timeout(struct mk_conn *c, enum mk_conn_timeout timeout);
/* Disarms lazily: the timer may still fire and is then ignored, which is cheaper than removing it for each
 * request. */
static inline void mk_conn_stop_timeout(struct mk_conn *c)
{
    c->timeout = MK_TIMEOUT_NONE;
}

/* The local address; the first call for a connection makes a system call. */
mk_err mk_conn_local_addr(struct mk_conn *c, struct mk_addr *out) MK_MUST_USE;
/* Properties of the TLS session; *out is left unchanged for a plain connection. */
void mk_conn_tls_info(const struct mk_conn *c, struct mk_tls_conn_info *out);

/* Begins a lingering close: shuts down our side, unless it `is_shut` already. From then on, the protocol
 * discards input (mk_conn_discard_input()) until the peer closes. */
void mk_conn_linger(struct mk_conn *c, bool is_shut);
/* Discards input; closes the connection if the peer has closed it. False: no more input is available now, or
 * the connection is closed. */
bool mk_conn_discard_input(struct mk_conn *c);

/* Schedules a call of ops->advance, with mk_loop_defer(). */
void mk_conn_resume(struct mk_conn *c);
/* Call it first in a `run_resumed` task: returns the connection to which the task belongs. */
struct mk_conn *mk_conn_begin_resumed(struct mk_loop_task *t);
/* Like mk_conn_resume(), but queues the call after the handshakes that already wait in
 * manager->handshakes. */
void mk_conn_queue_handshake(struct mk_conn *c);

/* Between these two calls, the manager's input buffer holds the data of this connection.
 * mk_conn_end_serving() saves the unconsumed rest, and adds the connection to epoll if necessary. */
void mk_conn_begin_serving(struct mk_conn *c);
void mk_conn_end_serving(struct mk_conn *c);
/* Reads into `buf`. Returns the number of bytes; 0 at EOF, -EAGAIN, or another error. If the peer sends
 * faster than we read, mk_conn_read() also returns -EAGAIN once the connection has used up its share of the
 * loop iteration; the connection is then resumed after all others. */
ssize_t mk_conn_read(struct mk_conn *c, char *buf, size_t cap);
/* Like mk_conn_read(), but reads into the input buffer, which must have free space. */
ssize_t mk_conn_fill_input(struct mk_conn *c);

/* Has the client closed its sending side (RFC 9112, section 9.6)? True if its FIN has arrived, or a read has
 * returned EOF. Bytes that arrived before the FIN may still be unread: use mk_http_stream_request_received()
 * to see whether a request body is complete, and MK_H2_REMOTE_CLOSED whether HTTP/2 has read all frames. */
static inline bool mk_conn_is_half_closed(const struct mk_conn *c)
{
    return c->stream.ended;
}

static inline mk_str mk_conn_input(const struct mk_conn *c)
{
    const struct mk_input_buffer *w = &c->manager->input_buffer;
    return mk_str_of(w->in + w->from, w->to - w->from);
}

static inline void mk_conn_consume_input(struct mk_conn *c, size_t n)
{
    c->manager->input_buffer.from += n;
}

void mk_conn_close_all(struct mk_conn_manager *s, enum mk_outcome outcome);
/* Closes connections without a request in progress, as their timeouts do. A connection must have been idle for at least
 * 5 seconds and have no unread input. `with_heads` also closes connections that have been idle for less, and connections
 * with an incomplete request head or TLS handshake. */
void mk_conn_close_waiting(struct mk_conn_manager *s, bool with_heads);
void mk_conn_free_freelist(struct mk_conn_manager *s);
/* Allocates the buffers that all connections share, unless they are allocated already. False: out of
 * memory. */
bool mk_conn_alloc_buffers(struct mk_conn_manager *s) MK_MUST_USE;

#endif

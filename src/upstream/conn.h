/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to one server of an upstream. It waits in the queue of its backend set, connects, serves one
 * request at a time, and is idle in the pool between requests. A waiting connection may take over the socket
 * of an idle one. It has one callback, that of its owner: a request, the pool, a health check or an HTTP/2
 * session. */
#ifndef MK_UPSTREAM_CONN_H
#define MK_UPSTREAM_CONN_H

#include <limits.h>
#include <monkey/attempt.h>
#include <monkey/state_machine.h>

#include "base/list.h"
#include "event/stream.h"
#include "upstream/resolver.h"

struct mk_backend;
struct mk_h2_session_stream;
struct mk_backend_set;
struct mk_tls_session;

enum mk_upstream_conn_state {
    MK_UPSTREAM_CONN_WAITING, /* queued for a connection: no socket yet */
    MK_UPSTREAM_CONN_CONNECTING,
    MK_UPSTREAM_CONN_HANDSHAKE, /* TLS handshake */
    MK_UPSTREAM_CONN_OPEN,
    MK_UPSTREAM_CONN_IDLE,   /* open, in the pool */
    MK_UPSTREAM_CONN_BROKEN, /* connecting failed */
    MK_UPSTREAM_CONN_STATES
};

/* Progress towards TCP_NODELAY: see mk_upstream_conn_write(). */
enum mk_upstream_conn_nodelay {
    MK_UPSTREAM_CONN_UNWRITTEN,
    MK_UPSTREAM_CONN_WRITTEN,
    MK_UPSTREAM_CONN_NODELAY, /* TCP_NODELAY is set */
};

#define MK_UPSTREAM_CONN_NO_SLOT UINT_MAX

/* How long a cancelled connection stays open if its request has no timeout. */
enum { MK_UPSTREAM_CONN_CANCELLED_MS = 60 * 1000 };

extern const struct mk_state_machine mk_upstream_conn_machine;

struct mk_upstream_conn {
    struct mk_list backend_link; /* in one of the backend's lists */
    struct mk_state state;       /* enum mk_upstream_conn_state */

    /* ---- The socket ---- */
    uint8_t nodelay; /* enum mk_upstream_conn_nodelay */
    bool was_used;
    bool offers_http2; /* ALPN offers HTTP/2 instead of HTTP/1.1 */
    struct mk_stream stream;
    /* The stream of an HTTP/2 session that takes the place of a socket; NULL: none. See http2.h. */
    struct mk_h2_session_stream *h2;
    struct mk_watcher *watcher;
    struct mk_timer timer;     /* connect timeout */
    struct mk_deferred *later; /* reads input buffered by TLS; NULL until needed */
    const struct mk_upstream_server *server;
    struct mk_worker *worker;
    struct mk_backend *backend;
    struct mk_tls_session **session;             /* last session with this server, for resumption */
    void (*on_event)(void *ctx, unsigned which); /* the callback of the owner */
    void *ctx;
    /* Called before on_event when the connection is open, or connecting has failed; NULL: none, or it was
     * called. */
    void (*on_connect_end)(struct mk_upstream_conn *c);
    uint64_t idle_since_ms;
    uint64_t until_ms;      /* cancelled connection: time at which to close it */
    size_t discards;        /* cancelled connection: response bytes still to discard */
    unsigned names_version; /* last mk_resolver.version in which the name had this address */
    unsigned slot;          /* of the connection limit; MK_UPSTREAM_CONN_NO_SLOT: not counted */
    int error;              /* why connecting failed; 0: it has not failed */

    /* ---- The request for which the connection is acquired ---- */
    struct mk_list link;    /* in the wait queue */
    struct mk_list changed; /* in the list of changed connections */
    struct mk_backend_set *set;
    struct mk_upstream_conn_options options;
    void (*on_down)(void *ctx); /* called when the server goes down before it responds, for a failover to
                                 * another server; NULL: none */
    uint64_t client;            /* the request's mk_client_share_key() */
    uint64_t began_us;
    uint64_t waits_since_ms;     /* 0: not waiting */
    struct mk_attempt *attempt;  /* NULL: not recorded */
    const char *fault_text;      /* NULL: none */
    int chosen;                  /* index of the server chosen last; -1: none */
    int fault;                   /* negated errno value of the error to log for the request */
    uint32_t cancelled_ms;       /* time limit; 0: not cancelled; see mk_upstream_conn_mark_cancelled() */
    uint8_t n_failed;            /* number of this server's addresses that failed */
    bool streams;                /* cancelled connection: the response may be endless */
    bool is_held_back;           /* the last attempt was rejected because the client's share was used up */
    bool is_answered;            /* a byte of the response has arrived */
    bool is_unprocessed;         /* HTTP/2: the server has not processed the request */
    uint32_t reset_code;         /* HTTP/2: error code with which the server reset the stream; 0: none */
    const char *read_error_text; /* why reading failed (static); NULL: unknown */

    struct mk_sockaddr to; /* remote address; the last member, because it is large and never cleared */
};

static inline void mk_upstream_conn_move(struct mk_upstream_conn *c, enum mk_upstream_conn_state to)
{
    mk_state_move(&c->state, &mk_upstream_conn_machine, c, to);
}

static inline bool mk_upstream_conn_has_socket(const struct mk_upstream_conn *c)
{
    return c->state.current != MK_UPSTREAM_CONN_WAITING;
}

/* Starts connecting to the address; on_event is called from then on. Returns 0, or an immediate error, after
 * which there is no socket. */
int mk_upstream_conn_connect(struct mk_upstream_conn *c, const struct mk_upstream_server *server,
                             const struct mk_sockaddr *to, struct mk_worker *w,
                             struct mk_tls_session **session);
/* Closes the socket. The state is MK_UPSTREAM_CONN_WAITING again. */
void mk_upstream_conn_close(struct mk_upstream_conn *c);
/* Moves the socket of `from` to the waiting connection `c`. The caller then frees `from`. */
void mk_upstream_conn_take_socket(struct mk_upstream_conn *c, struct mk_upstream_conn *from);

/* Handles an event of the socket, or of the HTTP/2 stream in its place, and calls the owner. */
void mk_upstream_conn_on_event(void *conn, unsigned which);
/* Calls the owner. */
void mk_upstream_conn_notify(struct mk_upstream_conn *c, unsigned which);

/* Records that connecting has failed. Does not call on_event. */
void mk_upstream_conn_fail(struct mk_upstream_conn *c, int error);

/* Is the last event of an idle connection harmless: writability, input that was already read, or a TLS message
 * such as a session ticket or a key update? */
bool mk_upstream_conn_is_harmless_event(struct mk_upstream_conn *c, unsigned which);

/* Functions for users of acquired connections, in addition to those of monkey/upstream.h. */
/* Can a read return data: has an event or TLS reported input since the last short read? */
bool mk_upstream_conn_is_readable(const struct mk_upstream_conn *c);
/* Assumes that a read can return data: input may be buffered without an event. */
void mk_upstream_conn_assume_readable(struct mk_upstream_conn *c);
/* Records the status of the response, for the attempt of the request. */
void mk_upstream_conn_set_status(struct mk_upstream_conn *c, unsigned status);
/* Has the server closed its sending side or reset the connection? */
bool mk_upstream_conn_has_eof(const struct mk_upstream_conn *c);
bool mk_upstream_conn_has_first_byte(const struct mk_upstream_conn *c);
/* HTTP/2: did the server refuse the request without processing it, so that any request can be sent again? */
bool mk_upstream_conn_is_unprocessed(const struct mk_upstream_conn *c);
/* HTTP/2: the error code with which the server reset the stream; 0: none. */
uint32_t mk_upstream_conn_reset_code(const struct mk_upstream_conn *c);
/* Describes the error of a read (static text). */
const char *mk_upstream_conn_read_error_text(const struct mk_upstream_conn *c);
/* Call it when the request is cancelled while the server may be working on it: mk_upstream_conn_release()
 * then keeps the connection open until the server closes it, for at most `ms`; 0: MK_UPSTREAM_CONN_CANCELLED_MS.
 * `streams`: the response may be endless. */
void mk_upstream_conn_mark_cancelled(struct mk_upstream_conn *c, uint32_t ms, bool streams);

/* ---- Attempts (monkey/attempt.h): each connection of a request to a server is one. The functions do nothing if
 * the attempt is not recorded. ---- */

/* Call it when the connection has a request, which records the attempt, and a server, and is open or being
 * opened. */
void mk_conn_attempt_begin(struct mk_upstream_conn *c, struct mk_attempt *attempt, mk_str server);

/* Call it when the connection is open. */
static inline void mk_conn_attempt_connected(struct mk_upstream_conn *c)
{
    if (c->attempt)
        c->attempt->connected_us = mk_clock_us();
}

/* Call it when the connection is no longer used by the request. `error`: why it failed; 0: it did not. */
static inline void mk_conn_attempt_end(struct mk_upstream_conn *c, int error)
{
    if (!c->attempt)
        return;
    c->attempt->ended_us = mk_clock_us();
    c->attempt->error = error;
    c->attempt = NULL;
}

#endif

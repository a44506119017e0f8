/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to one server of an upstream. It waits in the queue of its backend set, connects, serves one request at a time,
 * and is idle in the pool in between. One object stands for one TCP connection. Its events go to one callback: of the request,
 * the pool or the health check that has the connection. */
#ifndef MK_UPSTREAM_CONN_H
#define MK_UPSTREAM_CONN_H

#include <monkey/sm.h>

#include "base/list.h"
#include "net/stream.h"
#include "upstream/resolver.h"

struct mk_backend;
struct mk_backend_set;
struct mk_tls_session;

enum mk_upstream_conn_state {
    MK_UPSTREAM_CONN_WAITING, /* for a connection: there is no socket */
    MK_UPSTREAM_CONN_CONNECTING,
    MK_UPSTREAM_CONN_HANDSHAKE, /* of TLS */
    MK_UPSTREAM_CONN_OPEN,
    MK_UPSTREAM_CONN_IDLE,   /* open, and in the pool */
    MK_UPSTREAM_CONN_BROKEN, /* it could not connect */
    MK_UPSTREAM_CONN_STATES
};

extern const struct mk_sm_machine mk_upstream_conn_machine;

struct mk_upstream_conn {
    struct mk_list backend_link; /* in a list of its backend */
    struct mk_sm state;          /* enum mk_upstream_conn_state */

    /* ---- The socket ---- */
    bool has_slot; /* within MaxConnections */
    bool was_used;
    bool has_written;
    bool is_prompt; /* TCP_NODELAY is set */
    struct mk_stream stream;
    struct mk_watcher *watcher;
    struct mk_timer timer;     /* for connecting */
    struct mk_deferred *later; /* reads what TLS holds; NULL until it is needed */
    const struct mk_upstream_server *server;
    struct mk_worker *worker;
    struct mk_backend *backend;
    struct mk_tls_session **session;                   /* the last one with this server, to be resumed */
    void (*on_event)(void *event_ctx, unsigned which); /* of the request, the pool or the health check */
    void *event_ctx;
    uint64_t idle_since_ms;
    uint64_t until_ms;      /* of one whose request was cancelled: when it is closed */
    size_t discards;        /* of the same: so many more bytes of the response */
    unsigned names_version; /* of the addresses that this was one of */
    unsigned slot;
    int error; /* why there is no connection; 0: there is, or there may be one yet */

    /* ---- The request that it is acquired for ---- */
    struct mk_list link;    /* among those that wait */
    struct mk_list changed; /* among those whose state changed */
    struct mk_backend_set *set;
    struct mk_upstream_conn_options options;
    void (*on_ready)(void *ctx, unsigned which);
    void (*on_down)(
        void *ctx); /* its server is down, and has not answered: another one may be tried; NULL: no */
    void *ctx;
    uint64_t client; /* of the request: mk_client_share_key() */
    uint64_t began_us;
    uint64_t waits_since_ms; /* 0: it does not wait */
    const char *why;         /* of `fault`, in words; NULL: none */
    int chosen;              /* the index of the server that was chosen last; -1: none */
    int fault;               /* of the request, for the log: a negated errno value */
    uint32_t abandon_ms;     /* of mk_upstream_conn_mark_cancelled() */
    uint8_t n_failed;        /* addresses of one server */
    bool is_abandoned, streams;
    bool is_held_back; /* a share of its client kept it from a connection, when it was tried last */
    bool is_answered;  /* a byte of the response came */

    struct mk_sockaddr
        to; /* where the socket leads; last, because it is large, and nothing before it is known */
};

static inline void mk_upstream_conn_move(struct mk_upstream_conn *c, enum mk_upstream_conn_state to)
{
    mk_sm_move(&c->state, &mk_upstream_conn_machine, c, to);
}

static inline bool mk_upstream_conn_has_socket(const struct mk_upstream_conn *c)
{
    return c->state.is != MK_UPSTREAM_CONN_WAITING;
}

/* Begins to connect to the address; on_event is called from then on. 0, or why it failed at once: then there is no socket. */
int mk_upstream_conn_connect(struct mk_upstream_conn *c, const struct mk_upstream_server *server,
                             const struct mk_sockaddr *to, struct mk_worker *w,
                             struct mk_tls_session **session);
/* Closes the socket of one that has one. */
void mk_upstream_conn_close(struct mk_upstream_conn *c);
/* `c`, which waits, gets the socket of `from`, which is to be freed then. */
void mk_upstream_conn_take_socket(struct mk_upstream_conn *c, struct mk_upstream_conn *from);

/* It could not connect; the owner of its events is to learn of it. */
void mk_upstream_conn_fail(struct mk_upstream_conn *c, int error);

/* Is this event of an idle one nothing but room to write, bytes that were read before it came, or what TLS
 * says besides: a ticket, new keys? */
bool mk_upstream_conn_is_harmless_event(struct mk_upstream_conn *c, unsigned which);

/* For users of acquired connections, besides monkey/upstream.h. */
/* May a read find something: did an event, or TLS, say so since the last one that found less than it asked for? */
bool mk_upstream_conn_is_readable(const struct mk_upstream_conn *c);
/* There may be input of which no event has told yet. */
void mk_upstream_conn_assume_readable(struct mk_upstream_conn *c);
/* Does the server send no more, or has it hung up? */
bool mk_upstream_conn_has_eof(const struct mk_upstream_conn *c);
bool mk_upstream_conn_has_first_byte(const struct mk_upstream_conn *c);
void mk_upstream_conn_set_on_down(struct mk_upstream_conn *c, void (*on_down)(void *ctx));
/* The request is cancelled, and the server may be at work on it: mk_upstream_conn_release() leaves the
 * connection open until the server closes it, for `ms` at most; 0: MK_CANCELLED_CONN_MS. `streams`: the response may
 * have no end. */
void mk_upstream_conn_mark_cancelled(struct mk_upstream_conn *c, uint32_t ms, bool streams);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A connection that is lent for one exchange, as the pool sees it. */
#ifndef MK_UPSTREAM_CONN_TYPE_H
#define MK_UPSTREAM_CONN_TYPE_H

#include "upstream/channel.h"

struct mk_backend_set;

struct mk_upstream_conn {
    struct mk_list link;    /* among those that wait */
    struct mk_list changed; /* among those whose state changed */
    struct mk_backend_set *set;
    struct mk_channel *channel; /* NULL: none yet, or none any more */
    struct mk_upstream_conn_options options;
    void (*on_channel)(struct mk_upstream_conn *l, unsigned which); /* its channel has changed */
    void (*on_ready)(void *ctx, unsigned which);                    /* of its user */
    void (*on_out)(
        void *ctx); /* its server is out, and has not answered: another one may be tried; NULL: no */
    void *ctx;
    uint64_t client; /* of the request: mk_share_client() */
    uint64_t began_us;
    uint64_t waits_since_ms;    /* 0: it does not wait */
    int server;                 /* the one that was chosen last; -1: none */
    int error;                  /* it has failed; 0: not */
    uint32_t abandon_ms;        /* of mk_upstream_conn_abandon() */
    int fault;                  /* of the exchange, for the log: a negated errno value, */
    const char *why;            /* and in words; NULL: none */
    uint8_t n_failed;           /* addresses of one server */
    bool is_abandoned, streams; /* mk_upstream_conn_abandon() */
    bool is_held_back;          /* a share of its client kept it from a connection, when it was tried last */
    bool was_kept;
    bool is_answered;
    bool is_check; /* of a server's health, whatever is known of it */
};

void mk_upstream_conn_on_down(struct mk_upstream_conn *l, void (*on_out)(void *ctx));

/* The request is cancelled, and the server may be at work on it: mk_upstream_conn_release() leaves the connection open until
 * the server closes it, for `ms` at most; 0: MK_ABANDON_MS. `streams`: the response may have no end. */
void mk_upstream_conn_abandon(struct mk_upstream_conn *l, uint32_t ms, bool streams);

/* Is it a kept connection? Then on_ready is called at the end of the turn: what is sent then leaves with what
 * the other requests of the turn send, and the servers behind work on all of it at once. A new connection has
 * woken its server already. */
bool mk_upstream_conn_defer(struct mk_upstream_conn *l);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* State shared by all connections of a worker: limits, buffers, spare memory, counters. Types only;
 * conn_manager.h has the functions. */
#ifndef MK_CONNECTION_CONN_MANAGER_TYPE_H
#define MK_CONNECTION_CONN_MANAGER_TYPE_H

#include "connection/client_limits.h"
#include "connection/common_headers.h"
#include "connection/counters.h"
#include "connection/handshake_queue.h"
#include "event/loop.h"
#include "event/offload.h"
#include "event/send_queue.h"
#include "event/tls.h"
#include "http/framing.h"
#include "web/dispatch.h"

enum mk_overcapacity {
    MK_OVERCAPACITY_DROP,    /* new connections are reset immediately */
    MK_OVERCAPACITY_RESIST,  /* new connections wait in the kernel's queue until others are closed */
    MK_OVERCAPACITY_TOOBUSY, /* new connections get 503 and are closed */
};

struct mk_h2_limits {
    bool on;
    unsigned streams_max;  /* maximum concurrent streams per connection; not 0 */
    uint32_t unread_max;   /* maximum unread body bytes of all requests of a connection; at least 64K */
    uint32_t abuse_budget; /* see h2_abuse.h */
};

/* Limits of a connection. Times in milliseconds; 0 means no limit unless stated otherwise. */
struct mk_conn_manager_limits {
    struct mk_request_head_limits head; /* no member may be 0 */
    struct mk_h2_limits h2;
    struct mk_request_limits request; /* default limits of hosts and locations */
    uint64_t request_max;             /* maximum size of head and body together */
    unsigned requests_max;            /* maximum requests per connection */
    unsigned connections_max;         /* maximum connections per worker; not 0 */
    /* Number of file descriptors available for connections, open files and plugins: see
     * mk_conn_manager_limit_open_files(). */
    unsigned descriptors;
    unsigned per_peer_max; /* maximum connections per client address in this worker */
    bool keep_alive;
    enum mk_overcapacity overcapacity;
    uint32_t head_ms;   /* timeout for the complete request head; not 0 */
    uint32_t idle_ms;   /* idle timeout between requests; not 0 */
    uint32_t linger_ms; /* lingering close timeout; not 0 */
};

/* Received, unconsumed bytes of the connection being served: in[from..to]. */
struct mk_input_buffer {
    char *in;
    size_t from, to;
};

enum { MK_INPUT_BUFFER_SIZE = 64 * 1024 };

struct mk_conn;
struct mk_http2_module;
struct mk_worker;

/* A hook that a plugin has registered; called for each connection before its first request. */
struct mk_accept_hook {
    const char *name;                                            /* for log messages */
    enum mk_verdict (*on_accept)(struct mk_conn *c, void *data); /* MK_NEXT, MK_WAIT (for input) or
                                                                  * MK_ERROR */
    void *data;
};

struct mk_conn_manager {
    struct mk_loop *loop;
    struct mk_web_ctx *web;
    const struct mk_conn_manager_limits *limits;
    struct mk_counters *counters;
    struct mk_log *log;
    const struct mk_accept_hook *accept_hooks; /* set before connections are accepted; not owned */
    size_t n_accept_hooks;

    struct mk_arena_cache arenas;
    struct mk_input_buffer input_buffer;
    struct mk_buf out; /* output buffer; see event/send_queue.h */
    struct mk_header_field *fields;
    struct mk_authority_cache last_host;
    struct mk_common_headers stamp;
    struct mk_client_limits peers;
    struct mk_offload helper;

    const struct mk_http2_module *http2; /* NULL: no HTTP/2; see mk_conn_manager_set_http2() */
    const struct mk_tls_module *tls;     /* for TLS listeners; set before connections are accepted */
    struct mk_handshake_queue handshakes;

    struct mk_conn *serving; /* the connection whose data is in the input buffer */
    size_t bytes_left;       /* bytes that this connection may still read in this iteration */
    struct mk_list conns;    /* all open connections */
    unsigned n_conns;
    unsigned n_awaiting_hooks; /* connections in MK_CONN_AWAITS_HOOK */
    struct mk_conn *spare;     /* closed connections, for reuse */
    unsigned n_spare;
    bool draining; /* the worker is shutting down: HTTP/1 connections close after their next response, HTTP/2
                    * connections send GOAWAY */
    void (*on_conn_closed)(
        struct mk_conn_manager *manager); /* called after a connection is closed; may be NULL */
    struct mk_worker *worker;             /* NULL in tests */
};

#endif

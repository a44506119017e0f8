/* SPDX-License-Identifier: Apache-2.0 */
/* What all connections of one worker share: limits, buffers, spare memory, counters. */
#ifndef MK_PROTO_SERVICE_H
#define MK_PROTO_SERVICE_H

#include "http/head.h"
#include "net/helper.h"
#include "net/loop.h"
#include "net/outq.h"
#include "net/tls.h"
#include "proto/counters.h"
#include "proto/peers.h"
#include "proto/stamp.h"
#include "proto/turns.h"
#include "web/flow.h"

enum mk_overcapacity {
    MK_OVERCAPACITY_DROP,    /* new connections are closed at once */
    MK_OVERCAPACITY_RESIST,  /* they wait in the kernel's queue until there is room */
    MK_OVERCAPACITY_TOOBUSY, /* they are told 503 and closed */
};

struct mk_h2_limits {
    bool on;
    unsigned streams_max; /* at a time, on one connection; not 0 */
    uint32_t patience;    /* with what is of no use; see h2_guard.h */
};

/* Every limit of a connection. Times in milliseconds; 0 is "no limit" where not said otherwise. */
struct mk_limits {
    struct mk_head_limits head; /* none may be 0 */
    struct mk_h2_limits h2;
    uint64_t content_max;     /* bytes of a request's content; UINT64_MAX: no limit */
    uint64_t request_max;     /* bytes of head and content together */
    unsigned requests_max;    /* on one connection */
    unsigned connections_max; /* of this worker; not 0 */
    unsigned per_peer_max;    /* connections of one client address in this worker */
    bool keep_alive;
    enum mk_overcapacity overcapacity;
    uint32_t head_ms;    /* to send a whole request head; not 0 */
    uint32_t idle_ms;    /* between requests; not 0 */
    uint32_t linger_ms;  /* for the peer to close after we did; not 0 */
    uint32_t handler_ms; /* for a handler to go on */
    uint32_t tunnel_ms;  /* in which something must move in a tunnel */
    uint32_t rate_ms;    /* in each such span ... */
    uint64_t rate_bytes; /* ... at least so much must move, in or out, while we wait for the peer */
};

/* Bytes received and not used yet, of the connection that is being served: service->in[from..to]. */
struct mk_window {
    char *in;
    size_t from, to;
};

enum { MK_WINDOW = 64 * 1024 };

struct mk_conn;

/* Asked about every connection before its first request. */
struct mk_accept_hook {
    const char *name;                                            /* for messages */
    enum mk_verdict (*on_accept)(struct mk_conn *c, void *data); /* NEXT, WAIT (for input) or REFUSE */
    void *data;
};

struct mk_service {
    struct mk_loop *loop;
    struct mk_web *web;
    const struct mk_limits *limits;
    struct mk_counters *counters;
    struct mk_log *log;
    const struct mk_accept_hook *accept_hooks; /* to be set before connections are taken; not owned */
    size_t n_accept_hooks;

    struct mk_arena_cache arenas;
    struct mk_window window;
    struct mk_buf out; /* the scratch, see net/outq.h */
    struct mk_field *fields;
    struct mk_stamp stamp;
    struct mk_peers peers;
    struct mk_helper helper;

    const struct mk_tls_module *tls;        /* for listeners that want it, and */
    const struct mk_tls_domain *tls_domain; /* whose certificates; to be set before connections are taken */
    struct mk_turns handshakes;

    struct mk_conn *serving; /* whose input the window holds */
    size_t turn_left;        /* bytes that it may still read before the others have their turn */
    struct mk_list conns;    /* all that are open */
    unsigned n_conns;
    struct mk_conn *spare; /* closed ones, to be used again */
    unsigned n_spare;
    bool draining;                               /* a connection gets one more answer at most */
    void (*on_room)(struct mk_service *service); /* a connection closed; may be NULL */
    void *owner;                                 /* of on_room */
};

/* `server_name` as in the Server field. All pointers must outlive the service. */
mk_err mk_service_init(struct mk_service *s, struct mk_loop *loop, struct mk_web *web,
                       const struct mk_limits *limits, struct mk_counters *counters,
                       mk_str server_name) MK_MUST_USE;
/* All connections must be closed (mk_conn_close_all). */
void mk_service_fini(struct mk_service *s);

/* The one record that a request leaves, whatever became of it: counted, and told to those who want to know.
 */
void mk_service_record(struct mk_service *s, struct mk_exchange *x, enum mk_ending ending,
                       uint64_t content_sent);
/* For whoever reads the trail of a worker that died. */
void mk_service_leave_trail(struct mk_service *s, mk_str method, mk_str target);

#endif

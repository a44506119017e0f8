/* SPDX-License-Identifier: Apache-2.0 */
/* A request under way from inside: what duda/service.h keeps closed. */
#ifndef DUDA_SERVICE_DUDA_CTX_H
#define DUDA_SERVICE_DUDA_CTX_H

#include <duda.h>

#include "fiber/fiber.h"

/* Rare: kept out of the functions that call it, which every request runs through. */
#define DUDA_COLD __attribute__((cold, noinline))

enum { DUDA_ROUTE_CELLS = 64 };

/* What all handlers of a worker share. */
struct duda_worker_ctx {
    struct mk_worker *worker;
    const struct duda_symbolizer_config *sources;
    struct duda_session_config *session_config;
    const mk_str *scopes; /* of all services of the configuration */
    size_t n_scopes;
    const struct duda_session_store *store;        /* of all services; NULL: that of [SESSIONS] */
    struct duda_service_session_store *own_stores; /* of services that have one of their own */
    struct duda_stack_pool *stacks[9];             /* by size: 32 KB, 64 KB, ...; made when first needed */
    struct duda_crash_table *crash_table;
    struct duda_crash_slot *crash_slot;
    struct mk_timer dead_worker_timer; /* for workers of the same number that drain */
    struct duda_stall_detector *stall_detector;
    struct mk_buf spare;                     /* room for what the next handler says */
    struct duda_ctx *volatile runs;          /* whose handler runs now; NULL: none */
    struct duda_topic_table *rooms;          /* NULL: none yet */
    uint64_t *said;                          /* in rooms */
    const struct duda_topic_relay *relay;    /* NULL: rooms end at this machine */
    struct duda_lock_table *locks;           /* NULL: none yet */
    struct duda_symbolizer *symbolizer;      /* that are asked for; NULL: none */
    struct duda_websocket_profile *profiles; /* of sockets that are open */
    /* Handlers that no request resumes, because it is a tunnel, or its client has no room: they go on at the
     * end of the turn. */
    struct duda_ctx *woken, *due;
    struct mk_deferred *turn;
    void (*resume_handler)(struct duda_ctx *d); /* runs one of these now, if it may */
    struct duda_chunk *chunks; /* memory of handlers that have ended, for the next ones: see memory.c */
    size_t n_chunks;
    struct duda_block *blocks;
    size_t n_blocks;
    struct duda_terminated *terminated, **last_terminated;
    size_t n_terminated;
    const struct duda_crash_policy *rules; /* of crashes */
    int64_t memory_told;                   /* when it was last said that memory is out */
    struct duda_ctx *events;               /* handlers whose responses are streams of events */
    bool is_draining;                      /* the worker is to end: so are these */
    const struct duda_service_ref *starts; /* whose DUDA_START() functions run now; NULL: none */
    struct duda_route_cells {
        uint32_t series;             /* of a route; 0: this entry is empty */
        uint64_t *cells;             /* of this worker */
    } route_cells[DUDA_ROUTE_CELLS]; /* a cache, by series */
};

/* What handlers have of their service. */
struct duda_service_ref {
    const void *settings;           /* NULL: it has no section */
    mk_str scope;                   /* whose state it has: see duda/scope.h */
    const struct duda_share *share; /* NULL: it shares nothing */
};

struct duda_crash_table;
struct duda_session_config;
struct duda_block;
struct duda_chunk;
struct duda_lock_waiter;
struct duda_stall_detector;
struct duda_symbolizer;
struct duda_topic_receiver;
struct duda_websocket_profile;
struct duda_service_session_store;
struct duda_crash_slot;
struct duda_crash_policy;
struct duda_terminated;
struct duda_cleanup;
struct duda_symbolizer_config;

struct duda_route_entry;

/* Why a function has answered an error. */
struct duda_reason {
    int error;
    char text[DUDA_REASON_MAX + 1];
};

struct duda_param_value {
    mk_str name, value;
};

/* Why a handler that is suspended may go on although nobody has woken it. */
enum duda_suspend_reason { DUDA_SUSPEND_FOR_WAKE, DUDA_SUSPEND_FOR_INPUT, DUDA_SUSPEND_FOR_OUTPUT };

/* In the memory of the request, which for a tunnel lives longer than its handler. */
struct duda_ctx_ref {
    struct duda_ctx *d; /* NULL: it is over */
};

struct duda_ctx {
    struct mk_request *request; /* NULL: nobody has asked for it (duda/task.h) */
    struct mk_response *response;
    struct duda_worker_ctx *worker_ctx;
    const struct duda_route_entry *line;
    const struct duda_service_ref *owner; /* the service; NULL: a package */
    struct duda_fiber *fiber;             /* NULL: it has returned */
    mk_str path;                          /* behind the mount */
    mk_str id;
    const struct duda_templates *pages; /* NULL: the service has none */

    struct mk_buf out; /* what was said and not sent */
    size_t out_at;     /* of these, so many bytes have gone */

    enum duda_suspend_reason waits_for;
    int ended; /* 0, or what every wait answers from now on: see duda_suspend_cancel(). The request cannot say that: a
                  deadline and a draining worker cancel handlers, too, and those without a request */
    int result;                       /* of the handler */
    const struct duda_route *answers; /* whose result that is: the handler, or a guard ahead of it */
    int session_error;                /* why a text of the session could not be read; 0: nothing */
    struct duda_reason *reason;       /* NULL: no function has failed */
    unsigned refused;
    bool runs, woken;
    bool typed; /* Content-Type was set */
    bool said;  /* anything at all */
    bool has_status;
    bool has_content; /* in the response, put there by another function */
    bool streams;     /* the response has begun, or is to begin */
    bool tunnels;     /* the response is another protocol: duda/websocket.h */
    bool is_drained;  /* the worker has ended the stream of events: all of it was sent */
    bool is_refused;  /* the response says why the handler could not do what it is for */
    bool is_queued;   /* among those that were woken */
    bool gives_back;  /* a duty gives its locks back */

    struct duda_ctx_ref *ctx_ref;

    uint64_t began_us;
    struct mk_timer deadline;
    struct duda_ctx *next_woken;
    struct duda_ctx *next_events, **events_link; /* NULL: it sends no events */
    void (*on_over)(void *ctx,
                    int result); /* of one without a request, when nothing is left of it; may be NULL */
    void *over_ctx;
    struct duda_topic_receiver *listener;
    struct duda_lock_waiter *lock_waiters; /* locks; the last one that it asked for is the first */
    struct duda_terminated *terminated;    /* NULL: it is not */
    struct duda_wait *waits;               /* those that are under way; the last one is the first */
    struct duda_cleanup *cleanups;
    struct duda_chunk *chunk;
    const struct duda_param_value *params;
    size_t n_params;
};

#endif

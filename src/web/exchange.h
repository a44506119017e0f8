/* SPDX-License-Identifier: Apache-2.0 */
/* One request and its response, on their way through the flow. */
#ifndef MK_WEB_EXCHANGE_H
#define MK_WEB_EXCHANGE_H

#include "web/request_type.h"
#include "web/response.h"
#include "web/web.h"

enum mk_dispatch_step {
    MK_DISPATCH_HOST,
    MK_DISPATCH_HOOKS,
    MK_DISPATCH_GUARDS, /* a hook has rewritten the request: guards still judge the path that it leads away from */
    MK_DISPATCH_ROUTES,
    MK_DISPATCH_FINISH,
    MK_DISPATCH_READY, /* the response may be sent */
};

/* Lives in its own arena, which is its whole luggage. */
struct mk_exchange {
    struct mk_arena arena;
    struct mk_request request;
    struct mk_response response;
    enum mk_dispatch_step step;
    const struct mk_request_target *dispatched_target; /* what hooks and routes were last begun with */
    const struct mk_request_target *pending;           /* in MK_DISPATCH_GUARDS: the rewritten request */
    unsigned at;                                       /* which hook or route is next */
    unsigned reroutes, rewrites;
    unsigned allowed;         /* methods that routes for this path would have answered */
    unsigned declined_status; /* the status that the last handler set that passed; 0: none */
    mk_err read_error;        /* what mk_request_read() answers from now on; 0: it has not failed */
    const struct mk_plugin *deciding_plugin; /* whose on_request answered; NULL: none did */
    bool follows_client;                     /* as mk_request_cancel_on_disconnect */
    bool body_has_ended;                     /* all of the content was read */
    bool aborted;                            /* its tunnel is to end: mk_request_abort_tunnel() */
    bool replaced;              /* the response failed before any of it was sent, and this is an error page */
    bool untold;                /* a handler would have answered, but was not asked: `monkey explain` */
    bool entered;               /* whether it may come in on its kind of connection was asked */
    bool too_long_logged_at;    /* it was logged that the content is too long */
    bool has_own_body_max;      /* the handler of `body_route` has a limit of its own */
    bool handler_sets_body_max; /* the handler decides how long the content may be: mk_handler.body_max */
    bool
        challenge; /* it came in for the answer to a challenge alone, see mk_https_policy_is_acme_request() */
    const struct mk_route *body_route; /* whose handler has decided that; NULL: none yet */
    struct mk_request_limits *limits;  /* of this request alone, in its arena; NULL: none */
    const struct mk_request_limits
        *variants_limits;                  /* of a path with variants, in its arena; NULL: not known */
    struct mk_request_target *destination; /* see web/destination_header.h; NULL: none, or not needed yet */
    const char *last_called;               /* the name of a hook or handler */
    uint64_t began_us;                     /* 0 where no plugin needs microseconds */
};

/* The exchange that a request belongs to. */
static inline struct mk_exchange *mk_exchange_of(const struct mk_request *r)
{
    return MK_CONTAINER((struct mk_request *)(uintptr_t)r, struct mk_exchange, request);
}

/* Has the client closed, or lost, the connection in the middle of the content of its request? */
static inline bool mk_exchange_client_disconnected(const struct mk_exchange *x)
{
    return x->read_error == -ECONNRESET;
}

/* A new exchange in an arena of its own; everything in it is zero or absent but what the arguments say. NULL
 * when memory is out. */
struct mk_exchange *mk_exchange_new(struct mk_web_ctx *web, struct mk_arena_cache *cache, uint64_t now_ms,
                                    int64_t now) MK_MUST_USE;
/* In an arena that has begun, and which it takes over, also when memory is out. */
struct mk_exchange *mk_exchange_new_in_arena(struct mk_arena *arena, struct mk_web_ctx *web, uint64_t now_ms,
                                             int64_t now) MK_MUST_USE;
/* Closes the source, runs the cleanups, gives the memory back. */
void mk_exchange_free(struct mk_exchange *x);

#endif

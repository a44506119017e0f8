/* SPDX-License-Identifier: Apache-2.0 */
/* One request and its response, on their way through the flow. */
#ifndef MK_WEB_EXCHANGE_H
#define MK_WEB_EXCHANGE_H

#include "web/request_type.h"
#include "web/response.h"
#include "web/web.h"

enum mk_flow_step {
    MK_FLOW_HOST,
    MK_FLOW_HOOKS,
    MK_FLOW_GUARDS, /* a hook has rewritten the request: guards still judge the path that it leads away from */
    MK_FLOW_ROUTES,
    MK_FLOW_FINISH,
    MK_FLOW_READY, /* the response may be sent */
};

/* Lives in its own arena, which is its whole luggage. */
struct mk_exchange {
    struct mk_arena arena;
    struct mk_request request;
    struct mk_response response;
    enum mk_flow_step step;
    const struct mk_asked *begun_with; /* what hooks and routes were last begun with */
    const struct mk_asked *pending;    /* in MK_FLOW_GUARDS: the rewritten request */
    unsigned at;                       /* which hook or route is next */
    unsigned reroutes, rewrites;
    unsigned allowed;                   /* methods that routes for this path would have answered */
    unsigned passed_with;               /* the status that the last handler set that passed; 0: none */
    mk_err read_error;                  /* what mk_request_read() answers from now on; 0: it has not failed */
    const struct mk_plugin *decided_by; /* whose on_request answered; NULL: none did */
    bool follows_client;                /* as mk_request_cancel_on_disconnect */
    bool content_over;                  /* all of the content was read */
    bool aborted;                       /* its tunnel is to end: mk_request_abort_tunnel() */
    bool replaced;    /* the response failed before any of it was sent, and this is an error page */
    bool untold;      /* a handler would have answered, but was not asked: `monkey explain` */
    bool entered;     /* whether it may come in on its kind of connection was asked */
    bool told_length; /* it was logged that the content is too long */
    bool body_own;    /* the handler of `body_route` has a limit of its own */
    bool body_open;   /* the handler decides how long the content may be: mk_handler.body_max */
    bool challenge;   /* it came in for the answer to a challenge alone, see mk_secure_is_challenge() */
    const struct mk_route *body_route;           /* whose handler has decided that; NULL: none yet */
    struct mk_request_limits *limits;            /* of this request alone, in its arena; NULL: none */
    const struct mk_request_limits *of_variants; /* of a path with variants, in its arena; NULL: not known */
    struct mk_asked *destination;                /* see web/destination.h; NULL: none, or not needed yet */
    const char *last_called;                     /* the name of a hook or handler */
    uint64_t began_us;                           /* 0 where no plugin needs microseconds */
};

/* The exchange that a request belongs to. */
static inline struct mk_exchange *mk_exchange_of(const struct mk_request *r)
{
    return MK_CONTAINER((struct mk_request *)(uintptr_t)r, struct mk_exchange, request);
}

/* Has the client closed, or lost, the connection in the middle of the content of its request? */
static inline bool mk_exchange_is_cut_off(const struct mk_exchange *x)
{
    return x->read_error == -ECONNRESET;
}

/* A new exchange in an arena of its own; everything in it is zero or absent but what the arguments say. NULL
 * when memory is out. */
struct mk_exchange *mk_exchange_new(struct mk_web *web, struct mk_arena_cache *cache, uint64_t now_ms,
                                    int64_t now) MK_MUST_USE;
/* In an arena that has begun, and which it takes over, also when memory is out. */
struct mk_exchange *mk_exchange_new_in(struct mk_arena *arena, struct mk_web *web, uint64_t now_ms,
                                       int64_t now) MK_MUST_USE;
/* Closes the source, runs the cleanups, gives the memory back. */
void mk_exchange_free(struct mk_exchange *x);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The corridor: host, hooks, route, handler, response hooks. It moves a request as far as it can go, stops
 * where somebody waits, and goes on from there. It owns no socket and knows no protocol; tests drive it bare.
 */
#ifndef MK_WEB_FLOW_H
#define MK_WEB_FLOW_H

#include "web/request.h"
#include "web/response.h"
#include "web/web.h"

enum mk_flow_step {
    MK_FLOW_HOST,
    MK_FLOW_HOOKS,
    MK_FLOW_ROUTES,
    MK_FLOW_FINISH,
    MK_FLOW_READY, /* the response may be sent */
};

/* One request and its response. Lives in its own arena, which is its whole luggage. */
struct mk_exchange {
    struct mk_arena arena;
    struct mk_request request;
    struct mk_response response;
    enum mk_flow_step step;
    unsigned at; /* which hook or route is next */
    unsigned reroutes, rewrites;
    unsigned allowed;                   /* methods that routes for this path would have answered */
    unsigned passed_with;               /* the status that the last handler set that passed; 0: none */
    const struct mk_plugin *decided_by; /* whose on_request answered; NULL: none did */
    bool untold;       /* a handler would have answered, but was not asked: `monkey explain` */
    const char *asked; /* the name of the hook or handler that was asked last */
    uint64_t began_us; /* 0 where nobody wants to know it so well */
};

/* A new exchange in an arena of its own; everything in it is zero or absent but what the arguments say. NULL
 * when memory is out. */
struct mk_exchange *mk_exchange_new(struct mk_web *web, struct mk_arena_cache *cache, uint64_t now_ms,
                                    int64_t now) MK_MUST_USE;
/* Closes the source, runs the cleanups, gives the memory back. */
void mk_exchange_free(struct mk_exchange *x);

/* The request's target in its parts: fills target, host and path. 0 or 400. `host` is the one of the Host
 * field. */
int mk_exchange_set_target(struct mk_exchange *x, mk_str target_text, mk_str host) MK_MUST_USE;

/* Goes on until the response is ready (true) or somebody waits (false). */
bool mk_flow_run(struct mk_exchange *x);

/* Ready at once, with an error. For requests that no handler will see; not after the response was sealed. */
void mk_flow_refuse(struct mk_exchange *x, unsigned status);

/* The request is over: tells everybody who wants to know. The exchange is to be freed next. */
void mk_flow_end(struct mk_exchange *x, enum mk_ending ending, uint64_t content_sent, uint64_t now_ms);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Exchange: a request, its response, and their dispatch state. */
#ifndef MK_WEB_EXCHANGE_H
#define MK_WEB_EXCHANGE_H

#include "web/request_type.h"
#include "web/response.h"
#include "web/vhost.h"
#include "web/web.h"

enum mk_dispatch_step {
    MK_DISPATCH_HOST,
    MK_DISPATCH_HOOKS,
    MK_DISPATCH_GUARDS, /* a hook has rewritten the request: access checks still evaluate the original path */
    MK_DISPATCH_ROUTES,
    MK_DISPATCH_ERROR, /* an error: on_error hooks may respond before the server does */
    MK_DISPATCH_FINISH,
    MK_DISPATCH_READY, /* the response can be sent */
};

/* Allocated in, and freed with, its own arena. */
struct mk_exchange {
    struct mk_arena arena;
    struct mk_request request;
    struct mk_response response;
    enum mk_dispatch_step step;
    const struct mk_request_target *dispatched_target; /* target for which hooks and routes were last
                                                        * started */
    const struct mk_request_target *pending;           /* in MK_DISPATCH_GUARDS: the rewritten target */
    unsigned at;                                       /* index of the next hook or route */
    unsigned reroutes, rewrites;
    unsigned allowed;         /* methods allowed by routes that match this path */
    unsigned declined_status; /* status set by the last handler that declined; 0: none */
    mk_err read_error;        /* result of all further mk_request_read() calls; 0: no error */
    const struct mk_plugin
        *deciding_plugin;    /* plugin whose on_request responded, or whose on_handler rejected
                                              * the request; NULL: none */
    bool follows_client;     /* set by mk_request_cancel_on_disconnect() */
    bool body_has_ended;     /* the whole body was read */
    bool aborted;            /* mk_request_abort_tunnel() was called */
    bool replaced;           /* the original response failed before any of it was sent, and an error page
                                 * has replaced it */
    bool error_hooks_called; /* on_error hooks were called, or are being called */
    bool handler_skipped;    /* `monkey explain`: a handler would have responded but was not called */
    bool https_checked;      /* the HTTPS policy was checked */
    bool too_long_logged_at; /* the oversized body was logged */
    bool is_path_named;      /* a route for other methods names exactly this path */
    bool is_acme_request;    /* allowed only as an ACME challenge, see mk_https_policy_is_acme_request() */
    const struct mk_route *body_route; /* route whose handler has set the body limit; NULL: none yet */
    struct mk_request_limits *limits;  /* limits set for this request only, in its arena; NULL: none */
    const struct mk_request_limits
        *variants_limits;                  /* limits of a path with variants, in the arena; NULL: not
                                            * determined */
    struct mk_request_target *destination; /* see web/destination_header.h; NULL: none, or not parsed yet */
    const struct mk_request_saved_headers
        *before_handler_hooks; /* headers before the on_handler hooks; NULL: as received */
    const char *last_called;   /* name of the last hook or handler */
    uint64_t began_us;         /* 0 if no plugin needs microseconds */
    uint32_t record;           /* of the recorder: 1 + index of the record of the request; 0: none */
};

/* Returns the exchange of a request. */
static inline struct mk_exchange *mk_exchange_of(const struct mk_request *r)
{
    return MK_CONTAINER((struct mk_request *)(uintptr_t)r, struct mk_exchange, request);
}

/* Does the handler set the limit of the request body? See mk_handler.body_max. */
static inline bool mk_exchange_handler_sets_body_max(const struct mk_exchange *x)
{
    return x->request.length && x->request.site && x->request.site->has_body_max;
}

/* Did the client disconnect before the request body was complete? */
static inline bool mk_exchange_client_disconnected(const struct mk_exchange *x)
{
    return x->read_error == -ECONNRESET;
}

/* Creates an exchange in its own arena; all members not given as arguments are zero or absent. NULL: out of
 * memory. */
struct mk_exchange *mk_exchange_new(struct mk_web_ctx *web, struct mk_arena_cache *cache, uint64_t now_ms,
                                    int64_t now) MK_MUST_USE;
/* Like mk_exchange_new(), but takes ownership of an existing arena, even on failure. */
struct mk_exchange *mk_exchange_new_in_arena(struct mk_arena *arena, struct mk_web_ctx *web, uint64_t now_ms,
                                             int64_t now) MK_MUST_USE;
/* Closes the body source, runs the cleanups, and frees the memory. */
void mk_exchange_free(struct mk_exchange *x);

#endif

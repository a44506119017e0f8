/* SPDX-License-Identifier: Apache-2.0 */
/* The internals of a WebSocket, opaque in duda/websocket.h. */
#ifndef DUDA_SERVICE_WEBSOCKET_TYPE_H
#define DUDA_SERVICE_WEBSOCKET_TYPE_H

#include "service/duda_ctx.h"

struct duda_subscriber;

/* WebSocket options, shared by all WebSockets of a worker with equal options. */
struct duda_websocket_profile {
    struct duda_websocket_profile *next;
    size_t users;
    struct duda_websocket_options options;
    struct mk_websocket_options wire; /* options of the endpoint, derived from `options` */
};

/* A service may have very many of these: keep the struct small. */
struct duda_websocket {
    struct mk_websocket *end; /* NULL: closed */
    struct duda_worker_ctx *worker_ctx;
    const struct duda_service_ref *owner;
    struct duda_ctx *d; /* the handler that owns it; NULL: callbacks own it, or the handler has returned */
    void *ctx;
    struct duda_websocket_profile *profile;
    struct duda_subscriber *members; /* its subscriptions */
    struct duda_ctx *attaching;      /* the handler in duda_topic_attach_after(); NULL: none */
    mk_str message;                  /* allocated on the heap */
    size_t mark;
    enum mk_websocket_kind kind;
    unsigned short close_code; /* passed to on_close() later, because it was closed while `attaching` */
    bool has_message;          /* `message` has not been delivered to the handler yet */
    bool wants;                /* the handler waits for a message */
};

/* Calls on_close() of a closed WebSocket that no handler uses, and frees the WebSocket. */
void duda_websocket_end_callbacks(struct duda_websocket *s, unsigned code);

#endif

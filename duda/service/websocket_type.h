/* SPDX-License-Identifier: Apache-2.0 */
/* A socket from inside: what duda/websocket.h keeps closed. */
#ifndef DUDA_SERVICE_WEBSOCKET_TYPE_H
#define DUDA_SERVICE_WEBSOCKET_TYPE_H

#include "service/duda_ctx.h"

struct duda_subscriber;

/* How sockets are to be: all those of a worker that are alike share one. */
struct duda_websocket_profile {
    struct duda_websocket_profile *next;
    size_t users;
    struct duda_websocket_options options;
    struct mk_websocket_options wire; /* what follows from these */
};

/* A service may have very many: keep it small. */
struct duda_websocket {
    struct mk_websocket *end; /* NULL: it is over */
    struct duda_worker_ctx *worker_ctx;
    const struct duda_service_ref *owner;
    struct duda_ctx *d; /* whose handler has it; NULL: callbacks have it, or the handler has returned */
    void *ctx;
    struct duda_websocket_profile *profile;
    struct duda_subscriber *members; /* rooms that it is in */
    mk_str message;                  /* on the heap */
    size_t mark;
    enum mk_websocket_kind kind;
    bool has_message; /* `message` is new: the handler has not had it */
    bool wants;       /* the handler waits for one */
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A socket from inside: what duda/socket.h keeps closed. */
#ifndef DUDA_SERVICE_SOCKET_TYPE_H
#define DUDA_SERVICE_SOCKET_TYPE_H

#include "service/duda_type.h"

struct duda_guest;

/* How sockets are to be: all those of a worker that are alike share one. */
struct duda_manner {
    struct duda_manner *next;
    size_t users;
    struct duda_socket_options options;
    struct mk_websocket_options wire; /* what follows from these */
};

/* A service may have very many: keep it small. */
struct duda_socket {
    struct mk_websocket *end; /* NULL: it is over */
    struct duda_home *home;
    const struct duda_owner *owner;
    struct duda *d; /* whose handler has it; NULL: callbacks have it, or the handler has returned */
    void *ctx;
    struct duda_manner *manner;
    struct duda_guest *members; /* rooms that it is in */
    mk_str message;             /* on the heap */
    size_t mark;
    enum mk_websocket_kind kind;
    bool has_message; /* `message` is new: the handler has not had it */
    bool wants;       /* the handler waits for one */
};

#endif

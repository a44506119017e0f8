/* SPDX-License-Identifier: Apache-2.0 */
/* A socket from inside: what duda/socket.h keeps closed. */
#ifndef DUDA_SERVICE_SOCKET_TYPE_H
#define DUDA_SERVICE_SOCKET_TYPE_H

#include "service/duda_type.h"

struct duda_guest;

struct duda_socket {
    struct mk_websocket *end; /* NULL: it is over */
    struct duda_home *home;
    struct duda *d; /* whose handler has it; NULL: callbacks have it, or the handler has returned */
    void *ctx;
    void (*on_message)(struct duda_socket *s, enum mk_websocket_kind kind, mk_str data, void *ctx);
    void (*on_close)(struct duda_socket *s, unsigned code, void *ctx);
    struct duda_guest *members; /* rooms that it is in */
    enum duda_slow slow;
    bool has_message; /* `message` is new: the handler has not had it */
    bool wants;       /* the handler waits for one */
    bool is_paused;
    enum mk_websocket_kind kind;
    mk_str message; /* on the heap */
    size_t mark;
    struct mk_websocket_options wire;
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A WebSocket, from the request that opens it until it is closed: the base class of libmonkey.asgi.WebSocket,
 * which implements the ASGI protocol. */
#ifndef SOCKET_H
#define SOCKET_H

#include "host.h"

struct socket {
    PyObject_HEAD struct host *host;
    struct mk_request *request; /* NULL: the request has ended */
    struct mk_response *response;
    struct mk_websocket *websocket; /* NULL: the WebSocket is not open */
    struct mk_websocket_options options;
    PyObject *subprotocol; /* bytes, to which options.subprotocols points, or None */
    bool is_handling;      /* the handler is being called */
};

int socket_init(PyObject *module);

enum mk_verdict socket_begin(struct host *h, struct mk_request *request, struct mk_response *response);
enum mk_verdict socket_handle(struct socket *s);

#endif

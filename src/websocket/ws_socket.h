/* SPDX-License-Identifier: Apache-2.0 */
/* Life cycle of a socket from its handshake to on_close(), and worker-wide operations. */
#ifndef MK_WEBSOCKET_WS_SOCKET_H
#define MK_WEBSOCKET_WS_SOCKET_H

#include "websocket/ws.h"

/* Initializes the state of a worker. False: out of memory. */
bool mk_ws_socket_worker_init(struct mk_ws_worker *w, struct mk_worker *worker) MK_MUST_USE;
void mk_ws_socket_worker_fini(struct mk_ws_worker *w);
/* Closes all sockets: the worker is shutting down. */
void mk_ws_socket_worker_drain(struct mk_ws_worker *w);

/* Implements mk_websocket_open(). */
int mk_ws_socket_open(struct mk_ws_worker *w, struct mk_request *request, struct mk_response *r,
                      const struct mk_websocket_options *options, void *ctx, struct mk_websocket **out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: what each worker keeps for its sockets. */
#include <errno.h>
#include <monkey/mem.h>
#include <monkey/plugin.h>

#include "websocket/ws_socket.h"

MK_PLUGIN_DECLARE(websocket);

int mk_websocket_open(struct mk_request *request, struct mk_response *r,
                      const struct mk_websocket_options *options, void *ctx, struct mk_websocket **out)
{
    struct mk_ws_worker *w = mk_worker_data(mk_request_worker(request), &MK_PLUGIN_OF(websocket));
    if (w)
        return mk_ws_socket_open(w, request, r, options, ctx, out);
    mk_request_log(request, MK_LOG_ERROR,
                   "the plugin `websocket` is not loaded: name it in `needs` of the plugin that calls it");
    mk_response_set_status(r, 500);
    return -EINVAL;
}

static int worker_start(struct mk_worker *worker, void *data)
{
    struct mk_ws_worker *w = mk_mem_alloc(sizeof *w);
    (void)data;
    if (!w)
        return -ENOMEM;
    if (!mk_ws_socket_start(w, worker)) {
        mk_mem_free(w);
        return -ENOMEM;
    }
    mk_worker_set_data(worker, &MK_PLUGIN_OF(websocket), w);
    return 0;
}

static void worker_stop(struct mk_worker *worker, void *data)
{
    struct mk_ws_worker *w = mk_worker_data(worker, &MK_PLUGIN_OF(websocket));
    (void)data;
    if (!w)
        return;
    mk_ws_socket_stop(w);
    mk_mem_free(w);
    mk_worker_set_data(worker, &MK_PLUGIN_OF(websocket), NULL);
}

MK_PLUGIN(websocket) = {
    MK_PLUGIN_HEAD,
    .name = "websocket",
    .version = MK_VERSION,
    .help = "WebSocket, for plugins that speak it: frames, compression, pings, the closing handshake.",
    .order = MK_ORDER_ADDRESS,
    .worker_start = worker_start,
    .worker_stop = worker_stop,
};

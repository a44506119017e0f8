/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin `websocket`: the state of all sockets and event streams of a worker. */
#include <errno.h>
#include <monkey/mem.h>
#include <monkey/plugin.h>

#include "websocket/sse_stream.h"
#include "websocket/ws_socket.h"

MK_PLUGIN_DECLARE(websocket);

struct mk_websocket_worker {
    struct mk_ws_worker sockets;
    struct mk_sse_stream_worker events;
    struct mk_deferred *close_all; /* closes all sockets and streams when the worker drains */
    bool is_draining;
};

/* Returns the worker state for the request. NULL: the plugin is not loaded, and the status of the response is
 * 500. */
static struct mk_websocket_worker *worker_of_request(struct mk_request *request, struct mk_response *r)
{
    struct mk_websocket_worker *live = mk_worker_data(mk_request_worker(request), &MK_PLUGIN_OF(websocket));
    if (live)
        return live;
    mk_request_log(request, MK_LOG_ERROR,
                   "the plugin `websocket` is not loaded: a plugin lists it in `needs`, and a program calls "
                   "mk_server_set(server, \"PLUGINS\", \"Load\", \"websocket\")");
    mk_response_set_status(r, 500);
    return NULL;
}

int mk_websocket_open(struct mk_request *request, struct mk_response *r,
                      const struct mk_websocket_options *options, void *ctx, struct mk_websocket **out)
{
    struct mk_websocket_worker *live = worker_of_request(request, r);
    if (live && live->is_draining)
        mk_deferred_post(live->close_all);
    return live ? mk_ws_socket_open(&live->sockets, request, r, options, ctx, out) : -ENODEV;
}

int mk_sse_stream_open(struct mk_request *request, struct mk_response *r,
                       const struct mk_sse_stream_options *options, void *ctx, struct mk_sse_stream **out)
{
    struct mk_websocket_worker *live = worker_of_request(request, r);
    if (live && live->is_draining)
        mk_deferred_post(live->close_all);
    return live ? mk_sse_stream_worker_open(&live->events, request, r, options, ctx, out) : -ENODEV;
}

static void close_sockets_and_streams(void *ctx)
{
    struct mk_websocket_worker *live = ctx;
    mk_ws_socket_worker_drain(&live->sockets);
    mk_sse_stream_worker_drain(&live->events);
}

static bool init_event_streams(struct mk_websocket_worker *live, struct mk_worker *worker)
{
    mk_sse_stream_worker_init(&live->events, worker);
    live->close_all = mk_deferred_new(worker, close_sockets_and_streams, live);
    return live->close_all;
}

static struct mk_websocket_worker *new_websocket_worker(struct mk_worker *worker)
{
    struct mk_websocket_worker *live = mk_mem_zalloc(1, sizeof *live);
    if (!live || !mk_ws_socket_worker_init(&live->sockets, worker)) {
        mk_mem_free(live);
        return NULL;
    }
    if (init_event_streams(live, worker))
        return live;
    mk_ws_socket_worker_fini(&live->sockets);
    mk_mem_free(live);
    return NULL;
}

static int worker_start(struct mk_worker *worker, void *data)
{
    struct mk_websocket_worker *live = new_websocket_worker(worker);
    (void)data;
    mk_worker_set_data(worker, &MK_PLUGIN_OF(websocket), live);
    return live ? 0 : -ENOMEM;
}

/* Closing is deferred to the end of the iteration, so that owners of sockets and streams can send something
 * first. */
static void worker_drain(struct mk_worker *worker, void *data)
{
    struct mk_websocket_worker *live = mk_worker_data(worker, &MK_PLUGIN_OF(websocket));
    (void)data;
    live->is_draining = true;
    mk_deferred_post(live->close_all);
}

static void worker_stop(struct mk_worker *worker, void *data)
{
    struct mk_websocket_worker *live = mk_worker_data(worker, &MK_PLUGIN_OF(websocket));
    (void)data;
    if (!live)
        return;
    mk_ws_socket_worker_fini(&live->sockets);
    mk_deferred_free(live->close_all);
    mk_mem_free(live);
    mk_worker_set_data(worker, &MK_PLUGIN_OF(websocket), NULL);
}

MK_PLUGIN(websocket) = {
    MK_PLUGIN_HEAD,
    .name = "websocket",
    .version = MK_VERSION,
    .help = "WebSocket and server-sent events for other plugins.",
    .priority = MK_PRIORITY_ADDRESS,
    .worker_start = worker_start,
    .worker_drain = worker_drain,
    .worker_stop = worker_stop,
};

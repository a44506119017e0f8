/* SPDX-License-Identifier: Apache-2.0 */
#include "websocket/ws_socket.h"

#include <errno.h>
#include <monkey/mem.h>

#include "http/ws_frame_head.h"
#include "websocket/ws_handshake.h"
#include "websocket/ws_receive.h"
#include "websocket/ws_send.h"

/* ---- The tunnel ---- */

static bool tunnel_on_input(void *ctx, bool has_input)
{
    struct mk_websocket *s = ctx;
    s->is_within = true;
    bool more = mk_ws_receive_input(s, has_input);
    s->is_within = false;
    return more;
}

/* Called after data was taken from the queue: if the queue has space again, continues with pending input, and
 * notifies an owner whose message was rejected. */
static void notify_queue_space(struct mk_websocket *s)
{
    const struct mk_websocket_ops *ops = s->options->ops;
    if (s->is_stalled && mk_ws_send_has_room(s))
        mk_ws_resume_later(s);
    if (!s->is_refusing || s->state.current != MK_WS_OPEN || s->queue.weight >= mk_ws_queue_max(s) / 2)
        return;
    s->is_refusing = false;
    if (ops->on_writable)
        ops->on_writable(s->ctx, s);
}

static ssize_t read_queue(struct mk_websocket *s, char *buf, size_t cap)
{
    size_t n = 0, more;
    do {
        more = mk_ws_queue_read(&s->queue, buf + n, cap - n);
        n += more;
        notify_queue_space(s);
    } while (more && n < cap && !mk_ws_queue_is_empty(&s->queue));
    s->has_sent = s->has_sent || n;
    if (s->state.current == MK_WS_BROKEN)
        return -ECONNRESET;
    if (n)
        return (ssize_t)n;
    return s->state.current == MK_WS_ENDING ? 0 : -EAGAIN;
}

static ssize_t tunnel_read(void *ctx, char *buf, size_t cap)
{
    struct mk_websocket *s = ctx;
    if (s->state.current == MK_WS_BROKEN)
        return -ECONNRESET;
    if (s->state.current == MK_WS_OPEN && mk_ws_queue_is_empty(&s->queue) && !s->is_stalled &&
        !s->is_refusing)
        return -EAGAIN;
    s->is_within = true;
    ssize_t n = read_queue(s, buf, cap);
    s->is_within = false;
    return n;
}

static void tunnel_on_end(void *ctx)
{
    struct mk_websocket *s = ctx;
    mk_str reason = s->reason ? mk_str_of(s->reason, s->reason_len) : MK_STR("");
    bool was_open = s->state.current != MK_WS_HANDSHAKE;
    (void)mk_ws_set_state(s, MK_WS_OVER);
    mk_timer_stop(&s->timer);
    mk_list_remove(&s->later);
    mk_list_remove(&s->open);
    s->is_within = true; /* nothing wakes the socket from now on */
    if (was_open)        /* otherwise the owner and the options may be gone */
        s->options->ops->on_close(s->ctx, s, s->code, reason);
    mk_ws_queue_clear(&s->queue);
    mk_ws_receive_free(s);
    mk_ws_deflate_free(s->coder);
    mk_mem_free(s->reason);
}

static const struct mk_tunnel_ops tunnel_ops = {.source = {.read = tunnel_read, .close = tunnel_on_end},
                                                .on_input = tunnel_on_input};

/* ---- Timers ---- */

static void set_ping_timer(struct mk_websocket *s)
{
    uint32_t ms = mk_ws_ping_ms(s);
    s->was_heard = s->has_sent = s->is_coding = false;
    if (ms != MK_FOREVER)
        mk_timer_set(&s->timer, s->worker->worker, ms);
}

/* Is the client known to be alive, or is that impossible to know? A paused socket is not read, and a slow
 * client may not have received the ping yet. */
static bool is_client_known_alive(const struct mk_websocket *s)
{
    return s->was_heard || s->is_paused || (!mk_ws_queue_is_empty(&s->queue) && s->has_sent);
}

static void on_ping_timer(struct mk_timer *t)
{
    struct mk_websocket *s = MK_CONTAINER(t, struct mk_websocket, timer);
    if (s->coder && !s->is_coding)
        mk_ws_deflate_release_memory(s->coder, s->offer.client_keeps);
    if (s->state.current != MK_WS_OPEN || (s->was_pinged && !is_client_known_alive(s))) {
        mk_websocket_abort(s);
        return;
    }
    s->was_pinged = !is_client_known_alive(s);
    if (s->was_pinged && !mk_ws_send_control(s, MK_WS_PING, MK_STR(""))) {
        mk_websocket_abort(s);
        return;
    }
    set_ping_timer(s);
}

/* Called when no shared compressor has been used for DEFLATE_IDLE_MS. */
static void on_deflate_idle_timer(struct mk_timer *t)
{
    struct mk_ws_worker *w = MK_CONTAINER(t, struct mk_ws_worker, rest);
    for (size_t i = 0; i < MK_WS_DEFLATE_WINDOWS; i++)
        if (w->coders[i])
            mk_ws_deflate_release_memory(w->coders[i], false);
}

static void on_iteration_end(void *ctx)
{
    mk_ws_resume_all_later(ctx);
}

bool mk_ws_socket_worker_init(struct mk_ws_worker *w, struct mk_worker *worker)
{
    memset(w, 0, sizeof *w);
    mk_list_init(&w->later);
    mk_list_init(&w->open);
    mk_timer_init(&w->rest, on_deflate_idle_timer);
    w->worker = worker;
    w->iteration_end = mk_deferred_new(worker, on_iteration_end, w);
    return w->iteration_end;
}

void mk_ws_socket_worker_fini(struct mk_ws_worker *w)
{
    for (size_t i = 0; i < MK_WS_DEFLATE_WINDOWS; i++)
        mk_ws_deflate_free(w->coders[i]);
    mk_timer_stop(&w->rest);
    mk_deferred_free(w->iteration_end);
}

void mk_ws_socket_worker_drain(struct mk_ws_worker *w)
{
    MK_LIST_EACH_SAFE (at, &w->open) {
        mk_list_remove(at);
        (void)mk_websocket_close(MK_LIST_ENTRY(at, struct mk_websocket, open), MK_WEBSOCKET_GOING_AWAY,
                                 MK_STR(""));
    }
}

/* ---- Opening ---- */

static int reject_handshake(struct mk_response *r, unsigned status, int e)
{
    mk_response_set_status(r, status);
    return e;
}

/* Stores the negotiated parameters in the socket and the response. False: out of memory. */
static bool negotiate_handshake(struct mk_websocket *s, struct mk_response *r)
{
    const struct mk_websocket_options *o = s->options;
    s->subprotocol = mk_ws_handshake_subprotocol(s->request, o->subprotocols);
    if (s->subprotocol.p && mk_response_add_header(r, MK_STR("Sec-WebSocket-Protocol"), s->subprotocol))
        return false;
    if (!mk_ws_handshake_negotiate_deflate(s->request, o->flags, &s->offer))
        return true;
    char buf[MK_WS_EXTENSION_TEXT_MAX];
    struct mk_buf answer = mk_buf_fixed(buf, sizeof buf);
    mk_ws_extension_format(&s->offer, &answer);
    s->is_compressed = true;
    if (mk_response_add_header(r, MK_STR("Sec-WebSocket-Extensions"), mk_buf_str(&answer)))
        return false;
    if (!s->offer.server_keeps && !s->offer.client_keeps)
        return true;
    s->coder = mk_ws_deflate_new(s->offer.server_bits);
    return s->coder != NULL;
}

static struct mk_websocket *new_websocket(struct mk_ws_worker *w, struct mk_request *request,
                                          const struct mk_websocket_options *options, void *ctx)
{
    struct mk_websocket *s = mk_request_alloc(request, sizeof *s);
    if (!s)
        return NULL;
    *s = (struct mk_websocket){
        .request = request, .worker = w, .options = options, .ctx = ctx, .code = MK_WEBSOCKET_ABNORMAL};
    mk_state_init(&s->state, &mk_ws_machine, MK_WS_HANDSHAKE);
    mk_timer_init(&s->timer, on_ping_timer);
    mk_list_init(&s->later);
    mk_list_init(&s->open);
    return s;
}

int mk_ws_socket_open(struct mk_ws_worker *w, struct mk_request *request, struct mk_response *r,
                      const struct mk_websocket_options *options, void *ctx, struct mk_websocket **out)
{
    if (!options || !options->ops || !options->ops->on_close)
        return reject_handshake(r, 500, -EINVAL);
    if (!mk_str_eq(mk_request_tunnel(request), MK_STR("websocket")))
        return reject_handshake(r, 426, -EINVAL);
    if (!mk_ws_handshake_origin_is_allowed(request, options->origins))
        return reject_handshake(r, 403, -EACCES);
    struct mk_websocket *s = new_websocket(w, request, options, ctx);
    if (!s)
        return reject_handshake(r, 503, -ENOMEM);
    int e = mk_response_open_tunnel(request, r, &tunnel_ops, s);
    if (e)
        return e;
    if (!negotiate_handshake(s, r))
        return -ENOMEM; /* tunnel_on_end() follows when the handler rejects the request */
    (void)mk_ws_set_state(s, MK_WS_OPEN);
    mk_list_add_last(&w->open, &s->open);
    set_ping_timer(s);
    *out = s;
    return 0;
}

/* ---- Queries ---- */

struct mk_request *mk_websocket_request(const struct mk_websocket *s)
{
    return s->request;
}

mk_str mk_websocket_subprotocol(const struct mk_websocket *s)
{
    return s->subprotocol;
}

void mk_websocket_pause(struct mk_websocket *s)
{
    s->is_paused = s->state.current == MK_WS_OPEN;
}

void mk_websocket_resume(struct mk_websocket *s)
{
    if (!s->is_paused)
        return;
    s->is_paused = false;
    mk_ws_resume_later(s); /* the caller may be inside one of the socket's callbacks */
}

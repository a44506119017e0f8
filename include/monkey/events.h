/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events: a long-lived response that browsers read as events (`new EventSource("/news")`).
 * The functions belong to the plugin `websocket`; a plugin that calls them must list it in `needs`. */
#ifndef MONKEY_EVENTS_H
#define MONKEY_EVENTS_H

#include <monkey/request.h>
#include <monkey/response.h>
#include <monkey/sse.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * These functions belong to the plugin `websocket`; <monkey/websocket.h> shows how to declare that. As with
 * WebSockets, call them only in the worker that serves the stream. None of them invokes a callback before it
 * returns.
 */

/** An open stream. Valid from mk_events_open() until on_close() returns. */
struct mk_events;

/** Callbacks of a stream. */
struct mk_events_ops {
    /** Called when, after an event was rejected with -EAGAIN, less than half of `queue_max` is queued.
     * May be NULL. */
    void (*on_writable)(void *ctx, struct mk_events *s);
    /** The stream was closed. Called exactly once, as the last callback, for every stream that
     * mk_events_open() opened. */
    void (*on_close)(void *ctx, struct mk_events *s);
};

/** Options of a stream. They must live as long as the streams that use them. A limit of 0 means the
 * default. */
struct mk_events_options {
    size_t size; /**< sizeof(struct mk_events_options), so that the struct can grow */
    const struct mk_events_ops *ops;
    size_t queue_max;      /**< events are rejected when this many bytes are queued. Default 64 KB */
    uint32_t keepalive_ms; /**< interval: after this long without an event, a comment is sent, which
                            keeps proxies from closing the connection and detects vanished clients.
                            UINT32_MAX: never. Default 15 s */
};

/**
 * Turns the response into an event stream; return MK_DONE afterwards. The stream has no time limit
 * (mk_request_set_handler_timeout()), and ends when the client disconnects or mk_events_end() is called. You
 * may send events immediately. A second stream for the same request replaces the first, which is closed.
 *
 * Returns 0; on_close(ctx) is then called exactly once. On failure, on_close() is not called and the status
 * is set: return MK_ERROR. The errors are -EINVAL if the options are invalid or the plugin is not loaded,
 * -EALREADY if the response was sent, and -ENOMEM.
 *
 *     static enum mk_verdict news(struct mk_request *request, struct mk_response *response, void *data)
 *     {
 *         struct mk_events *s;
 *         if (mk_events_open(request, response, &options, data, &s))
 *             return MK_ERROR;
 *         const struct mk_sse_event first = {.data = MK_STR("welcome"), .retry_ms = 2000};
 *         (void)mk_events_send(s, &first);
 *         return MK_DONE;
 *     }
 */
MK_API int mk_events_open(struct mk_request *request, struct mk_response *r,
                          const struct mk_events_options *options, void *ctx, struct mk_events **out);

/** The request that the stream answers. */
MK_API struct mk_request *mk_events_request(const struct mk_events *s);
/** The ID of the last event that the client received, if it reconnects; otherwise absent. */
MK_API mk_str mk_events_last_id(const struct mk_events *s);
/** The number of bytes queued for sending. */
MK_API size_t mk_events_queued(const struct mk_events *s);

/** Queues an event. Returns 0; -EAGAIN if `queue_max` bytes or more are queued already (on_writable()
 * follows); -ESHUTDOWN if the stream is closed or ending; -EINVAL as for mk_sse_write(); or -ENOMEM. */
MK_API int mk_events_send(struct mk_events *s, const struct mk_sse_event *e);
/** Queues text that mk_sse_write() has formatted once for many streams. The text is copied. Returns the
 * same values as mk_events_send(). */
MK_API int mk_events_send_text(struct mk_events *s, mk_str text);
/** Ends the stream once all queued events have been sent. Browsers reconnect; to stop a browser, answer its
 * next request with 204. */
MK_API void mk_events_end(struct mk_events *s);

#ifdef __cplusplus
}
#endif

#endif

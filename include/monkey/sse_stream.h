/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events: a long-lived response that browsers read as events (`new EventSource("/news")`). The
 * functions belong to the plugin `websocket`. A plugin that calls them must list `websocket` in `needs`, as
 * <monkey/websocket.h> shows; a program loads it with `mk_server_set(s, "PLUGINS", "Load", "websocket")`. */
#ifndef MONKEY_SSE_STREAM_H
#define MONKEY_SSE_STREAM_H

#include <monkey/request.h>
#include <monkey/response.h>
#include <monkey/sse.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * As with WebSockets, call these functions only in the worker that serves the stream. None of them invokes a
 * callback before it returns.
 */

/** An open stream. Valid from mk_sse_stream_open() until on_close() returns. */
struct mk_sse_stream;

/** Callbacks of a stream. */
struct mk_sse_stream_ops {
    /** Called when the queue has drained to less than half of `queue_max` after an event was rejected with
     * -EAGAIN. May be NULL. */
    void (*on_writable)(void *ctx, struct mk_sse_stream *stream);
    /** Called when the stream is closed: exactly once, as the last callback, for every stream that
     * mk_sse_stream_open() opened. */
    void (*on_close)(void *ctx, struct mk_sse_stream *stream);
    uint64_t reserved[2]; /**< must be zero */
};

/** Options of a stream. They must live as long as the streams that use them. A limit of 0 means the
 * default. */
struct mk_sse_stream_options {
    const struct mk_sse_stream_ops *ops;
    size_t queue_max;      /**< new events are rejected while this many bytes or more are queued. Default 64
                                KB */
    uint32_t keepalive_ms; /**< the stream sends a comment after this time without an event, to keep proxies
                                from closing the connection and to detect vanished clients. MK_FOREVER: never.
                                Default 15 s */
    uint64_t reserved[4];  /**< must be zero */
};

/**
 * Turns the response into an event stream; return MK_DONE afterwards. The stream is exempt from the handler
 * timeout (mk_request_set_handler_timeout()). It ends when the client disconnects or mk_sse_stream_end() is
 * called. You may send events immediately. A second stream for the same request replaces the first, which is
 * closed.
 *
 * Returns 0; on_close(ctx) is then called exactly once. On failure, on_close() is not called and the status
 * is set: return MK_ERROR. The errors are -EINVAL if the options are invalid, -ENODEV if the plugin is not
 * loaded (logged), -EALREADY if the response was sent, and -ENOMEM.
 *
 *     static enum mk_verdict news(struct mk_request *request, struct mk_response *response, void *data)
 *     {
 *         struct mk_sse_stream *s;
 *         if (mk_sse_stream_open(request, response, &options, data, &s))
 *             return MK_ERROR;
 *         const struct mk_sse_event first = {.data = MK_STR("welcome"), .retry_ms = 2000};
 *         (void)mk_sse_stream_send(s, &first);
 *         return MK_DONE;
 *     }
 */
MK_API int mk_sse_stream_open(struct mk_request *request, struct mk_response *response,
                              const struct mk_sse_stream_options *options, void *ctx,
                              struct mk_sse_stream **out) MK_API_MUST_USE;

/** The request that the stream answers. */
MK_API struct mk_request *mk_sse_stream_request(const struct mk_sse_stream *stream);
/** The ID of the last event that a reconnecting client received (Last-Event-ID); absent if the client sent
 * none. */
MK_API mk_str mk_sse_stream_last_id(const struct mk_sse_stream *stream);
/** The number of bytes queued for sending. */
MK_API size_t mk_sse_stream_queued(const struct mk_sse_stream *stream);

/** Queues an event. Returns 0; -EAGAIN if `queue_max` bytes or more are queued already (on_writable()
 * follows); -ESHUTDOWN if the stream is closed or ending; -EINVAL as for mk_sse_write(); or -ENOMEM. */
MK_API int mk_sse_stream_send_sized(struct mk_sse_stream *stream, const struct mk_sse_event *event,
                                    size_t event_size);
static inline int mk_sse_stream_send(struct mk_sse_stream *stream, const struct mk_sse_event *event)
{
    return mk_sse_stream_send_sized(stream, event, sizeof *event);
}
/**
 * Queues a copy of text that mk_sse_write() has formatted, so that you format an event for many streams only
 * once. Returns the same values as mk_sse_stream_send().
 *
 *     int e = mk_sse_stream_send_text(stream, MK_STR("data: hello\n\n"));
 */
MK_API int mk_sse_stream_send_text(struct mk_sse_stream *stream, mk_str text);
/** Ends the stream once all queued events have been sent. Browsers reconnect; to stop a browser, answer its
 * next request with 204. */
MK_API void mk_sse_stream_end(struct mk_sse_stream *stream);

#ifdef __cplusplus
}
#endif

#endif

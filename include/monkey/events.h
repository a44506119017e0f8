/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events: a response that goes on, of which browsers make events (`new EventSource("/news")`).
 * They belong to the plugin `websocket`, which a plugin that calls them must name in its `needs`. */
#ifndef MONKEY_EVENTS_H
#define MONKEY_EVENTS_H

#include <monkey/request.h>
#include <monkey/response.h>
#include <monkey/sse.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * These functions belong to the plugin `websocket`; <monkey/websocket.h> shows how to call them. They are for
 * the worker that serves the stream alone, as those of sockets are, and none of them calls back before it
 * returns.
 */

/** An open stream. It exists from mk_events_open() until on_close() returns. */
struct mk_events;

/** What the owner of a stream learns. */
struct mk_events_ops {
    /** An event was refused with -EAGAIN, and now less than half of `queue_max` waits. May be NULL. */
    void (*on_room)(void *ctx, struct mk_events *s);
    /** The stream is over: called exactly once, last, for every stream that mk_events_open() made. */
    void (*on_close)(void *ctx, struct mk_events *s);
};

/** How streams of one kind are to be. It must live as long as they do. A limit of 0 is the default. */
struct mk_events_options {
    size_t size; /**< sizeof(struct mk_events_options): the struct may grow */
    const struct mk_events_ops *ops;
    size_t queue_max; /**< when so many bytes wait to be sent, events are refused. Default 64 KB */
    uint32_t
        quiet_ms; /**< after so long without an event a comment is sent, so that no proxy takes the connection
                       for dead, and a client that vanished is noticed. UINT32_MAX: never. Default 15 s */
};

/**
 * Makes the response a stream of events: return MK_DONE afterwards. It has no time limit
 * (mk_request_set_handler_timeout()), and ends when the client leaves or mk_events_end() is called. Events may be sent
 * at once. A second stream for the same request takes the place of the first, which is over.
 *
 * 0, and on_close(ctx) will be called exactly once. Otherwise it will not, and the status is set: answer
 * MK_ERROR. -EINVAL: the options are wrong, or the plugin is not loaded; -EALREADY: the
 * response was sent; -ENOMEM.
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

/** The request that it answers. */
MK_API struct mk_request *mk_events_request(const struct mk_events *s);
/** The id of the last event that this client has seen, if it reconnects; absent if it does not. */
MK_API mk_str mk_events_last_id(const struct mk_events *s);
/** Bytes that wait to be sent. */
MK_API size_t mk_events_queued(const struct mk_events *s);

/** Queues an event. 0; -EAGAIN: `queue_max` bytes or more wait already, on_room() will be called; -ESHUTDOWN:
 * it is over, or ends; -EINVAL as mk_sse_write(); -ENOMEM. */
MK_API int mk_events_send(struct mk_events *s, const struct mk_sse_event *e);
/** Queues text that mk_sse_write() made, once for many streams (it is copied). Results as of
 * mk_events_send(). */
MK_API int mk_events_send_text(struct mk_events *s, mk_str text);
/** Ends the stream when all is sent. Browsers reconnect; one that is to stay away must be answered with 204.
 */
MK_API void mk_events_end(struct mk_events *s);

#ifdef __cplusplus
}
#endif

#endif

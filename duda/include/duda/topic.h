/* SPDX-License-Identifier: Apache-2.0 */
/* Publish/subscribe topics: a message published to a topic reaches all subscribers, in every worker. A topic
 * belongs to its service; other services reach it only through a common Share (duda/scope.h). */
#ifndef DUDA_TOPIC_H
#define DUDA_TOPIC_H

#include <duda/task.h>
#include <duda/websocket.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Limits of topics. */
enum {
    DUDA_TOPIC_NAME_MAX = 64,          /**< bytes of a topic name */
    DUDA_TOPIC_MESSAGE_MAX = 31 << 10, /**< bytes of a message */
    DUDA_TOPIC_QUEUE_MAX = 64,         /**< messages queued per subscriber; the oldest are dropped first */
    DUDA_TOPIC_SUBSCRIPTIONS_MAX =
        1024, /**< topics per WebSocket or handler; limited because topic names may come from clients */
};

/** Subscribes a WebSocket to a topic (a room or channel); closing the WebSocket ends all its subscriptions.
 * Returns 0, -EALREADY (already subscribed), -EINVAL (the name is empty or too long), -EDQUOT (the WebSocket
 * has DUDA_TOPIC_SUBSCRIPTIONS_MAX subscriptions), -ENOMEM, -ECANCELED (the WebSocket is closed). */
MK_API int duda_topic_attach(struct duda_websocket *socket, mk_str topic);
/** Unsubscribes a WebSocket; does nothing if it is not subscribed. */
MK_API void duda_topic_detach(struct duda_websocket *socket, mk_str topic);

/**
 * Publishes a message to a topic (a room or channel): a broadcast to all its subscribers, WebSockets and
 * handlers. Each other worker receives it as one message, and each worker frames it once for all its
 * subscribers. Messages from one worker arrive in order. Returns 0; -EINVAL (invalid name), -EMSGSIZE;
 * -EAGAIN: another worker is so far behind that its subscribers will miss the message; -ENOMEM.
 *
 *     duda_topic_publish(d, MK_STR("news"), MK_WEBSOCKET_TEXT, text);
 */
MK_API int duda_topic_publish(struct duda_ctx *d, mk_str topic, enum mk_websocket_kind kind, mk_str text);
/** Publishes a message from a WebSocket callback. */
MK_API int duda_topic_publish_from(struct duda_websocket *socket, mk_str topic, enum mk_websocket_kind kind,
                                   mk_str text);
/** Publishes a message to all subscribers except this WebSocket, for example a chat message to everyone but
 * its author. Call the function in a handler or in a WebSocket callback. */
MK_API int duda_topic_publish_others(struct duda_websocket *socket, mk_str topic, enum mk_websocket_kind kind,
                                     mk_str text);
/** Publishes a message from any other callback of the event loop, for the service that duda_task_owner()
 * returned. */
MK_API int duda_topic_publish_as(struct mk_worker *worker, const struct duda_service_ref *owner, mk_str topic,
                                 enum mk_websocket_kind kind, mk_str text);
/**
 * Publishes a message that the topic keeps, so that a client that was disconnected can receive it later: see
 * duda_topic_subscribe_after(). The topic drops its oldest messages so that at most `keep` remain; pass the
 * same number with each message of a topic. A subscriber that has not received all dropped messages gets a
 * message with `has_gap`.
 *
 * All workers share the memory for kept messages (`TopicMemory` of [DUDA]), which survives reloads. A topic
 * uses at most a quarter of this memory (or one message), and then drops its oldest messages. If the memory is
 * full, topics of similar size (within a factor of two) compete for it: of the sizes, the one whose topics
 * together use the most memory loses, and among its topics the one that was published to least recently drops
 * its oldest messages. So neither a flood of messages into one topic nor a client that creates many small
 * topics removes the messages of all others.
 *
 * The function stores the message before it delivers it. Returns the results of duda_topic_publish(), but
 * -EAGAIN means that the message was neither stored nor delivered; try again. With `TopicRelay`, Redis keeps
 * the messages until a day after the last one, so the function waits for Redis, and also returns the errors
 * of duda_redis(). -EINVAL: the name is invalid, or `keep` is 0.
 *
 *     int e = duda_topic_publish_kept(d, MK_STR("news"), MK_WEBSOCKET_TEXT, text, 100);
 */
MK_API int duda_topic_publish_kept(struct duda_ctx *d, mk_str topic, enum mk_websocket_kind kind, mk_str text,
                                   uint32_t keep);
/** The number of subscribers in this worker. */
MK_API size_t duda_topic_subscribers(struct duda_ctx *d, mk_str topic);

/** Subscribes the handler itself to a topic, for event streams. The subscription ends when the handler
 * returns. Returns the same results as duda_topic_attach(). */
MK_API int duda_topic_subscribe(struct duda_ctx *d, mk_str topic);
/**
 * Waits for the next message of the handler's topics, for at most `timeout_ms` milliseconds (MK_FOREVER: no
 * limit; 0: does not wait). Returns 0 with *out, valid until the handler returns or calls
 * duda_arena_rewind(); -ETIME: the time limit has passed; -EINVAL: the handler has never subscribed to a
 * topic; -ETIMEDOUT, -ECANCELED, -ENOMEM.
 *
 *     int e = duda_topic_subscribe(d, MK_STR("news"));
 *     size_t mark = duda_arena_mark(d);
 *     while (!e && !(e = duda_topic_receive(d, MK_FOREVER, &text))) {
 *         e = duda_sse_send(d, &(struct mk_sse_event){.name = MK_STR("news"), .data = text});
 *         duda_arena_rewind(d, mark);
 *     }
 */
MK_API int duda_topic_receive(struct duda_ctx *d, uint32_t timeout_ms, mk_str *out) MK_API_MUST_USE;

/**
 * Subscribes the handler to a topic that keeps messages, so that its client misses none. The handler first
 * receives the kept messages after `last_id`, the ID of the last message that its client got, and then all
 * later ones, each once and in order. An absent or empty `last_id` skips the kept messages; "0" selects all
 * of them. If the topic no longer keeps the next message, the handler first receives a message with
 * `has_gap`: the client was disconnected for too long, the handler is too slow, or the server was restarted.
 * Messages that the topic does not keep arrive as with duda_topic_subscribe(). Returns the results of
 * duda_topic_attach(), or -EAGAIN: the kept messages cannot be read now. With `TopicRelay`, this function and
 * the functions that receive messages may wait for Redis, and also return the errors of duda_redis().
 *
 * Browsers send the ID of the last event in `Last-Event-ID` when they reconnect an event stream:
 *
 *     struct duda_topic_message m;
 *     int e = duda_topic_subscribe_after(d, MK_STR("news"), duda_sse_last_id(d));
 *     size_t mark = duda_arena_mark(d);
 *     while (!e && !(e = duda_topic_receive_message(d, MK_FOREVER, &m))) {
 *         mk_str name = m.has_gap ? MK_STR("gap") : MK_STR("news"), data = m.has_gap ? name : m.data;
 *         e = duda_sse_send(d, &(struct mk_sse_event){.id = m.id, .name = name, .data = data});
 *         duda_arena_rewind(d, mark);
 *     }
 */
MK_API int duda_topic_subscribe_after(struct duda_ctx *d, mk_str topic, mk_str last_id) MK_API_MUST_USE;

/** Unsubscribes the handler from a topic. Queued messages remain available. Does nothing if it is not
 * subscribed. */
MK_API void duda_topic_unsubscribe(struct duda_ctx *d, mk_str topic);

/** A message received by a handler. The strings are NUL-terminated. */
struct duda_topic_message {
    mk_str topic, data;
    enum mk_websocket_kind kind;
    uint32_t dropped; /**< number of messages dropped before this one, because the handler did not keep up */
    mk_str id;        /**< ID of a kept message, for duda_topic_subscribe_after(); absent: it is not kept */
    bool has_gap;     /**< instead of a message: kept messages are missing here; `data` is absent */
};
/**
 * Like duda_topic_receive(), for a handler that subscribes to several topics, or that must detect dropped
 * messages and then reload the whole state from its store.
 *
 *     while (!(e = duda_topic_receive_message(d, MK_FOREVER, &m)))
 *         if (m.dropped || mk_str_eq(m.topic, MK_STR("prices")))
 *             ...
 */
MK_API int duda_topic_receive_message_sized(struct duda_ctx *d, uint32_t timeout_ms,
                                            struct duda_topic_message *out, size_t out_size) MK_API_MUST_USE;
static inline MK_API_MUST_USE int duda_topic_receive_message(struct duda_ctx *d, uint32_t timeout_ms,
                                                             struct duda_topic_message *out)
{
    return duda_topic_receive_message_sized(d, timeout_ms, out, sizeof *out);
}

/* ---- For packages: topics across machines ---- */

/** Forwards published messages to other machines. publish() returns 0, or the error that
 * duda_topic_publish() then returns. Called from the event loop. */
struct duda_topic_relay {
    int (*publish)(void *ctx, mk_str message);
    void *ctx;
    /** Stores a message, removes the oldest messages of the topic so that at most `keep` remain, and sends
     * the message to all workers of all machines, including this worker. They deliver it with
     * duda_topic_deliver_kept(). This function and the two functions below may wait. NULL: the relay keeps no
     * messages. */
    int (*publish_kept)(struct duda_ctx *d, void *ctx, mk_str topic, enum mk_websocket_kind kind, mk_str text,
                        uint32_t keep);
    /** Reads the first message after the ID `after`: *id is its ID, and *prev the ID of the message before
     * it. Returns 1; 0: there is no such message, and *id is the ID of the last message; or an error. */
    int (*read_kept)(struct duda_ctx *d, void *ctx, mk_str topic, mk_str after, enum mk_websocket_kind *kind,
                     mk_str *text, mk_str *prev, mk_str *id);
    /** Sets *id to the ID of the last message; "0": the topic has no messages. Returns 0 or an error. */
    int (*last_kept)(struct duda_ctx *d, void *ctx, mk_str topic, mk_str *id);
    uint64_t reserved[2]; /**< must be zero */
};
/** Sets the relay of this worker; NULL removes it. The relay must live as long as it is set. -EINVAL: Duda
 * does not run in this worker. */
MK_API int duda_topic_set_relay(struct mk_worker *worker, const struct duda_topic_relay *relay);
/** Delivers a message that was published on another machine to the subscribers in this worker. Invalid
 * messages are ignored. */
MK_API void duda_topic_deliver(struct mk_worker *worker, mk_str message);
/** Delivers a kept message: `id` is its ID, and `prev` the ID of the message before it. IDs have the form
 * "NUMBER-NUMBER", and increase within a topic. */
MK_API void duda_topic_deliver_kept(struct mk_worker *worker, mk_str topic, enum mk_websocket_kind kind,
                                    mk_str text, mk_str prev, mk_str id);
/** Makes the subscribers in this worker read the kept messages that they may have missed: call it when the
 * connection to other machines is restored. */
MK_API void duda_topic_resync(struct mk_worker *worker);

#ifdef __cplusplus
}
#endif

#endif

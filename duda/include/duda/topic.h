/* SPDX-License-Identifier: Apache-2.0 */
/* Publish/subscribe topics: a message published to a topic reaches all subscribers, in every worker. A topic
 * belongs to its service; other services reach it only through a common Share (duda/scope.h). */
#ifndef DUDA_TOPIC_H
#define DUDA_TOPIC_H

#include <duda/task.h>
#include <duda/websocket.h>

/* C++ code can use the macros of this header, but C++ compilers warn about designated initializers that omit
 * members, although omitted members are zero. */
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC system_header
#endif

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
    DUDA_TOPIC_KEEP_S_MAX = 10 * 365 * 86400, /**< maximum of `keep_s`: ten years */
};

/** A topic, also called a room or channel. DUDA_TOPIC() defines it, or duda_topic_named() returns it; the
 * macro sets the members before the options. */
struct duda_topic {
    size_t size; /**< sizeof(struct duda_topic) when the service was compiled */
    mk_str name; /**< name of the topic, or the beginning of the names of a family */
    const char *file;
    int line;
    bool is_family; /**< the name of the topic is `name` and `key` */
    mk_str key;     /**< set by duda_topic_named() */
    /* Options: */
    /** Kind of all messages; 0: MK_WEBSOCKET_TEXT. */
    enum mk_websocket_kind kind;
    /** How many of its latest messages the topic keeps, so that a client that was disconnected can receive
     * them later: see duda_topic_subscribe_after() and duda_topic_attach_after(). 0: none. */
    uint32_t keep;
    /** How many seconds the topic keeps a message, at most DUDA_TOPIC_KEEP_S_MAX. 0: until newer messages
     * replace it, or, with `TopicRelay`, until a day after the last message. */
    uint32_t keep_s;
    /** Counts the subscribers, for duda_topic_subscribers(). */
    bool counts_subscribers;
};
/** Topics with the same options, whose names begin with the same text. */
struct duda_topic_family {
    struct duda_topic topic;
};

/* clang-format off */
/**
 * Defines a topic at the top of a source file: a variable, the name of the topic (a string literal), and
 * options, which are members of struct duda_topic. All publishers and subscribers use this definition.
 * Another source file of the service uses the topic after DUDA_TOPIC_DECLARE(). A topic belongs to its
 * service. Services with a common `Share` have common topics: each service defines them, with the same
 * options. The server does not start if two definitions of a topic differ, or if a service defines a topic
 * twice.
 *
 *     DUDA_TOPIC(news, "news", .keep = 100, .keep_s = 3600);
 *     DUDA_TOPIC(frames, "frames", .kind = MK_WEBSOCKET_BINARY);
 */
#define DUDA_TOPIC(variable, ...) DUDA_TOPIC_ENTRY(variable, __VA_ARGS__, )
/** Implementation of DUDA_TOPIC(). The section lists the topics of all source files of the service. */
#define DUDA_TOPIC_ENTRY(variable, name_, ...)                                                               \
    DUDA_TOPIC_DECLARE(variable);                                                                            \
    const struct duda_topic variable = {.size = sizeof(struct duda_topic), .name = MK_STR_INIT(name_),       \
                                        .file = __FILE__, .line = __LINE__, __VA_ARGS__};                    \
    __attribute__((used, section("duda_topics"))) static const struct duda_topic *const                      \
        duda_topic_##variable = &variable
/**
 * Defines a family of topics, such as the rooms of a chat: like DUDA_TOPIC(), but the text is the beginning
 * of the names, and duda_topic_named() returns one topic of the family.
 *
 *     DUDA_TOPIC_FAMILY(rooms, "room/", .keep = 20);
 */
#define DUDA_TOPIC_FAMILY(variable, ...) DUDA_TOPIC_FAMILY_ENTRY(variable, __VA_ARGS__, )
/** Implementation of DUDA_TOPIC_FAMILY(). */
#define DUDA_TOPIC_FAMILY_ENTRY(variable, name_, ...)                                                        \
    DUDA_TOPIC_FAMILY_DECLARE(variable);                                                                     \
    const struct duda_topic_family variable = {{.size = sizeof(struct duda_topic),                           \
                                                .name = MK_STR_INIT(name_), .file = __FILE__,                \
                                                .line = __LINE__, .is_family = true, __VA_ARGS__}};          \
    __attribute__((used, section("duda_topics"))) static const struct duda_topic *const                      \
        duda_topic_##variable = &variable.topic
/* clang-format on */
/** Declares a topic, or a family of topics, that another source file of the service defines. Put the
 * declaration into a header that both files include. */
#define DUDA_TOPIC_DECLARE(variable)                                                                         \
    extern __attribute__((visibility("hidden"))) const struct duda_topic variable
#define DUDA_TOPIC_FAMILY_DECLARE(variable)                                                                  \
    extern __attribute__((visibility("hidden"))) const struct duda_topic_family variable

/**
 * Returns the topic of the family whose name ends in `key`. The key may come from a client; it is not copied.
 * Functions that get the topic return -EINVAL if the key is empty, or too long for DUDA_TOPIC_NAME_MAX.
 *
 *     struct duda_topic room = duda_topic_named(&rooms, duda_param(d, "room"));
 *     int e = duda_topic_publish(d, &room, text);
 */
static inline struct duda_topic duda_topic_named(const struct duda_topic_family *family, mk_str key)
{
    struct duda_topic topic = family->topic;
    topic.key = key;
    return topic;
}

/**
 * Subscribes a WebSocket to a topic: its client then receives each message of the topic. Closing the
 * WebSocket ends all its subscriptions. Returns 0, -EALREADY (already subscribed, or subscribed to any topic
 * with duda_topic_attach_after()), -EINVAL (invalid name), -EDQUOT (the WebSocket has
 * DUDA_TOPIC_SUBSCRIPTIONS_MAX subscriptions), -ENOMEM, -ECANCELED (the WebSocket is closed).
 *
 *     e = duda_websocket_open(d, NULL, NULL, &socket);
 *     e = e ? e : duda_topic_attach(socket, &news);
 *     while (!e && (e = duda_websocket_receive(d, socket, &message)) > 0)
 *         e = duda_topic_publish(d, &news, message.data);
 *     return e;
 */
MK_API int duda_topic_attach(struct duda_websocket *socket, const struct duda_topic *topic);
/**
 * Subscribes a WebSocket to a topic that keeps messages, so that its client misses none. Call it in the
 * handler that has opened the WebSocket. It sends the kept messages after `last_id`, the ID of the last
 * message that the client got, and waits while the client reads too slowly; an absent or empty `last_id`
 * skips the kept messages, and "0" selects all of them. All later messages follow, each once and in order.
 * Each message to the client begins with a line that contains a word and an ID:
 *
 * - `start ID`: the first line, if there is no `last_id`; no data follows
 * - `message ID`: a message of the topic; its data follows the line
 * - `gap ID`: messages are missing here; no data follows
 *
 * A client that reconnects passes the ID of the last line. Browsers cannot set headers of WebSockets, so the
 * client sends the ID as a query parameter:
 *
 *     struct duda_websocket *s;
 *     int e = duda_websocket_open(d, NULL, NULL, &s);
 *     e = e ? e : duda_topic_attach_after(d, s, &news, duda_query(d, "last_event_id"));
 *
 * If the client reads too slowly (regardless of `slow`), or the server could not receive a message from
 * another worker or machine, the server closes the WebSocket with code 1013 (try again later), and the client
 * gets the messages when it reconnects. The lines do not name the topic, so a WebSocket cannot be subscribed
 * to another topic at the same time. Returns the results of duda_topic_attach() and
 * duda_topic_subscribe_after(). -EALREADY: the WebSocket has a subscription, to this or another topic;
 * -ECANCELED: the WebSocket was closed; do not use it anymore.
 */
MK_API int duda_topic_attach_after(struct duda_ctx *d, struct duda_websocket *socket,
                                   const struct duda_topic *topic, mk_str last_id) MK_API_MUST_USE;
/**
 * Unsubscribes a WebSocket; does nothing if it is not subscribed.
 *
 *     duda_topic_detach(socket, &news); // leaves the room, and stays connected
 */
MK_API void duda_topic_detach(struct duda_websocket *socket, const struct duda_topic *topic);

/**
 * Publishes a message to a topic: a broadcast to all its subscribers, WebSockets and handlers. Each other
 * worker receives it as one message, and each worker frames it once for all its subscribers. Messages from
 * one worker arrive in order. Returns 0; -EINVAL (invalid name), -EMSGSIZE; -EBADMSG: a message of kind
 * MK_WEBSOCKET_TEXT is not UTF-8; -EAGAIN: another worker is so far behind that its subscribers will miss the
 * message; -ENOMEM.
 *
 *     int e = duda_topic_publish(d, &news, text);
 *
 * A topic with `.keep` stores the message before it delivers it, and drops its oldest messages so that at
 * most `.keep` remain. A subscriber that has not received all dropped messages gets a message with `has_gap`.
 * For such a topic, -EAGAIN means that the message was neither stored nor delivered; try again. With
 * `TopicRelay`, Redis keeps the messages, so the function waits for Redis, and also returns the errors of
 * duda_redis().
 *
 * All workers share the memory for kept messages (`TopicMemory` of [DUDA]), which survives reloads. A topic
 * uses at most a quarter of this memory (or one message), and then drops its oldest messages. If the memory
 * is full, Duda groups the topics by size (within a factor of two) and selects the group that uses the most
 * memory in total; in this group, the topic whose last message is the oldest drops its oldest messages.
 * Neither a flood of messages to one topic nor a client that creates many small topics can therefore evict
 * the messages of all other topics.
 */
MK_API int duda_topic_publish(struct duda_ctx *d, const struct duda_topic *topic, mk_str data);
/** Publishes a message from a WebSocket callback. -ENOTSUP: Redis keeps the messages of the topic, for which
 * callbacks cannot wait. */
MK_API int duda_topic_publish_from(struct duda_websocket *socket, const struct duda_topic *topic,
                                   mk_str data);
/**
 * Publishes a message to all subscribers except this WebSocket, for example a chat message to everyone but
 * its author. Call the function in a handler or in a WebSocket callback. -EINVAL: also for topics that keep
 * messages, because everyone can read them.
 *
 *     e = duda_topic_publish_others(socket, &news, MK_STR("ana is typing"));
 */
MK_API int duda_topic_publish_others(struct duda_websocket *socket, const struct duda_topic *topic,
                                     mk_str data);
/** Publishes a message from any other callback of the event loop, for the service that duda_task_owner()
 * returned. Returns the same results as duda_topic_publish_from(). */
MK_API int duda_topic_publish_as(struct mk_worker *worker, const struct duda_service_ref *owner,
                                 const struct duda_topic *topic, mk_str data);
/**
 * Sets *n to the number of subscribers (handlers and WebSockets) of a topic with `.counts_subscribers`, for
 * example to show how many users are online (presence). The number covers all workers of this server,
 * including workers that drain after a reload; the subscribers of a worker that crashes are no longer
 * counted. Each worker counts at most 4,096 topics. With `TopicRelay`, the number also includes all other
 * servers of the relay, with a delay of about half a second; a server that stops or crashes disappears after
 * 30 seconds. The function then waits for Redis. Returns 0; -EINVAL: invalid name, or the topic does not
 * count its subscribers; or an error of duda_redis().
 *
 *     uint64_t n;
 *     int e = duda_topic_subscribers(d, &news, &n);
 *     return e ? e : duda_printf(d, "%llu online\n", (unsigned long long)n);
 */
MK_API int duda_topic_subscribers(struct duda_ctx *d, const struct duda_topic *topic,
                                  uint64_t *n) MK_API_MUST_USE;

/** Subscribes the handler itself to a topic, for event streams. The subscription ends when the handler
 * returns. Returns the same results as duda_topic_attach(). */
MK_API int duda_topic_subscribe(struct duda_ctx *d, const struct duda_topic *topic);
/**
 * Waits for the next message of the handler's topics, for at most `timeout_ms` milliseconds (MK_FOREVER: no
 * limit; 0: does not wait). Returns 0 with *out, valid until the handler returns or calls
 * duda_arena_rewind(); -ETIME: the time limit has passed; -EINVAL: the handler has never subscribed to a
 * topic; -ETIMEDOUT, -ECANCELED, -ENOMEM.
 *
 *     int e = duda_topic_subscribe(d, &news);
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
 * Returns the results of duda_topic_attach(); -EAGAIN: the kept messages cannot be read now; -EINVAL: also
 * for a topic without `.keep`. With `TopicRelay`, this function and the functions that receive messages may
 * wait for Redis, and also return the errors of duda_redis().
 *
 * Browsers send the ID of the last event in `Last-Event-ID` when they reconnect an event stream:
 *
 *     struct duda_topic_message m;
 *     int e = duda_topic_subscribe_after(d, &news, duda_sse_last_id(d));
 *     size_t mark = duda_arena_mark(d);
 *     while (!e && !(e = duda_topic_receive_message(d, MK_FOREVER, &m))) {
 *         mk_str name = m.has_gap ? MK_STR("gap") : MK_STR("news"), data = m.has_gap ? name : m.data;
 *         e = duda_sse_send(d, &(struct mk_sse_event){.id = m.id, .name = name, .data = data});
 *         duda_arena_rewind(d, mark);
 *     }
 */
MK_API int duda_topic_subscribe_after(struct duda_ctx *d, const struct duda_topic *topic,
                                      mk_str last_id) MK_API_MUST_USE;

/**
 * Unsubscribes the handler from a topic. Queued messages remain available. Does nothing if it is not
 * subscribed.
 *
 *     duda_topic_unsubscribe(d, &news);
 */
MK_API void duda_topic_unsubscribe(struct duda_ctx *d, const struct duda_topic *topic);

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

/** The number of subscribers of a topic on this machine. */
struct duda_topic_count {
    mk_str topic;
    uint64_t n;
};
/** Forwards published messages to other machines. publish() returns 0, or the error that
 * duda_topic_publish() then returns. Called from the event loop. */
struct duda_topic_relay {
    int (*publish)(void *ctx, mk_str message);
    void *ctx;
    /** Stores a message, removes the oldest messages of the topic so that at most `keep` remain, and those
     * that are older than `keep_s` seconds (0: a day), and sends the message to all workers of all machines,
     * including this worker. They deliver it with duda_topic_deliver_kept(). This function and the two
     * functions below may wait. NULL: the relay keeps no messages. */
    int (*publish_kept)(struct duda_ctx *d, void *ctx, mk_str topic, enum mk_websocket_kind kind, mk_str text,
                        uint32_t keep, uint32_t keep_s);
    /** Reads the first message after the ID `after` that is not older than `keep_s` seconds (0: of any age):
     * *id is its ID, and *prev the ID of the message before it. Returns 1; 0: there is no such message, and
     * *id is the ID of the last message; or an error. */
    int (*read_kept)(struct duda_ctx *d, void *ctx, mk_str topic, mk_str after, uint32_t keep_s,
                     enum mk_websocket_kind *kind, mk_str *text, mk_str *prev, mk_str *id);
    /** Sets *id to the ID of the last message; "0": the topic has no messages. Returns 0 or an error. */
    int (*last_kept)(struct duda_ctx *d, void *ctx, mk_str topic, mk_str *id);
    /** Announces to other machines the numbers of subscribers on this machine of `n` topics. Each worker
     * calls it for the topics of its own subscribers: after changes, and again every 10 seconds. This
     * function and the next one may wait, and return 0 or an error. NULL: the relay does not count
     * subscribers. */
    int (*announce_subscribers)(struct duda_ctx *d, void *ctx, const struct duda_topic_count *counts,
                                size_t n);
    /** Sets *n to the number of subscribers of a topic on the other machines. NULL if announce_subscribers is
     * NULL. */
    int (*count_subscribers)(struct duda_ctx *d, void *ctx, mk_str topic, uint64_t *n);
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

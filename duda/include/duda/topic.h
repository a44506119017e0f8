/* SPDX-License-Identifier: Apache-2.0 */
/* Rooms: what one says all members hear, whichever worker serves them. A room belongs to its service: others have
 * rooms of their own, whatever their names, unless they have a Share (duda/scope.h). */
#ifndef DUDA_TOPIC_H
#define DUDA_TOPIC_H

#include <duda/task.h>
#include <duda/websocket.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Limits of rooms. */
enum {
    DUDA_TOPIC_NAME_MAX = 64,          /**< bytes of a room's name */
    DUDA_TOPIC_MESSAGE_MAX = 31 << 10, /**< bytes of a message */
    DUDA_TOPIC_QUEUE_MAX = 64,         /**< messages that wait for a listener; then the oldest is dropped */
    DUDA_TOPIC_SUBSCRIPTIONS_MAX =
        1024, /**< rooms that one socket or one handler is in: its client may name them */
};

/** The socket hears what is said in the room; it leaves all rooms when it closes. 0, -EALREADY (it is a
 * member), -EINVAL (the name is empty or too long), -EDQUOT (it is in DUDA_TOPIC_SUBSCRIPTIONS_MAX rooms), -ENOMEM,
 * -ECANCELED (it is closed). */
MK_API int duda_topic_attach(struct duda_websocket *s, mk_str room);
/** Harmless when it is not a member. */
MK_API void duda_topic_detach(struct duda_websocket *s, mk_str room);

/**
 * Says something to all members: framed once for those of a worker, and sent to the other workers as one
 * message. Members hear what one worker says in its order. 0; -EINVAL (the name), -EMSGSIZE; -EAGAIN: another
 * worker is so far behind that its members miss it; -ENOMEM.
 *
 *     duda_topic_publish(d, MK_STR("news"), MK_WEBSOCKET_TEXT, text);
 */
MK_API int duda_topic_publish(struct duda_ctx *d, mk_str room, enum mk_websocket_kind kind, mk_str text);
/** The same from a callback of a socket. */
MK_API int duda_topic_publish_from(struct duda_websocket *s, mk_str room, enum mk_websocket_kind kind,
                                   mk_str text);
/** The same from any other callback of the loop, for the service that duda_task_owner() has told. */
MK_API int duda_topic_publish_as(struct mk_worker *worker, const struct duda_service_ref *owner, mk_str room,
                                 enum mk_websocket_kind kind, mk_str text);
/** How many members it has in this worker. */
MK_API size_t duda_topic_subscribers(struct duda_ctx *d, mk_str room);

/** The handler hears the room, too: for event streams. It leaves when it returns. Results as of
 * duda_topic_attach(). */
MK_API int duda_topic_subscribe(struct duda_ctx *d, mk_str room);
/**
 * Waits for the next message of the rooms that the handler listens to, at most `ms` (0: without limit). 0
 * with *out, which lives until the handler returns or duda_arena_rewind(); -ETIMEDOUT, -ECANCELED, -ENOMEM.
 *
 *     int e = duda_topic_subscribe(d, MK_STR("news"));
 *     size_t mark = duda_arena_mark(d);
 *     while (!e && !(e = duda_topic_receive(d, 0, &text)) && !(e = duda_sse_send(d, "news", text, NULL)))
 *         duda_arena_rewind(d, mark);
 */
MK_API int duda_topic_receive(struct duda_ctx *d, uint32_t ms, mk_str *out) MK_API_MUST_USE;

/** The handler does not hear the room any more. What it has not taken yet is still there. Harmless when it
 * does not listen. */
MK_API void duda_topic_unsubscribe(struct duda_ctx *d, mk_str room);

/** A message, as a handler hears it. A NUL follows both texts. */
struct duda_topic_message {
    mk_str room, text;
    enum mk_websocket_kind kind;
    uint32_t missed; /**< so many before it were dropped, because the handler was too slow */
};
/**
 * As duda_topic_receive(), for a handler that listens to several rooms, or that must know when it has missed
 * something: then it reads the whole state again, from where it is kept.
 *
 *     while (!(e = duda_topic_receive_message(d, 0, &m)))
 *         if (m.missed || mk_str_eq(m.room, MK_STR("prices")))
 *             ...
 */
MK_API int duda_topic_receive_message(struct duda_ctx *d, uint32_t ms,
                                      struct duda_topic_message *out) MK_API_MUST_USE;

/* ---- For packages: rooms over several machines ---- */

/** Carries what is said to other machines. 0, or what duda_topic_publish() then answers. Called in the loop. */
struct duda_topic_relay {
    int (*say)(void *ctx, mk_str message);
    void *ctx;
};
/** From now on, in this worker; NULL: not any more. It must live as long as it is set. -EINVAL: the worker
 * has no Duda. */
MK_API int duda_topic_set_relay(struct mk_worker *worker, const struct duda_topic_relay *relay);
/** What say() was given on another machine: the members in this worker hear it. Anything else is ignored. */
MK_API void duda_topic_deliver(struct mk_worker *worker, mk_str message);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Rooms: what one says all members hear, whichever worker serves them. A room belongs to its service: others have
 * rooms of their own, whatever their names, unless they have a Share (duda/scope.h). */
#ifndef DUDA_ROOM_H
#define DUDA_ROOM_H

#include <duda/errand.h>
#include <duda/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Limits of rooms. */
enum {
    DUDA_ROOM_NAME = 64,          /**< bytes of a room's name */
    DUDA_ROOM_MESSAGE = 31 << 10, /**< bytes of a message */
    DUDA_ROOM_WAITING = 64,       /**< messages that wait for a listener; then the oldest is dropped */
    DUDA_ROOM_MEMBERSHIPS = 1024, /**< rooms that one socket or one handler is in: its client may name them */
};

/** The socket hears what is said in the room; it leaves all rooms when it closes. 0, -EALREADY (it is a
 * member), -EINVAL (the name is empty or too long), -EDQUOT (it is in DUDA_ROOM_MEMBERSHIPS rooms), -ENOMEM,
 * -ECANCELED (it is closed). */
MK_API int duda_room_join(struct duda_socket *s, mk_str room);
/** Harmless when it is not a member. */
MK_API void duda_room_leave(struct duda_socket *s, mk_str room);

/**
 * Says something to all members: framed once for those of a worker, and sent to the other workers as one
 * message. Members hear what one worker says in its order. 0; -EINVAL (the name), -EMSGSIZE; -EAGAIN: another
 * worker is so far behind that its members miss it; -ENOMEM.
 *
 *     duda_room_say(d, MK_STR("news"), MK_WEBSOCKET_TEXT, text);
 */
MK_API int duda_room_say(struct duda *d, mk_str room, enum mk_websocket_kind kind, mk_str text);
/** The same from a callback of a socket. */
MK_API int duda_room_say_from(struct duda_socket *s, mk_str room, enum mk_websocket_kind kind, mk_str text);
/** The same from any other callback of the loop, for the service that duda_errand_owner() has told. */
MK_API int duda_room_say_as(struct mk_worker *worker, const struct duda_owner *owner, mk_str room,
                            enum mk_websocket_kind kind, mk_str text);
/** How many members it has in this worker. */
MK_API size_t duda_room_members(struct duda *d, mk_str room);

/** The handler hears the room, too: for event streams. It leaves when it returns. Results as of
 * duda_room_join(). */
MK_API int duda_room_listen(struct duda *d, mk_str room);
/**
 * Waits for the next message of the rooms that the handler listens to, at most `ms` (0: without limit). 0
 * with *out, which lives until the handler returns or duda_release(); -ETIMEDOUT, -ECANCELED, -ENOMEM.
 *
 *     int e = duda_room_listen(d, MK_STR("news"));
 *     size_t mark = duda_mark(d);
 *     while (!e && !(e = duda_room_hear(d, 0, &text)) && !(e = duda_event(d, "news", text, NULL)))
 *         duda_release(d, mark);
 */
MK_API int duda_room_hear(struct duda *d, uint32_t ms, mk_str *out) MK_API_MUST_USE;

/** The handler does not hear the room any more. What it has not taken yet is still there. Harmless when it
 * does not listen. */
MK_API void duda_room_quit(struct duda *d, mk_str room);

/** A message, as a handler hears it. A NUL follows both texts. */
struct duda_room_message {
    mk_str room, text;
    enum mk_websocket_kind kind;
    uint32_t missed; /**< so many before it were dropped, because the handler was too slow */
};
/**
 * As duda_room_hear(), for a handler that listens to several rooms, or that must know when it has missed
 * something: then it reads the whole state again, from where it is kept.
 *
 *     while (!(e = duda_room_next(d, 0, &m)))
 *         if (m.missed || mk_str_eq(m.room, MK_STR("prices")))
 *             ...
 */
MK_API int duda_room_next(struct duda *d, uint32_t ms, struct duda_room_message *out) MK_API_MUST_USE;

/* ---- For packages: rooms over several machines ---- */

/** Carries what is said to other machines. 0, or what duda_room_say() then answers. Called in the loop. */
struct duda_room_relay {
    int (*say)(void *ctx, mk_str message);
    void *ctx;
};
/** From now on, in this worker; NULL: not any more. It must live as long as it is set. -EINVAL: the worker
 * has no Duda. */
MK_API int duda_room_set_relay(struct mk_worker *worker, const struct duda_room_relay *relay);
/** What say() was given on another machine: the members in this worker hear it. Anything else is ignored. */
MK_API void duda_room_relayed(struct mk_worker *worker, mk_str message);

#ifdef __cplusplus
}
#endif

#endif

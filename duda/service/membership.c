/* SPDX-License-Identifier: Apache-2.0 */
#include "service/membership.h"

#include <duda/scope.h>
#include <errno.h>
#include <monkey/clock.h>

#include "service/home.h"
#include "service/socket_type.h"

/* ---- Members ---- */

/* "SCOPE:ROOM". */
struct full_name {
    char room[DUDA_SCOPE_MAX + 1 + DUDA_ROOM_NAME];
};
_Static_assert(sizeof(struct full_name) <= INT8_MAX, "its length is a byte of a message");

/* duda_scope_add() for each message that is published. Absent: the name is empty or too long. */
static mk_str bind_name(mk_str scope, mk_str room, struct full_name *full)
{
    if (room.len == 0 || room.len > DUDA_ROOM_NAME || scope.len > DUDA_SCOPE_MAX)
        return MK_ABSENT;
    char *separator = full->room + scope.len;
    if (scope.len)
        memcpy(full->room, scope.p, scope.len);
    *separator = ':';
    memcpy(separator + 1, room.p, room.len);
    return mk_str_of(full->room, scope.len + 1 + room.len);
}

mk_str duda_membership_name(mk_str scope, mk_str full_name)
{
    return mk_str_skip(full_name, scope.len + 1);
}

static struct duda_guest **find(struct duda_guest **list, mk_str room)
{
    while (*list && !mk_str_eq(duda_rooms_name(*list), room))
        list = &(*list)->sibling;
    return list;
}

static size_t count(const struct duda_guest *list)
{
    size_t n = 0;
    for (; list; list = list->sibling)
        n++;
    return n;
}

int duda_membership_begin(struct duda_hall hall, struct duda_guest **list, mk_str own_name, void *owner,
                          void (*hear)(void *owner, struct duda_news *news))
{
    struct duda_home *home = hall.home;
    struct full_name full;
    mk_str room = bind_name(hall.scope, own_name, &full);
    if (!room.p)
        return -EINVAL;
    if (*find(list, room))
        return -EALREADY;
    if (count(*list) == DUDA_ROOM_MEMBERSHIPS)
        return -EDQUOT;
    if (!home->rooms)
        home->rooms = duda_rooms_new();
    struct duda_guest *m = home->rooms ? mk_mem_zalloc(1, sizeof *m) : NULL;
    if (!m)
        return -ENOMEM;
    m->owner = owner;
    m->hear = hear;
    int e = duda_rooms_enter(home->rooms, room, m);
    if (e) {
        mk_mem_free(m);
        return e;
    }
    m->sibling = *list;
    *list = m;
    return 0;
}

static void take_out(struct duda_home *home, struct duda_guest **at)
{
    struct duda_guest *m = *at;
    *at = m->sibling;
    duda_rooms_leave(home->rooms, m);
    mk_mem_free(m);
}

void duda_membership_leave(struct duda_hall hall, struct duda_guest **list, mk_str room)
{
    struct full_name full;
    struct duda_guest **at = find(list, bind_name(hall.scope, room, &full));
    if (*at)
        take_out(hall.home, at);
}

void duda_membership_end(struct duda_home *home, struct duda_guest **list)
{
    while (*list)
        take_out(home, list);
}

size_t duda_room_members(struct duda *d, mk_str room)
{
    struct full_name full;
    mk_str name = bind_name(duda_scope(d), room, &full);
    return d->home->rooms && name.p ? duda_rooms_count(d->home->rooms, name) : 0;
}

/* ---- Saying ---- */

/* A message to another worker: kind, length of the name, name, text. */
static void write_message(struct mk_buf *out, mk_str room, enum mk_websocket_kind kind, mk_str text)
{
    mk_buf_add_char(out, (char)kind);
    mk_buf_add_char(out, (char)room.len);
    mk_buf_add(out, room);
    mk_buf_add(out, text);
}

void duda_membership_hear(struct duda_home *home, mk_str message)
{
    if (!home->rooms || message.len < 2 || message.len - 2 < (size_t)message.p[1])
        return;
    mk_str rest = mk_str_skip(message, 2), name = mk_str_first(rest, (size_t)message.p[1]);
    duda_rooms_tell(home->rooms, name,
                    message.p[0] == MK_WEBSOCKET_BINARY ? MK_WEBSOCKET_BINARY : MK_WEBSOCKET_TEXT,
                    mk_str_skip(rest, name.len));
}

static int send_to_others(struct mk_worker *worker, mk_str message)
{
    int result = 0;
    for (unsigned i = 0; i < mk_worker_count(worker); i++) {
        int e =
            i == mk_worker_index(worker) ? 0 : mk_worker_send(worker, duda_home_plugin(), (int)i, message);
        if (e && e != -ENOTCONN)
            result = e;
    }
    return result;
}

static int say(struct duda_hall hall, mk_str own_name, enum mk_websocket_kind kind, mk_str text)
{
    struct duda_home *home = hall.home;
    struct mk_worker *worker = home->worker;
    struct full_name full;
    mk_str room = bind_name(hall.scope, own_name, &full);
    if (!room.p)
        return -EINVAL;
    if (text.len > DUDA_ROOM_MESSAGE)
        return -EMSGSIZE;
    if (home->rooms)
        duda_rooms_tell(home->rooms, room, kind, text);
    if (mk_worker_count(worker) < 2 && !home->relay)
        return 0;
    struct mk_buf message = mk_buf_growing(DUDA_ROOM_MESSAGE + sizeof full + 2);
    write_message(&message, room, kind, text);
    int e = message.failed ? -ENOMEM : send_to_others(worker, mk_buf_str(&message));
    if (home->relay && !message.failed) {
        int far = home->relay->say(home->relay->ctx, mk_buf_str(&message));
        e = e ? e : far;
    }
    mk_buf_free(&message);
    return e;
}

static int say_and_count(struct duda_hall hall, mk_str room, enum mk_websocket_kind kind, mk_str text)
{
    uint64_t begun = mk_clock_us();
    mk_meter_begin(hall.home->said);
    int e = say(hall, room, kind, text);
    mk_meter_end(hall.home->said, mk_clock_us() - begun, e < 0);
    return e;
}

int duda_room_say(struct duda *d, mk_str room, enum mk_websocket_kind kind, mk_str text)
{
    return say_and_count((struct duda_hall){d->home, duda_scope(d)}, room, kind, text);
}

int duda_room_say_from(struct duda_socket *s, mk_str room, enum mk_websocket_kind kind, mk_str text)
{
    return say_and_count((struct duda_hall){s->home, duda_scope_of(s->owner)}, room, kind, text);
}

int duda_room_say_as(struct mk_worker *worker, const struct duda_owner *owner, mk_str room,
                     enum mk_websocket_kind kind, mk_str text)
{
    struct duda_home *home = duda_home(worker);
    return home ? say_and_count((struct duda_hall){home, duda_scope_of(owner)}, room, kind, text) : -EINVAL;
}

/* ---- Other machines ---- */

int duda_room_set_relay(struct mk_worker *worker, const struct duda_room_relay *relay)
{
    struct duda_home *home = duda_home(worker);
    if (home)
        home->relay = relay;
    return home ? 0 : -EINVAL;
}

void duda_room_relayed(struct mk_worker *worker, mk_str message)
{
    struct duda_home *home = duda_home(worker);
    if (home)
        duda_membership_hear(home, message);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "service/membership.h"

#include <errno.h>
#include <time.h>

#include "service/home.h"

/* ---- Members ---- */

static struct duda_guest **find(struct duda_guest **list, mk_str room)
{
    while (*list && !mk_str_eq(duda_rooms_name(*list), room))
        list = &(*list)->sibling;
    return list;
}

int duda_membership_begin(struct duda_home *home, struct duda_guest **list, mk_str room, void *owner,
                          void (*hear)(void *owner, struct duda_news *news))
{
    if (*find(list, room))
        return -EALREADY;
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

void duda_membership_leave(struct duda_home *home, struct duda_guest **list, mk_str room)
{
    struct duda_guest **at = find(list, room);
    if (*at)
        take_out(home, at);
}

void duda_membership_end(struct duda_home *home, struct duda_guest **list)
{
    while (*list)
        take_out(home, list);
}

size_t duda_room_members(struct mk_worker *worker, mk_str room)
{
    const struct duda_home *home = duda_home(worker);
    return home && home->rooms ? duda_rooms_count(home->rooms, room) : 0;
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

static int say(struct mk_worker *worker, struct duda_home *home, mk_str room, enum mk_websocket_kind kind,
               mk_str text)
{
    if (room.len == 0 || room.len > DUDA_ROOM_NAME)
        return -EINVAL;
    if (text.len > DUDA_ROOM_MESSAGE)
        return -EMSGSIZE;
    if (home->rooms)
        duda_rooms_tell(home->rooms, room, kind, text);
    if (mk_worker_count(worker) < 2 && !home->relay)
        return 0;
    struct mk_buf message = mk_buf_growing(DUDA_ROOM_MESSAGE + DUDA_ROOM_NAME + 2);
    write_message(&message, room, kind, text);
    int e = message.failed ? -ENOMEM : send_to_others(worker, mk_buf_str(&message));
    if (home->relay && !message.failed) {
        int far = home->relay->say(home->relay->ctx, mk_buf_str(&message));
        e = e ? e : far;
    }
    mk_buf_free(&message);
    return e;
}

static uint64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

int duda_room_say(struct mk_worker *worker, mk_str room, enum mk_websocket_kind kind, mk_str text)
{
    struct duda_home *home = duda_home(worker);
    if (!home)
        return -EINVAL;
    uint64_t begun = now_us();
    mk_meter_begin(home->said);
    int e = say(worker, home, room, kind, text);
    mk_meter_end(home->said, now_us() - begun, e < 0);
    return e;
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

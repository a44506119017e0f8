/* SPDX-License-Identifier: Apache-2.0 */
/* The rooms of a worker: names with members of any kind. It must not know what members do with what they
 * hear. */
#ifndef DUDA_SERVICE_ROOMS_H
#define DUDA_SERVICE_ROOMS_H

#include <duda/room.h>

struct duda_rooms;

/* What was said. The frame is made when the first member wants it. */
struct duda_news {
    mk_str room, text;
    enum mk_websocket_kind kind;
    struct mk_websocket_message *framed;
};

/* Hears one room, for `owner`. */
struct duda_guest {
    struct duda_guest *next, **at; /* in the room */
    struct duda_guest *sibling;    /* of the same owner; the owner's */
    struct duda_room *room;
    void *owner;
    void (*hear)(void *owner, struct duda_news *news); /* may take out members, its own too */
};

struct duda_rooms *duda_rooms_new(void);
/* All members have left. */
void duda_rooms_free(struct duda_rooms *r);

/* 0 or -ENOMEM. The member is the caller's. */
int duda_rooms_enter(struct duda_rooms *r, mk_str name, struct duda_guest *m);
void duda_rooms_leave(struct duda_rooms *r, struct duda_guest *m);
mk_str duda_rooms_name(const struct duda_guest *m);

/* Tells all members here. */
void duda_rooms_tell(struct duda_rooms *r, mk_str name, enum mk_websocket_kind kind, mk_str text);
size_t duda_rooms_count(const struct duda_rooms *r, mk_str name);

#endif

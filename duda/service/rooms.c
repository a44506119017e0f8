/* SPDX-License-Identifier: Apache-2.0 */
#include "service/rooms.h"

#include <errno.h>
#include <monkey/mem.h>
#include <monkey/text.h>

enum { BUCKETS_MIN = 16 };

struct duda_room {
    struct duda_room *next;
    uint64_t hash;
    struct duda_guest *members;
    size_t n;
    bool is_told; /* it stays while its members are told, even if all leave */
    size_t len;
    char name[];
};

/* The next one that is told something. Who hears it may tell another room. */
struct cursor {
    struct duda_guest **next;
    struct cursor *outer;
};

struct duda_rooms {
    struct mk_hash_key key; /* clients may choose names */
    struct duda_room **buckets;
    size_t n, n_buckets; /* a power of two */
    struct cursor *telling;
};

struct duda_rooms *duda_rooms_new(void)
{
    struct duda_rooms *r = mk_mem_zalloc(1, sizeof *r);
    if (r)
        r->buckets = mk_mem_zalloc(BUCKETS_MIN, sizeof *r->buckets);
    if (r && !r->buckets) {
        mk_mem_free(r);
        return NULL;
    }
    if (r) {
        r->n_buckets = BUCKETS_MIN;
        mk_random(&r->key, sizeof r->key);
    }
    return r;
}

void duda_rooms_free(struct duda_rooms *r)
{
    if (r)
        mk_mem_free(r->buckets);
    mk_mem_free(r);
}

static struct duda_room **find(const struct duda_rooms *r, mk_str name, uint64_t hash)
{
    struct duda_room **at = &r->buckets[hash & (r->n_buckets - 1)];
    while (*at && !((*at)->hash == hash && mk_str_eq(mk_str_of((*at)->name, (*at)->len), name)))
        at = &(*at)->next;
    return at;
}

/* Without memory it stays as it is, and becomes slow. */
static void grow(struct duda_rooms *r)
{
    size_t n = 2 * r->n_buckets;
    struct duda_room **buckets = mk_mem_zalloc(n, sizeof *buckets);
    if (!buckets)
        return;
    for (size_t i = 0; i < r->n_buckets; i++)
        while (r->buckets[i]) {
            struct duda_room *room = r->buckets[i];
            r->buckets[i] = room->next;
            room->next = buckets[room->hash & (n - 1)];
            buckets[room->hash & (n - 1)] = room;
        }
    mk_mem_free(r->buckets);
    r->buckets = buckets;
    r->n_buckets = n;
}

static struct duda_room *open_room(struct duda_rooms *r, mk_str name)
{
    uint64_t hash = mk_hash(&r->key, name);
    struct duda_room **at = find(r, name, hash);
    if (*at)
        return *at;
    struct duda_room *room = mk_mem_zalloc(1, sizeof *room + name.len);
    if (!room)
        return NULL;
    memcpy(room->name, name.p, name.len);
    room->len = name.len;
    room->hash = hash;
    *at = room;
    if (++r->n > 2 * r->n_buckets)
        grow(r);
    return room;
}

static void close_room(struct duda_rooms *r, struct duda_room *room)
{
    if (room->members || room->is_told)
        return;
    *find(r, mk_str_of(room->name, room->len), room->hash) = room->next;
    r->n--;
    mk_mem_free(room);
}

int duda_rooms_enter(struct duda_rooms *r, mk_str name, struct duda_guest *m)
{
    struct duda_room *room = open_room(r, name);
    if (!room)
        return -ENOMEM;
    m->room = room;
    m->next = room->members;
    m->at = &room->members;
    if (m->next)
        m->next->at = &m->next;
    room->members = m;
    room->n++;
    return 0;
}

void duda_rooms_leave(struct duda_rooms *r, struct duda_guest *m)
{
    struct duda_room *room = m->room;
    if (!room)
        return;
    for (struct cursor *c = r->telling; c; c = c->outer)
        if (c->next == &m->next)
            c->next = m->at;
    *m->at = m->next;
    if (m->next)
        m->next->at = m->at;
    m->room = NULL;
    room->n--;
    close_room(r, room);
}

mk_str duda_rooms_name(const struct duda_guest *m)
{
    return m->room ? mk_str_of(m->room->name, m->room->len) : MK_ABSENT;
}

static void tell_all(struct duda_rooms *r, struct duda_room *room, struct duda_news *news)
{
    struct cursor c = {&room->members, r->telling};
    r->telling = &c;
    while (*c.next) {
        struct duda_guest *m = *c.next;
        c.next = &m->next; /* duda_rooms_leave() sets it back if this one goes */
        m->hear(m->owner, news);
    }
    r->telling = c.outer;
}

void duda_rooms_tell(struct duda_rooms *r, mk_str name, enum mk_websocket_kind kind, mk_str text)
{
    struct duda_room *room = *find(r, name, mk_hash(&r->key, name));
    struct duda_news news = {.room = name, .text = text, .kind = kind};
    if (!room || room->is_told)
        return;
    room->is_told = true;
    tell_all(r, room, &news);
    room->is_told = false;
    close_room(r, room);
    mk_websocket_message_drop(news.framed);
}

size_t duda_rooms_count(const struct duda_rooms *r, mk_str name)
{
    const struct duda_room *room = *find(r, name, mk_hash(&r->key, name));
    return room ? room->n : 0;
}

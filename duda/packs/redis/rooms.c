/* SPDX-License-Identifier: Apache-2.0 */
/* Each worker hears the channel by itself. What comes from a worker of its own machine it has heard before.
 */
#include "rooms.h"

#include <duda/room.h>
#include <errno.h>
#include <monkey/mem.h>

#include "keys.h"

enum { ORIGIN = sizeof(uint64_t) };

struct redis_rooms {
    struct mk_worker *worker;
    struct redis_queue *queue;
    struct duda_redis_sub sub;
    struct duda_room_relay relay;
};

static mk_str channel_of(const struct redis_rooms *r)
{
    return mk_str_of(r->sub.channel, r->sub.channel_len);
}

/* The command waits for the server as those of handlers do. Its reply is of no interest. */
static int say(void *ctx, mk_str message)
{
    struct redis_rooms *r = ctx;
    struct redis_job *job;
    struct mk_buf text = mk_buf_growing(ORIGIN + DUDA_ROOM_MESSAGE + DUDA_ROOM_NAME + 2);
    mk_buf_add(&text, mk_str_of((const char *)r->queue->conn.settings->origin, ORIGIN));
    mk_buf_add(&text, message);
    int e = text.failed ? -ENOMEM : redis_queue_begin(r->queue, NULL, 1, &job);
    if (!e) {
        const mk_str parts[] = {MK_STR("PUBLISH"), channel_of(r), mk_buf_str(&text)};
        redis_conn_write(&r->queue->bytes, parts, 3);
        e = redis_queue_add(r->queue, job);
    }
    mk_buf_free(&text);
    return e == -EBUSY || e == -ECONNREFUSED ? -EAGAIN : e;
}

static void on_message(void *ctx, mk_str text)
{
    struct redis_rooms *r = ctx;
    if (text.len > ORIGIN && memcmp(text.p, r->queue->conn.settings->origin, ORIGIN) != 0)
        duda_room_relayed(r->worker, mk_str_skip(text, ORIGIN));
}

struct redis_rooms *redis_rooms_new(struct mk_worker *w, struct redis_queue *q, struct redis_hub *h)
{
    struct redis_rooms *r = mk_mem_zalloc(1, sizeof *r);
    if (!r)
        return NULL;
    struct mk_buf name = mk_buf_fixed(r->sub.channel, sizeof r->sub.channel);
    mk_buf_addf(&name, REDIS_OWN "rooms:%.*s", MK_STR_ARG(q->conn.settings->rooms));
    r->worker = w;
    r->queue = q;
    r->sub.channel_len = name.len;
    r->sub.on_message = on_message;
    r->sub.ctx = r;
    r->relay = (struct duda_room_relay){.say = say, .ctx = r};
    if (duda_room_set_relay(w, &r->relay)) {
        mk_mem_free(r);
        return NULL;
    }
    redis_hub_join(h, &r->sub);
    return r;
}

void redis_rooms_free(struct redis_rooms *r)
{
    if (!r)
        return;
    (void)duda_room_set_relay(r->worker, NULL);
    redis_hub_leave(&r->sub);
    mk_mem_free(r);
}

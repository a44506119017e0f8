/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever comes over the channel of rooms, as Redis delivers it or not: members hear what was said in their
 * room, on other machines. */
#include "peer.h"

#include <redis/rooms.h>
#include <service/home.h>
#include <service/membership.h>

enum { MACHINES_MAX = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char origin[] = "machine";
static struct duda_home home;
static unsigned heard;
static mk_str all;

/* ---- In place of Duda and of the queue of commands ---- */

struct duda_home *duda_home(struct mk_worker *worker)
{
    (void)worker;
    return &home;
}

const struct mk_plugin *duda_home_plugin(void)
{
    return NULL;
}

int redis_queue_begin(struct redis_queue *q, struct redis_wait *wait, size_t n_replies,
                      struct redis_job **out)
{
    (void)q, (void)wait, (void)n_replies, (void)out;
    return -EBUSY;
}

int redis_queue_add(struct redis_queue *q, struct redis_job *job)
{
    (void)q, (void)job;
    return 0;
}

void pack_inbox_put(struct pack_inbox *in, mk_str text)
{
    (void)in, (void)text;
}

void pack_inbox_wake(struct pack_inbox *in)
{
    (void)in;
}

void mk_websocket_message_drop(struct mk_websocket_message *m)
{
    MK_ASSERT(!m);
}

unsigned mk_worker_count(const struct mk_worker *w)
{
    (void)w;
    return 1;
}

unsigned mk_worker_index(const struct mk_worker *w)
{
    (void)w;
    return 0;
}

int mk_worker_send(struct mk_worker *w, const struct mk_plugin *plugin, int to, mk_str message)
{
    (void)w, (void)plugin, (void)to, (void)message;
    return 0;
}

/* ---- Members ---- */

static void hear(void *owner, struct duda_news *news)
{
    MK_ASSERT(mk_str_eq(news->room, mk_str_from_c(owner)) && !news->framed);
    MK_ASSERT(news->kind == MK_WEBSOCKET_TEXT || news->kind == MK_WEBSOCKET_BINARY);
    MK_ASSERT(news->text.len + news->room.len + 2 < all.len);
    heard++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char chat[] = "s:chat", other[] = "s:o";
    const struct duda_hall hall = {&home, MK_STR("s")};
    uint64_t machine;
    struct duda_guest *guests = NULL;
    struct redis_settings settings = {.name = MK_STR("main"),
                                      .rooms = MK_STR("r"),
                                      .timeout_ms = 1000,
                                      .reply_max = MACHINES_MAX,
                                      .origin = &machine};
    struct redis_queue queue = {.conn.settings = &settings};
    struct redis_hub hub = {.subs = NULL};
    if (size < 2 || size > MACHINES_MAX)
        return 0;
    memcpy(&machine, origin, sizeof machine);
    all = mk_str_of((const char *)data, size);
    peer_piece = data[0] % 64 + 1;
    peer_says = mk_str_skip(all, 1);
    MK_ASSERT(duda_membership_begin(hall, &guests, MK_STR("chat"), chat, hear) == 0);
    MK_ASSERT(duda_membership_begin(hall, &guests, MK_STR("o"), other, hear) == 0);
    MK_ASSERT(redis_hub_init(&hub, NULL, &settings) == 0);
    struct redis_rooms *rooms = redis_rooms_new(NULL, &queue, &hub);
    MK_ASSERT(rooms);
    while (peer_says.len)
        pack_link_open(&hub.conn.stream.link);
    redis_rooms_free(rooms);
    redis_hub_fini(&hub);
    duda_membership_end(&home, &guests);
    duda_rooms_free(home.rooms);
    home.rooms = NULL;
    MK_ASSERT(!peer_open && !home.relay);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "client/client_ahead.h"

#include <monkey/mem.h>
#include <monkey/spool.h>

#include "client/client_clock.h"
#include "client/client_receive.h"
#include "client/client_state.h"

/* A reader is slow if all the time the server had more for it, and it took less than 10 MB a second. */
enum { LOOK_MS = 200, FAST = 2 * 1024 * 1024, TURN_MAX = 256 * 1024 };

struct mk_client_ahead {
    struct mk_client *client;
    struct mk_request *request;
    struct mk_alarm *alarm;
    struct mk_spool_queue *queue; /* NULL: the reader keeps up */
    uint64_t taken;               /* bytes since the last look */
    bool was_dry;                 /* since then the server had nothing for a moment */
    bool is_awaited;              /* the last read found nothing */
    int error;                    /* of the queue: what was in it is lost */
};

/* ---- Into the queue ---- */

static void fill(struct mk_client_ahead *a)
{
    struct mk_client *c = a->client;
    size_t left = TURN_MAX;
    while (a->queue && c->state == MK_CLIENT_CONTENT) {
        char *room;
        size_t cap;
        if (left == 0) {
            mk_client_clock_defer(c);
            return;
        }
        if (mk_spool_queue_room(a->queue, &room, &cap))
            return; /* on_room(), or the next read, goes on */
        ssize_t n = mk_client_receive_content(c, room, cap < left ? cap : left);
        if (n <= 0)
            return;
        mk_spool_queue_add(a->queue, (size_t)n);
        left -= (size_t)n;
    }
}

static void on_room(void *ctx)
{
    struct mk_client_ahead *a = ctx;
    fill(a);
    if (a->is_awaited)
        a->client->on_ready(a->client->ctx);
}

bool mk_client_ahead_go(struct mk_client *c)
{
    struct mk_client_ahead *a = c->ahead;
    if (!a || !a->queue)
        return true;
    fill(a);
    return a->is_awaited;
}

/* ---- Is the reader slow? ---- */

static bool has_more(const struct mk_client *c)
{
    return c->can_read || c->data.len || c->in.len;
}

static void look(void *ctx)
{
    struct mk_client_ahead *a = ctx;
    struct mk_client *c = a->client;
    bool is_slow = has_more(c) && !a->was_dry && a->taken < FAST;
    a->taken = 0;
    a->was_dry = false;
    if (c->state != MK_CLIENT_CONTENT || a->queue)
        return;
    if (is_slow)
        a->queue = mk_spool_queue_new(a->request, on_room, a);
    if (a->queue)
        fill(a);
    else
        mk_alarm_set(a->alarm, LOOK_MS);
}

/* ---- Out of the queue ---- */

/* The reader has caught up, or everything is in its hands. */
static void end_queue(struct mk_client_ahead *a)
{
    mk_spool_queue_free(a->queue);
    a->queue = NULL;
    a->taken = 0;
    a->was_dry = true;
    if (a->client->state == MK_CLIENT_CONTENT)
        mk_alarm_set(a->alarm, LOOK_MS);
}

/* 0: there is nothing in it. */
static ssize_t read_queue(struct mk_client_ahead *a, char *room, size_t cap)
{
    if (!a->queue)
        return 0;
    ssize_t n = mk_spool_queue_read(a->queue, room, cap);
    if (n == 0)
        end_queue(a);
    else if (n > 0 && a->client->state == MK_CLIENT_CONTENT)
        mk_client_clock_defer(a->client); /* there may be room again */
    else if (n < 0 && n != -EAGAIN)
        a->error = (int)n;
    return n;
}

static ssize_t read_server(struct mk_client *c, char *room, size_t cap)
{
    if (c->state == MK_CLIENT_CONTENT)
        return mk_client_receive_content(c, room, cap);
    return c->state == MK_CLIENT_DONE ? 0 : c->error;
}

ssize_t mk_client_ahead_read(struct mk_client *c, char *room, size_t cap)
{
    struct mk_client_ahead *a = c->ahead;
    if (a->error)
        return a->error;
    ssize_t n = read_queue(a, room, cap);
    if (n == 0)
        n = read_server(c, room, cap);
    a->is_awaited = n == -EAGAIN;
    a->was_dry |= a->is_awaited;
    if (n > 0)
        a->taken += (uint64_t)n;
    return n;
}

/* ---- Beginning and end ---- */

bool mk_client_ahead_start(struct mk_client *c, struct mk_request *request)
{
    struct mk_client_ahead *a = mk_mem_zalloc(1, sizeof *a);
    if (!a)
        return false;
    *a = (struct mk_client_ahead){.client = c, .request = request};
    a->alarm = mk_alarm_new(c->worker, look, a);
    if (!a->alarm) {
        mk_mem_free(a);
        return false;
    }
    mk_alarm_set(a->alarm, LOOK_MS);
    c->ahead = a;
    return true;
}

void mk_client_ahead_fini(struct mk_client *c)
{
    struct mk_client_ahead *a = c->ahead;
    if (!a)
        return;
    mk_alarm_free(a->alarm);
    mk_spool_queue_free(a->queue);
    mk_mem_free(a);
    c->ahead = NULL;
}

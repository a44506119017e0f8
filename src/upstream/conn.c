/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <time.h>

#include "upstream/blame.h"
#include "upstream/health.h"
#include "upstream/pool.h"
#include "upstream/share.h"
#include "upstream/wait_queue.h"

static uint64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static const struct mk_upstream_server *server_of(const struct mk_upstream_conn *l)
{
    return l->server < 0 ? NULL : &l->set->upstream->servers[l->server];
}

static void fail_server(const struct mk_upstream_conn *l, int error, const char *why)
{
    mk_pool_blame(&l->set->backends[l->server], error, why);
}

static void begin(struct mk_upstream_conn *l)
{
    struct mk_backend_set *g = l->set;
    if (l->options.to.p) {
        l->error = mk_pool_dial(g, l);
        return;
    }
    int e = mk_wait_queue_has_waiting(g) ? -EAGAIN : mk_pool_take(g, l);
    if (e == -EAGAIN)
        e = mk_pool_wait(g, l);
    l->error = e == -EAGAIN ? 0 : e;
}

/* A name may have addresses where connecting works. */
static bool has_other_address(struct mk_upstream_conn *l, const struct mk_channel *c)
{
    return mk_resolver_fail(&c->backend->names, &c->to) && ++l->n_failed < MK_ADDRESSES_MAX;
}

static void blame_server(struct mk_upstream_conn *l, const struct mk_channel *c)
{
    if (!mk_health_is_shortage(c->error)) {
        if (has_other_address(l, c))
            return;
        fail_server(l, c->error, NULL);
    }
    l->n_failed = 0;
    l->options.avoid |= UINT64_C(1) << l->server;
}

/* The connection to the server failed: tries the next address or server, waits, or fails. */
static void try_next(struct mk_upstream_conn *l)
{
    struct mk_channel *c = l->channel;
    l->error = c->error;
    l->channel = NULL;
    if (!l->options.to.p)
        blame_server(l, c);
    mk_pool_give(c, false);
    if (!l->options.to.p)
        begin(l);
}

static void on_channel(struct mk_upstream_conn *l, unsigned which)
{
    if (l->channel->state == MK_CHANNEL_FAILED)
        try_next(l);
    l->on_ready(l->ctx, which);
}

struct mk_upstream_conn *mk_upstream_conn_acquire(struct mk_worker *w, struct mk_upstream *u,
                                                  const struct mk_upstream_conn_options *options,
                                                  void (*on_ready)(void *ctx, unsigned which), void *ctx)
{
    struct mk_pool *p = mk_worker_data(w, u->all->plugin);
    struct mk_upstream_conn *l = mk_freelist_take(&p->links);
    if (!l)
        return NULL;
    *l = (struct mk_upstream_conn){.set = &p->sets[u->index],
                                   .options = *options,
                                   .on_channel = on_channel,
                                   .on_ready = on_ready,
                                   .ctx = ctx,
                                   .began_us = now_us(),
                                   .server = -1};
    if (u->max)
        l->client = mk_share_client(p, options->client);
    mk_list_init(&l->link);
    mk_list_init(&l->changed);
    begin(l);
    return l;
}

int mk_upstream_conn_state(const struct mk_upstream_conn *l)
{
    if (l->error)
        return l->error;
    if (!l->channel)
        return -EAGAIN;
    return l->channel->state == MK_CHANNEL_OPEN ? 0 : -EAGAIN;
}

bool mk_upstream_conn_defer(struct mk_upstream_conn *l)
{
    bool is_kept = l->was_kept && mk_upstream_conn_state(l) == 0;
    if (is_kept)
        mk_pool_notify(l->set->pool, l);
    return is_kept;
}

ssize_t mk_upstream_conn_read(struct mk_upstream_conn *l, char *room, size_t cap)
{
    int e = mk_upstream_conn_state(l);
    return e ? e : mk_channel_read(l->channel, room, cap);
}

ssize_t mk_upstream_conn_write(struct mk_upstream_conn *l, mk_str bytes, bool more)
{
    int e = mk_upstream_conn_state(l);
    return e ? e : mk_channel_write(l->channel, bytes, more);
}

void mk_upstream_conn_shutdown_write(struct mk_upstream_conn *l)
{
    if (mk_upstream_conn_state(l) == 0)
        l->channel->stream.ops->shutdown(&l->channel->stream);
}

bool mk_upstream_conn_was_reused(const struct mk_upstream_conn *l)
{
    return l->was_kept;
}

int mk_upstream_conn_server(const struct mk_upstream_conn *l)
{
    return l->server;
}

mk_str mk_upstream_conn_server_name(const struct mk_upstream_conn *l)
{
    const struct mk_upstream_server *s = server_of(l);
    return s ? s->name : mk_str_of(NULL, 0);
}

void mk_upstream_conn_on_down(struct mk_upstream_conn *l, void (*on_out)(void *ctx))
{
    l->on_out = on_out;
}

void mk_upstream_conn_set_error(struct mk_upstream_conn *l, int error, const char *why)
{
    l->fault = error;
    l->why = why;
}

void mk_upstream_conn_abandon(struct mk_upstream_conn *l, uint32_t ms, bool streams)
{
    l->is_abandoned = true;
    l->abandon_ms = ms;
    l->streams = streams;
}

void mk_upstream_conn_mark_first_byte(struct mk_upstream_conn *l)
{
    if (l->is_answered || l->server < 0)
        return;
    l->is_answered = true;
    mk_health_time(server_of(l), now_us() - l->began_us);
}

void mk_upstream_conn_release(struct mk_upstream_conn *l, enum mk_upstream_conn_disposition how)
{
    if (!l)
        return;
    mk_list_remove(&l->changed);
    if (l->waits_since_ms)
        mk_pool_leave(l);
    if (l->channel) {
        if (how == MK_UPSTREAM_CONN_FAILED && l->server >= 0)
            fail_server(l, l->why ? l->fault : -EPROTO, l->why ? l->why : "an exchange with it failed");
        else if (l->is_answered)
            mk_blame_clear(l->set->pool->worker, server_of(l));
        if (l->is_abandoned)
            mk_pool_abandon(l->channel, l->abandon_ms, l->streams);
        else
            mk_pool_give(l->channel, how == MK_UPSTREAM_CONN_KEEP && !l->options.to.p);
    }
    mk_freelist_give(&l->set->pool->links, l);
}

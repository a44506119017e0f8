/* SPDX-License-Identifier: Apache-2.0 */
/* For fuzz targets: a server with the handlers of unit/handlers.h, and the peer of one of its connections.
 * The peer sends `sent` up to `arrived`, accepts as many bytes as `write_max` allows, and checks how the
 * connection ends. */
#ifndef MK_FUZZ_SERVER_FIXTURE_H
#define MK_FUZZ_SERVER_FIXTURE_H

#include <sys/eventfd.h>

#include "connection/conn_manager.h"
#include "connection/h1.h"
#include "unit/handlers.h"
#include "unit/site.h"

static struct site site;
static struct mk_loop loop;
static struct mk_counters counters;
static struct mk_conn_manager manager;
static struct handlers handlers;
static struct handlers_routes routes;

static struct {
    mk_str sent; /* bytes from `at` to `arrived` have arrived and are unread */
    size_t at, arrived;
    bool ended;       /* the peer sends nothing more */
    size_t write_max; /* bytes that the peer accepts before the next event; SIZE_MAX: all */
    bool closed, shut;
} peer;

/* Each target defines how its client receives. */
static void on_received(mk_str bytes);

static ssize_t peer_read(struct mk_stream *s, char *buffer, size_t cap)
{
    (void)s;
    size_t n = mk_min(cap, peer.arrived - peer.at);
    if (n == 0)
        return peer.ended && peer.at == peer.sent.len ? 0 : -EAGAIN;
    memcpy(buffer, peer.sent.p + peer.at, n);
    peer.at += n;
    return (ssize_t)n;
}

static ssize_t peer_write(struct mk_stream *s, mk_str bytes, bool more)
{
    (void)s;
    (void)more;
    MK_ASSERT(!peer.shut && !peer.closed && bytes.len > 0);
    size_t n = mk_min(bytes.len, peer.write_max);
    if (n == 0)
        return -EAGAIN;
    peer.write_max -= peer.write_max == SIZE_MAX ? 0 : n;
    on_received(mk_str_first(bytes, n));
    return (ssize_t)n;
}

static void peer_shutdown(struct mk_stream *s)
{
    (void)s;
    peer.shut = true;
}

static void peer_close(struct mk_stream *s)
{
    MK_ASSERT(!peer.closed);
    peer.closed = true;
    mk_fd_close(&s->fd);
}

static struct mk_conn *peer_connect(void)
{
    static const struct mk_stream_ops ops = {
        .read = peer_read, .write = peer_write, .shutdown = peer_shutdown, .close = peer_close};
    static const struct mk_addr who = {.is_unix = 1};
    struct mk_conn *c = mk_conn_open(&manager, &mk_h1_ops, eventfd(0, EFD_CLOEXEC), &who);
    MK_ASSERT(c != NULL);
    c->stream.ops = &ops;
    return c;
}

static const size_t accept_sizes[] = {0, 1, 7, 100, 5000, 70000, SIZE_MAX, SIZE_MAX};

static void server_end(void)
{
    mk_conn_manager_fini(&manager);
    mk_loop_fini(&loop);
    site_fini(&site);
}

static void server_begin(const struct mk_conn_manager_limits *limits,
                         void (*on_done)(const struct mk_access_record *record, void *data))
{
    site_init(&site);
    site_add(&site, "index.html", MK_STR("front page"));
    site.web.on_record = on_done;
    site.web.log = NULL;
    MK_ASSERT(mk_loop_init(&loop) == 0);
    MK_ASSERT(mk_conn_manager_init(&manager, &loop, &site.web, limits, &counters, MK_STR("Monkey")) == 0);
    site.host.n_routes = handlers_route(&routes, &handlers, &mk_static);
    site.host.routes = routes.at;
    atexit(server_end);
}

/* Checks the invariants that hold after each step of the server. */
static void check_at_rest(const struct mk_conn *c)
{
    MK_ASSERT(manager.out.len == 0 && !manager.out.failed && manager.serving == NULL);
    MK_ASSERT(c->state.current != MK_CONN_DEAD || peer.closed);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Acquires and releases the connection of a request. */
#include <errno.h>

#include "upstream/client_share.h"
#include "upstream/health.h"
#include "upstream/pool.h"
#include "upstream/wait_queue.h"

static const struct mk_upstream_server *chosen_server(const struct mk_upstream_conn *c)
{
    return c->chosen < 0 ? NULL : &c->set->upstream->servers[c->chosen];
}

static void report_server_failure(const struct mk_upstream_conn *c, int error, const char *message)
{
    mk_pool_report_failure(&c->set->backends[c->chosen], error, message);
}

static void acquire_or_enqueue(struct mk_upstream_conn *c)
{
    struct mk_backend_set *g = c->set;
    if (c->options.address.p) {
        c->error = mk_pool_connect_to_addr(g, c);
        return;
    }
    int e = mk_wait_queue_has_waiting(g) ? -EAGAIN : mk_pool_acquire(g, c);
    if (e == -EAGAIN)
        e = mk_pool_enqueue(g, c);
    c->error = e == -EAGAIN ? 0 : e;
}

/* Does the server's name have addresses that were not tried? */
static bool has_untried_addr(struct mk_upstream_conn *c)
{
    return mk_resolver_mark_failed(&c->backend->names, &c->to) && ++c->n_failed < MK_ADDRESSES_MAX;
}

static void exclude_failed_server(struct mk_upstream_conn *c)
{
    if (!mk_health_is_local_shortage(c->error)) {
        if (has_untried_addr(c))
            return;
        report_server_failure(c, c->error, NULL);
    }
    c->n_failed = 0;
    c->options.tried |= UINT64_C(1) << c->chosen;
}

/* Called when connecting has failed: tries the next address or server, waits, or fails. */
static void connect_to_next(struct mk_upstream_conn *c)
{
    if (!c->options.address.p)
        exclude_failed_server(c);
    mk_pool_close_conn(c);
    if (!c->options.address.p)
        acquire_or_enqueue(c);
}

/* Once the connection is open, its events go to the request. */
static void on_connect_event(void *ctx, unsigned which)
{
    struct mk_upstream_conn *c = ctx;
    if (c->state.current == MK_UPSTREAM_CONN_BROKEN)
        connect_to_next(c);
    if (c->state.current == MK_UPSTREAM_CONN_OPEN)
        mk_upstream_conn_set_user_callback(c);
    c->on_ready(c->ctx, which);
}

struct mk_upstream_conn *mk_upstream_conn_acquire(struct mk_worker *w, struct mk_upstream *u,
                                                  const struct mk_upstream_conn_options *options,
                                                  void (*on_ready)(void *ctx, unsigned which), void *ctx)
{
    struct mk_pool *p = mk_worker_data(w, u->all->plugin);
    struct mk_upstream_conn *c = mk_freelist_pop(&p->conns);
    if (!c)
        return NULL;
    memset(c, 0, offsetof(struct mk_upstream_conn, to));
    mk_state_init(&c->state, &mk_upstream_conn_machine, MK_UPSTREAM_CONN_WAITING);
    c->set = &p->sets[u->index];
    c->options = *options;
    c->on_event = on_connect_event;
    c->event_ctx = c;
    c->on_ready = on_ready;
    c->ctx = ctx;
    c->began_us = mk_clock_us();
    c->chosen = -1;
    if (u->max)
        c->client = mk_client_share_key(p, options->client);
    mk_list_init(&c->backend_link);
    mk_list_init(&c->link);
    mk_list_init(&c->changed);
    acquire_or_enqueue(c);
    return c;
}

mk_str mk_upstream_conn_server_name(const struct mk_upstream_conn *c)
{
    const struct mk_upstream_server *s = chosen_server(c);
    return s ? s->name : mk_str_of(NULL, 0);
}

void mk_upstream_conn_mark_first_byte(struct mk_upstream_conn *c)
{
    if (c->is_answered)
        return;
    c->is_answered = true;
    if (c->chosen >= 0)
        mk_health_record_latency(chosen_server(c), mk_clock_us() - c->began_us);
}

void mk_upstream_conn_release(struct mk_upstream_conn *c, enum mk_upstream_conn_disposition how)
{
    if (!c)
        return;
    mk_list_remove(&c->changed);
    if (c->waits_since_ms)
        mk_pool_dequeue(c);
    if (!mk_upstream_conn_has_socket(c)) {
        mk_freelist_push(&c->set->pool->conns, c);
        return;
    }
    if (how == MK_UPSTREAM_CONN_FAILED && c->chosen >= 0)
        report_server_failure(c, c->why ? c->fault : -EPROTO, c->why ? c->why : "a request to it failed");
    else if (c->is_answered && c->chosen >= 0)
        mk_health_report_success(c->set->pool->worker, chosen_server(c));
    if (c->is_abandoned)
        mk_pool_release_cancelled(c, c->abandon_ms, c->streams);
    else
        mk_pool_release(c, how == MK_UPSTREAM_CONN_KEEP && !c->options.address.p);
}

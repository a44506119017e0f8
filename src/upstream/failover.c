/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/failover.h"

#include <errno.h>

#include "upstream/balance.h"
#include "upstream/health.h"
#include "upstream/wait_queue.h"

void mk_failover_broadcast(struct mk_backend *o)
{
    uint32_t message = mk_failover_encode(o->server);
    struct mk_pool *p = o->pool;
    if (o->server->upstream->n > 1) /* with a single server, there is no alternative */
        (void)mk_worker_send(p->worker, p->upstreams->plugin, MK_TO_ALL,
                             mk_str_of((const char *)&message, sizeof message));
}

/* Is there another server that is up and that the request may use? */
static bool has_other_server_up(const struct mk_backend *o, const struct mk_upstream_conn *l)
{
    const struct mk_upstream *u = o->server->upstream;
    uint64_t now = mk_clock_ms();
    for (unsigned i = 0; i < u->n; i++)
        if (i != o->server->index && !(l->options.tried >> i & 1) &&
            mk_balance_is_admitted(&o->set->backends[i], false) && mk_health_is_up(&u->servers[i], now))
            return true;
    return false;
}

/* A connection that is still being established has sent nothing, so its request can always move to another
 * server. */
static void fail_over_request(struct mk_backend *o, struct mk_upstream_conn *c)
{
    if (c->options.address.p || c->is_answered || !has_other_server_up(o, c))
        return;
    if (c->state.current == MK_UPSTREAM_CONN_CONNECTING || c->state.current == MK_UPSTREAM_CONN_HANDSHAKE) {
        mk_upstream_conn_fail(c, -ETIMEDOUT);
        mk_upstream_conn_notify(c, MK_HUNG_UP);
    } else if (c->state.current == MK_UPSTREAM_CONN_OPEN && c->on_down) {
        c->on_down(c->ctx);
    }
}

/* Checks each request only when its turn comes, because moving one request may end others. */
static void move_requests(struct mk_backend *o)
{
    struct mk_list all;
    mk_list_init(&all);
    MK_LIST_EACH_SAFE (at, &o->lent) {
        mk_list_remove(at);
        mk_list_add_last(&all, at);
    }
    while (!mk_list_empty(&all)) {
        struct mk_upstream_conn *c = MK_LIST_ENTRY(all.next, struct mk_upstream_conn, backend_link);
        mk_list_remove(&c->backend_link);
        mk_list_add_last(&o->lent, &c->backend_link);
        fail_over_request(o, c);
    }
}

void mk_failover_on_message(struct mk_pool *p, mk_str message)
{
    uint32_t what;
    if (message.len != sizeof what)
        return;
    memcpy(&what, message.p, sizeof what);
    unsigned index = mk_failover_decode_upstream(what);
    int server = mk_failover_decode_server(what);
    struct mk_backend_set *g = index < p->upstreams->n ? &p->sets[index] : NULL;
    if (g && server >= 0 && server < (int)g->upstream->n)
        move_requests(&g->backends[server]);
}

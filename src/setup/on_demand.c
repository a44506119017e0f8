/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates on demand: connects the handshakes that need one with the plugin that obtains it. */
#include <monkey/tls.h>

#include "base/assert.h"
#include "connection/conn.h"
#include "setup/config.h"

struct on_demand {
    struct mk_tls_on_demand source;
    int (*request)(struct mk_worker *worker, mk_str name, const struct mk_addr *client,
                   struct mk_tls_waiter *waiter, void *ctx);
    void (*cancel)(struct mk_worker *worker, struct mk_tls_waiter *waiter, void *ctx);
    void *ctx;
};

static struct mk_conn *conn_of(const struct mk_tls_waiter *waiter)
{
    return MK_CONTAINER(waiter->stream, struct mk_conn, stream);
}

static const struct on_demand *container_of(const struct mk_tls_on_demand *source)
{
    return (const void *)source; /* the first member */
}

static mk_err request_certificate(const struct mk_tls_on_demand *source, mk_str name,
                                  struct mk_tls_waiter *waiter)
{
    const struct on_demand *o = container_of(source);
    const struct mk_conn *c = conn_of(waiter);
    return o->request(c->manager->worker, name, &c->peer, waiter, o->ctx);
}

static void cancel_request(const struct mk_tls_on_demand *source, struct mk_tls_waiter *waiter)
{
    const struct on_demand *o = container_of(source);
    o->cancel(conn_of(waiter)->manager->worker, waiter, o->ctx);
}

void mk_config_tls_on_demand(
    struct mk_config *c, const char *folder,
    int (*request)(struct mk_worker *worker, mk_str name, const struct mk_addr *client,
                   struct mk_tls_waiter *waiter, void *ctx),
    void (*cancel)(struct mk_worker *worker, struct mk_tls_waiter *waiter, void *ctx), void *ctx)
{
    MK_ASSERT(c->site);
    struct on_demand *o = mk_config_alloc(c, sizeof *o);
    mk_str path = mk_config_copy(c, mk_str_from_c(folder));
    if (!o || !path.p)
        return;
    *o = (struct on_demand){
        .source = {.folder = path.p, .request = request_certificate, .cancel = cancel_request},
        .request = request,
        .cancel = cancel,
        .ctx = ctx};
    c->site->on_demand = &o->source;
    mk_config_allow_path(c, NULL, NULL, path);
}

void mk_tls_waiter_resume(struct mk_tls_waiter *waiter, bool is_issued)
{
    waiter->state = is_issued ? MK_TLS_ISSUED : MK_TLS_REFUSED;
    mk_conn_resume(conn_of(waiter));
}

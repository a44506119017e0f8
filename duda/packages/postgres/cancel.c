/* SPDX-License-Identifier: Apache-2.0 */
/* PQcancel() connects and waits for the server, so it runs in a thread. */
#include "cancel.h"

#include <monkey/mem.h>

struct postgres_cancel {
    PGcancel *request;
    void (*on_done)(void *ctx);
    void *ctx;
};

static void send_cancel_request(void *ctx)
{
    struct postgres_cancel *c = ctx;
    char error[256];
    (void)!PQcancel(c->request, error, sizeof error); /* the connection reports an unreachable server */
}

static void on_cancel_done(void *ctx)
{
    struct postgres_cancel *c = ctx;
    if (c->on_done)
        c->on_done(c->ctx);
    PQfreeCancel(c->request);
    mk_mem_free(c);
}

struct postgres_cancel *postgres_cancel_start(struct mk_worker *w, PGconn *pg, void (*on_done)(void *ctx),
                                              void *ctx)
{
    struct postgres_cancel *c = mk_mem_alloc(sizeof *c);
    if (!c)
        return NULL;
    *c = (struct postgres_cancel){PQgetCancel(pg), on_done, ctx};
    if (c->request && !mk_worker_offload(w, send_cancel_request, on_cancel_done, c))
        return c;
    PQfreeCancel(c->request);
    mk_mem_free(c);
    return NULL;
}

void postgres_cancel_detach(struct postgres_cancel *c)
{
    if (c)
        c->on_done = NULL;
}

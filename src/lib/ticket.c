/* SPDX-License-Identifier: Apache-2.0 */
#include <monkey/ticket.h>

#include "base/mem.h"
#include "lib/known.h"
#include "lib/office.h"
#include "lib/server_type.h"
#include "lib/why.h"

struct mk_ticket {
    atomic_uint owners; /* the program, the request until it ends, and calls that were not made yet */
    atomic_bool is_stale;
    struct mk_office *office;
    struct mk_request *request; /* only for the thread of the request; NULL: it has ended */
};

struct call {
    struct mk_ticket *ticket;
    void (*fn)(struct mk_request *request, void *ctx);
    void *ctx;
};

static void drop(struct mk_ticket *t)
{
    if (atomic_fetch_sub(&t->owners, 1) > 1)
        return;
    mk_office_drop(t->office);
    mk_mem_free(t);
}

static void on_end(void *data)
{
    struct mk_ticket *t = data;
    t->request = NULL;
    atomic_store(&t->is_stale, true);
    drop(t);
}

/* Opened for the first ticket: most servers have none. */
static struct mk_office *office_of(struct mk_worker *w)
{
    struct mk_runner *r = MK_CONTAINER(w, struct mk_runner, worker);
    if (!r->office)
        r->office = mk_office_new(w);
    return r->office;
}

static struct mk_ticket *make(void)
{
    struct mk_ticket *t = mk_mem_zalloc(1, sizeof *t);
    if (t && mk_known_add(t))
        return t;
    mk_mem_free(t);
    return NULL;
}

struct mk_ticket *mk_ticket_new(struct mk_request *request)
{
    int before MK_KEPT = errno;
    struct mk_office *office = request ? office_of(mk_request_worker(request)) : NULL;
    struct mk_ticket *t = office ? make() : NULL;
    if (!t)
        return NULL;
    atomic_init(&t->owners, 2);
    t->office = mk_office_share(office);
    t->request = request;
    if (mk_request_on_end(request, on_end, t) == 0)
        return t;
    mk_office_drop(t->office);
    mk_known_remove(t);
    mk_mem_free(t);
    return NULL;
}

static void make_call(void *data)
{
    struct call *c = data;
    struct mk_ticket *t = c->ticket;
    if (c->fn)
        c->fn(t->request, c->ctx);
    if (t->request) /* the call may have ended it */
        mk_request_resume(t->request);
    mk_mem_free(c);
    drop(t);
}

int mk_ticket_resume(struct mk_ticket *ticket, void (*in_loop)(struct mk_request *request, void *ctx),
                     void *ctx)
{
    int before MK_KEPT = errno;
    if (!mk_known_is(ticket))
        return -EINVAL;
    if (mk_ticket_is_stale(ticket))
        return -ESTALE;
    struct call *c = mk_mem_alloc(sizeof *c);
    if (!c)
        return -ENOMEM;
    *c = (struct call){.ticket = ticket, .fn = in_loop, .ctx = ctx};
    atomic_fetch_add(&ticket->owners, 1);
    mk_err e = mk_office_post(ticket->office, make_call, c);
    if (e) {
        mk_mem_free(c);
        drop(ticket);
    }
    return e;
}

bool mk_ticket_is_stale(const struct mk_ticket *ticket)
{
    return !mk_known_is(ticket) || atomic_load(&ticket->is_stale);
}

void mk_ticket_free(struct mk_ticket *ticket)
{
    int before MK_KEPT = errno;
    if (!mk_known_is(ticket))
        return;
    mk_known_remove(ticket);
    drop(ticket);
}

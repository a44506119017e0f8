/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers without a request: a line and a route of their own make them look like all others. */
#include <duda/errand.h>
#include <errno.h>
#include <monkey/text.h>

#include "service/home.h"
#include "service/memory.h"
#include "service/run.h"
#include "service/table.h"

enum { ID_BYTES = 8 };

struct kept {
    struct duda d; /* the first */
    struct duda_errand errand;
    struct duda_route route;
    struct duda_line line;
    char id[2 * ID_BYTES + 1];
};

static struct duda_place *place_of(const struct duda_home *home, const char *name)
{
    char room[DUDA_PLACE_NAME];
    struct mk_buf text = mk_buf_fixed(room, sizeof room - 1);
    mk_buf_addf(&text, "job %s", name);
    return text.failed ? NULL : duda_board_place(home->board, mk_buf_str(&text));
}

static void give_id(struct kept *k)
{
    char bits[ID_BYTES];
    struct mk_buf text = mk_buf_fixed(k->id, sizeof k->id);
    mk_random(bits, sizeof bits);
    mk_hex_encode(&text, mk_str_of(bits, sizeof bits));
    k->d.id = mk_buf_str(&text);
}

/* The service whose function runs now; NULL: none. */
static const struct duda_owner *owner_here(const struct duda_home *home)
{
    return home->starts ? home->starts : home->runs ? home->runs->owner : NULL;
}

int duda_errand_begin(struct mk_worker *worker, const struct duda_errand *errand, struct duda **out)
{
    struct duda_home *home = duda_home(worker);
    struct duda_place *place = place_of(home, errand->name);
    *out = NULL;
    if (errand->stack > DUDA_STACK_MAX)
        return -EINVAL;
    if (duda_board_closed(place, mk_worker_now(worker)))
        return -EAGAIN;
    struct kept *k = duda_memory_take(home, sizeof *k);
    if (!k)
        return -ENOMEM;
    *k = (struct kept){.errand = *errand};
    k->route = (struct duda_route){.kind = DUDA_IS_ROUTE,
                                   .path = errand->name,
                                   .fn = errand->fn,
                                   .name = errand->name,
                                   .file = "a job",
                                   .stack = errand->stack,
                                   .deadline_ms = errand->deadline_ms};
    k->line = (struct duda_line){.route = &k->route, .pattern = mk_str_from_c(errand->name), .place = place};
    k->d.home = home;
    k->d.line = &k->line;
    k->d.on_over = errand->on_end;
    k->d.over_ctx = errand->ctx;
    k->d.owner = errand->owner ? errand->owner : owner_here(home);
    give_id(k);
    k->d.tunnels = k->d.streams = true; /* nothing resumes it but a wake, and it has nothing to say */
    int e = duda_run_begin(&k->d);
    if (e) {
        duda_memory_give(home, k);
        return e;
    }
    duda_wake(&k->d);
    *out = &k->d;
    return 0;
}

const struct duda_owner *duda_errand_owner(struct mk_worker *worker)
{
    return duda_home(worker)->starts;
}

void *duda_errand_context(const struct duda *d)
{
    return d->tie ? NULL : ((const struct kept *)d)->errand.ctx;
}

void duda_errand_end(struct duda *d)
{
    duda_run_cancel(d);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The list of job types that a worker runs, and notifications about new jobs. */
#include "jobs_worker.h"

#include <duda/request.h>
#include <duda/wait.h>
#include <errno.h>
#include <monkey/clock.h>
#include <monkey/plugin.h>

static const struct mk_plugin *self;

void jobs_worker_set_plugin(const struct mk_plugin *plugin)
{
    self = plugin;
}

struct jobs_worker *jobs_worker_get(struct mk_worker *w)
{
    struct jobs_worker *work = mk_worker_data(w, self);
    if (work)
        return work;
    work = mk_mem_zalloc(1, sizeof *work);
    if (work)
        work->worker = w;
    mk_worker_set_data(w, self, work);
    return work;
}

mk_str jobs_queue_name(mk_str scope, const char *kind, char *buf)
{
    struct mk_buf text = mk_buf_fixed(buf, JOBS_QUEUE_MAX);
    duda_scope_add(&text, scope, mk_str_from_c(kind));
    return mk_buf_str(&text);
}

struct duda_store *jobs_store_find(struct duda_ctx *d)
{
    const struct jobs_worker *work = jobs_worker_get(duda_worker(d));
    struct duda_store *s = work && work->settings ? duda_store_find(d, work->settings->store.p) : NULL;
    return s && s->jobs ? s : NULL;
}

int jobs_store_missing(struct duda_ctx *d)
{
    const struct jobs_worker *work = jobs_worker_get(duda_worker(d));
    const char *name = work && work->settings ? work->settings->store.p : "main";
    return duda_reason(d, -ENODEV,
                       "[JOBS] Store %s: there is no [KV] or [REDIS] with this Name, or its package "
                       "is not loaded",
                       name);
}

uint64_t jobs_now_ms(void)
{
    return mk_clock_unix_ms();
}

static bool wake_idle_slot(const struct jobs_runner *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct jobs_slot *t = &r->slots[i];
        if (!t->d || !t->is_idle || t->may_look)
            continue;
        t->may_look = true;
        duda_wait_wake(&t->wait);
        return true;
    }
    return false;
}

static bool wake_slot_of_queue(struct mk_worker *w, mk_str queue)
{
    const struct jobs_worker *work = jobs_worker_get(w);
    for (struct jobs_runner *r = work ? work->runners : NULL; r; r = r->next)
        if (mk_str_eq(mk_str_of(r->queue, r->queue_len), queue))
            return wake_idle_slot(r);
    return false;
}

void jobs_worker_notify(struct mk_worker *w, mk_str queue)
{
    if (!wake_slot_of_queue(w, queue))
        (void)mk_worker_send(w, self, MK_TO_ALL, queue); /* on failure, the other workers poll */
}

void jobs_worker_on_notify(struct mk_worker *w, mk_str queue)
{
    (void)wake_slot_of_queue(w, queue);
}

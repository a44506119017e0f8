/* SPDX-License-Identifier: Apache-2.0 */
/* Background tasks: handlers without a request. A dummy route entry makes them look like request handlers. */
#include <duda/task.h>
#include <errno.h>
#include <monkey/sized.h>
#include <monkey/text.h>

#include "service/memory.h"
#include "service/route_table.h"
#include "service/scheduler.h"
#include "service/service_entry.h"
#include "service/task_create.h"
#include "service/worker_ctx.h"

enum { ID_BYTES = 8 };

struct task_run {
    struct duda_ctx d; /* must be first */
    struct duda_task task;
    struct duda_route route;
    struct duda_route_entry route_entry;
    char id[2 * ID_BYTES + 1];
};

static struct duda_route_slot *task_route_slot(const struct duda_worker_ctx *worker_ctx, const char *name)
{
    char buf[DUDA_ROUTE_SLOT_NAME_MAX];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf - 1);
    mk_buf_addf(&text, "job %s", name);
    return text.failed ? NULL : duda_crash_table_add_route(worker_ctx->crash_table, mk_buf_str(&text));
}

static void assign_task_id(struct task_run *k)
{
    char bits[ID_BYTES];
    struct mk_buf text = mk_buf_fixed(k->id, sizeof k->id);
    mk_random(bits, sizeof bits);
    mk_hex_encode(&text, mk_str_of(bits, sizeof bits));
    k->d.id = mk_buf_str(&text);
}

/* Returns the service whose function runs now; NULL if there is none. */
static const struct duda_service_ref *spawning_service(const struct duda_worker_ctx *worker_ctx)
{
    return worker_ctx->starts ? worker_ctx->starts : worker_ctx->runs ? worker_ctx->runs->owner : NULL;
}

int duda_task_create(struct duda_worker_ctx *worker_ctx, const struct duda_task *task, struct duda_ctx **out)
{
    struct duda_route_slot *route_slot = task_route_slot(worker_ctx, task->name);
    *out = NULL;
    if (task->stack > DUDA_STACK_MAX)
        return -EINVAL;
    if (duda_route_slot_disabled_s(route_slot, mk_worker_now(worker_ctx->worker)))
        return -EAGAIN;
    struct task_run *k = duda_memory_acquire_block(worker_ctx, sizeof *k);
    if (!k)
        return -ENOMEM;
    *k = (struct task_run){.task = *task};
    k->route = (struct duda_route){.kind = DUDA_IS_ROUTE,
                                   .path = task->name,
                                   .fn = task->fn,
                                   .name = task->name,
                                   .file = "a job",
                                   .stack = task->stack,
                                   .deadline_ms = task->deadline_ms};
    k->route_entry = (struct duda_route_entry){
        .route = &k->route, .pattern = mk_str_from_c(task->name), .route_slot = route_slot};
    k->d.worker_ctx = worker_ctx;
    k->d.route_entry = &k->route_entry;
    k->d.on_task_end = task->on_end;
    k->d.task_end_ctx = task->ctx;
    k->d.owner = task->owner ? task->owner : spawning_service(worker_ctx);
    if (k->d.owner) {
        k->d.templates = k->d.owner->entry->templates;
        k->d.assets = k->d.owner->entry->assets;
    }
    assign_task_id(k);
    k->d.output = DUDA_OUTPUT_TUNNEL; /* only duda_wake() resumes a background task */
    int e = duda_scheduler_create_fiber(&k->d);
    if (e) {
        duda_memory_release_block(worker_ctx, k);
        return e;
    }
    *out = &k->d;
    return 0;
}

void duda_task_set_source_pos(struct duda_ctx *task, const char *file, int line)
{
    struct task_run *k = (struct task_run *)task;
    k->route.file = file;
    k->route.line = line;
}

int duda_task_spawn_sized(struct mk_worker *worker, const struct duda_task *task, size_t task_size,
                          struct duda_ctx **out)
{
    struct duda_task full;
    task = mk_sized_in(&full, sizeof full, task, task_size);
    int e = duda_task_create(duda_worker_ctx(worker), task, out);
    if (!e)
        duda_wake(*out);
    return e;
}

const struct duda_service_ref *duda_task_owner(struct mk_worker *worker)
{
    return duda_worker_ctx(worker)->starts;
}

void *duda_task_context(struct duda_ctx *d)
{
    return d->ctx_ref ? NULL : ((const struct task_run *)d)->task.ctx;
}

void duda_task_cancel(struct duda_ctx *d)
{
    duda_scheduler_cancel(d);
}

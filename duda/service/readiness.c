/* SPDX-License-Identifier: Apache-2.0 */
#include <duda/readiness.h>
#include <errno.h>
#include <monkey/readiness.h>
#include <sched.h>

#include "service/readiness.h"
#include "service/worker_ctx.h"

enum { SERIES_MAX = 64, ATTEMPTS_MAX = 1000 };

/* A component that is not ready. */
struct duda_component {
    struct duda_component *next;
    uint64_t *cell; /* counter of the current reason */
    size_t len;
    char name[DUDA_COMPONENT_MAX];
};

void duda_readiness_free(struct duda_component *c)
{
    while (c) {
        struct duda_component *next = c->next;
        mk_mem_free(c);
        c = next;
    }
}

/* Returns the link to the component with this name; the last link, which is NULL, if there is none. */
static struct duda_component **find_component(struct duda_worker_ctx *worker_ctx, mk_str name)
{
    struct duda_component **at = &worker_ctx->components;
    while (*at && !mk_str_eq(mk_str_of((*at)->name, (*at)->len), name))
        at = &(*at)->next;
    return at;
}

static struct duda_component *add_component(struct duda_component **at, mk_str name)
{
    struct duda_component *c = mk_mem_zalloc(1, sizeof *c);
    if (!c)
        return NULL;
    memcpy(c->name, name.p, name.len);
    c->len = name.len;
    return *at = c;
}

/* Stops counting the reason of the component, if it has one. */
static void clear_reason(struct duda_component *c)
{
    if (c->cell)
        mk_stat_add(c->cell, UINT64_MAX); /* components may share a series */
    c->cell = NULL;
}

static void remove_component(struct duda_component **at)
{
    struct duda_component *c = *at;
    if (!c)
        return;
    clear_reason(c);
    *at = c->next;
    mk_mem_free(c);
}

/* Returns whether only one series is left, and these values would need a new one. Reasons that contain data
 * would otherwise fill the statistics. */
static bool is_table_full(const struct mk_stat_registry *registry, unsigned table, const mk_str values[2])
{
    size_t n = 0;
    for (uint32_t s = 0; (s = mk_stat_next(registry, table, s)); n++)
        if (mk_str_eq(mk_stat_label(registry, s, MK_READINESS_COMPONENT), values[MK_READINESS_COMPONENT]) &&
            mk_str_eq(mk_stat_label(registry, s, MK_READINESS_REASON), values[MK_READINESS_REASON]))
            return false;
    return n + 1 >= SERIES_MAX;
}

/* When several workers start at once, another one often creates the series at the same moment. */
static uint32_t get_or_create_series(struct mk_stat_registry *registry, unsigned table,
                                     const mk_str values[2])
{
    uint32_t series = mk_stat_series(registry, table, values);
    for (unsigned i = 0; series == MK_STAT_RETRY && i < ATTEMPTS_MAX; i++) {
        (void)sched_yield();
        series = mk_stat_series(registry, table, values);
    }
    return series;
}

/* Finds the counter of the reason, or of the series `other` if the table is full. */
static int find_cell(struct duda_worker_ctx *worker_ctx, mk_str component, mk_str reason, uint64_t **out)
{
    struct mk_stat_registry *registry = mk_worker_statistics(worker_ctx->worker);
    unsigned table = registry ? mk_stat_find(registry, MK_READINESS_TABLE) : 0;
    mk_str values[] = {[MK_READINESS_COMPONENT] = component, [MK_READINESS_REASON] = reason};
    if (table && is_table_full(registry, table, values))
        values[MK_READINESS_COMPONENT] = values[MK_READINESS_REASON] = MK_STR("other");
    uint32_t series = table ? get_or_create_series(registry, table, values) : 0;
    *out = mk_worker_cells(worker_ctx->worker, series);
    return *out ? 0 : series == MK_STAT_RETRY ? -EAGAIN : -ENOSPC;
}

int duda_set_readiness(struct mk_worker *worker, const char *component, const char *reason)
{
    struct duda_worker_ctx *worker_ctx = worker ? duda_worker_ctx(worker) : NULL;
    mk_str name = mk_str_first(mk_str_from_c(component ? component : ""), DUDA_COMPONENT_MAX);
    if (!worker_ctx || name.len == 0)
        return -EINVAL;
    struct duda_component **at = find_component(worker_ctx, name);
    if (!reason) {
        remove_component(at);
        return 0;
    }
    uint64_t *cell = NULL;
    int e =
        find_cell(worker_ctx, name, mk_str_first(mk_str_from_c(reason), DUDA_NOT_READY_REASON_MAX), &cell);
    struct duda_component *c = *at;
    if (!e && !c)
        c = add_component(at, name);
    if (e || !c)
        return e ? e : -ENOMEM;
    clear_reason(c);
    mk_stat_add(cell, 1);
    c->cell = cell;
    return 0;
}

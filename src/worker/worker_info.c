/* SPDX-License-Identifier: Apache-2.0 */
/* Worker and server information for plugins: monkey/worker.h. */
#include <monkey/sized.h>
#include <monkey/trace.h>

#include "base/stats.h"
#include "connection/h1_types.h"
#include "setup/config_print.h"
#include "worker/worker.h"

unsigned mk_worker_index(const struct mk_worker *w)
{
    return w->index;
}

unsigned mk_worker_count(const struct mk_worker *w)
{
    return w->count;
}

bool mk_worker_is_draining(const struct mk_worker *w)
{
    return w->manager.draining;
}

void mk_worker_log(struct mk_worker *w, enum mk_log_level level, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    mk_log_va(w->manager.log, level, fmt, args);
    va_end(args);
}

void mk_worker_log_fields(struct mk_worker *w, enum mk_log_level level, mk_str message,
                          const struct mk_log_fields *fields)
{
    mk_log_with_fields(w->manager.log, level, message, fields);
}

/* ---- The processes ---- */

static void read_counters(struct mk_worker_stats *out, const struct mk_counters *n)
{
    *out = (struct mk_worker_stats){.accepted = mk_counter_get(&n->accepted),
                                    .dropped = mk_counter_get(&n->dropped),
                                    .open = mk_counter_get(&n->open),
                                    .requests = mk_counter_get(&n->requests),
                                    .sent = mk_counter_get(&n->sent)};
    for (size_t i = 0; i < MK_LEN(out->by_class); i++)
        out->by_class[i] = mk_counter_get(&n->by_class[i]);
    for (size_t i = 0; i < MK_LEN(n->by_outcome); i++)
        out->by_outcome[i] = mk_counter_get(&n->by_outcome[i]);
}

static bool read_process_stats(const struct mk_worker *w, size_t i, struct mk_worker_stats *out)
{
    if (i >= w->scoreboard.n || !w->scoreboard.at[i].started)
        return false;
    const struct mk_scoreboard_slot *p = &w->scoreboard.at[i];
    read_counters(out, &p->counters);
    out->pid = __atomic_load_n(&p->pid, __ATOMIC_RELAXED);
    out->started = p->started;
    out->draining = __atomic_load_n(&p->draining, __ATOMIC_RELAXED);
    return true;
}

bool mk_worker_stats_at_sized(const struct mk_worker *w, size_t i, struct mk_worker_stats *out,
                              size_t out_size)
{
    struct mk_worker_stats full = {0};
    bool result = read_process_stats(w, i, &full);
    mk_sized_out(out, out_size, &full, sizeof full);
    return result;
}

static void read_ended_stats(const struct mk_worker *w, struct mk_worker_stats *out)
{
    static const struct mk_counters none;
    read_counters(out, w->scoreboard.reload_stats ? &w->scoreboard.reload_stats->past : &none);
}

void mk_worker_stats_ended_sized(const struct mk_worker *w, struct mk_worker_stats *out, size_t out_size)
{
    struct mk_worker_stats full = {0};
    read_ended_stats(w, &full);
    mk_sized_out(out, out_size, &full, sizeof full);
}

bool mk_worker_stats_h2_closed(const struct mk_worker *w, size_t i, const char **reason, uint64_t *n)
{
    if (i >= MK_H2_REASONS)
        return false;
    *reason = mk_conn_manager_h2_reason_names[i];
    *n = w->scoreboard.reload_stats ? w->scoreboard.reload_stats->past.h2_ended[i] : 0;
    for (size_t p = 0; p < w->scoreboard.n; p++)
        *n += mk_counter_get(&w->scoreboard.at[p].counters.h2_ended[i]);
    return true;
}

static void read_reloads(const struct mk_worker *w, struct mk_reloads *out, struct mk_buf *error)
{
    const struct mk_reload_stats *h = w->scoreboard.reload_stats;
    *out = (struct mk_reloads){0};
    if (!h)
        return;
    out->done = atomic_load(&h->reloads);
    out->failed = atomic_load(&h->failed_reloads);
    out->done_at = atomic_load(&h->reloaded_at);
    out->failed_at = atomic_load(&h->failed_at);
    out->last_failed = atomic_load(&h->last_failed);
    out->in_progress = atomic_load(&h->reloading);
    out->confirm_at = atomic_load(&h->confirm_at);
    if (error)
        mk_buf_add(error, mk_str_of(h->why, strnlen(h->why, sizeof h->why)));
}

void mk_worker_reloads_sized(const struct mk_worker *w, struct mk_reloads *out, size_t out_size,
                             struct mk_buf *error)
{
    struct mk_reloads full = {0};
    read_reloads(w, &full, error);
    mk_sized_out(out, out_size, &full, sizeof full);
}

struct mk_stat_registry *mk_worker_statistics(const struct mk_worker *w)
{
    return w->generation->shared->statistics;
}

bool mk_worker_statistics_at_sized(const struct mk_worker *w, size_t i, struct mk_stat_source *out,
                                   size_t out_size)
{
    const struct mk_stat_source_entry *entry = w->generation->stat_sources;
    while (entry && i--)
        entry = entry->next;
    if (entry)
        mk_sized_out(out, out_size, &entry->source, sizeof entry->source);
    return entry;
}

uint64_t *mk_worker_cells(const struct mk_worker *w, uint32_t series)
{
    const struct mk_scoreboard_slot *slot =
        MK_CONTAINER(w->manager.counters, struct mk_scoreboard_slot, counters);
    struct mk_stat_registry *r = mk_worker_statistics(w);
    return r && w->scoreboard.n ? mk_stat_cells(r, series, (unsigned)(slot - w->scoreboard.at) + 1) : NULL;
}

int64_t mk_worker_master_pid(const struct mk_worker *w)
{
    return w->scoreboard.master_pid;
}

int64_t mk_worker_server_started_at(const struct mk_worker *w)
{
    return w->scoreboard.started_at;
}

/* ---- The worker ---- */

static struct mk_conn_info conn_info_of(const struct mk_conn *c)
{
    struct mk_conn_info info = {
        .peer = c->peer, .state = mk_conn_machine.states->names[c->state.current], .requests = c->n_requests};
    if (c->state.current == MK_CONN_HTTP2 || !c->h1)
        return info;
    const struct mk_request *r = &c->h1->d.x->request;
    info.method = r->method_text;
    info.target = r->target_text;
    info.host = r->host;
    info.age_ms = c->manager->loop->now_ms - r->now_ms;
    return info;
}

void mk_worker_each_conn(struct mk_worker *w, bool (*each)(const struct mk_conn_info *info, void *ctx),
                         void *ctx)
{
    MK_LIST_EACH_SAFE (at, &w->manager.conns) {
        struct mk_conn_info info = conn_info_of(MK_LIST_ENTRY(at, struct mk_conn, link));
        if (!each(&info, ctx))
            return;
    }
}

static void read_cache_info(const struct mk_worker *w, struct mk_cache_info *out)
{
    const struct mk_file_cache *f = &w->web.files;
    *out = (struct mk_cache_info){
        .files = f->n, .files_max = f->limits.files, .memory = f->memory, .memory_max = f->limits.memory};
}

void mk_worker_cache_sized(const struct mk_worker *w, struct mk_cache_info *out, size_t out_size)
{
    struct mk_cache_info full = {0};
    read_cache_info(w, &full);
    mk_sized_out(out, out_size, &full, sizeof full);
}

void mk_worker_cache_clear(struct mk_worker *w)
{
    mk_file_cache_evict_idle(&w->web.files);
}

/* ---- The configuration ---- */

const struct mk_vhost *mk_worker_vhost_at(const struct mk_worker *w, size_t i)
{
    const struct mk_vhost_config *s = w->generation->sites;
    while (s && i--)
        s = s->next;
    return s ? &s->host : NULL;
}

void mk_worker_print_config(const struct mk_worker *w, struct mk_buf *out)
{
    mk_config_print_references(w->generation, out);
}

bool mk_worker_records_traces(const struct mk_worker *w)
{
    return w->generation->records_traces;
}

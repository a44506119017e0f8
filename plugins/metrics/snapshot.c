/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot.h"

struct snapshot *metrics_snapshot_new(const struct mk_worker *worker, const struct metrics *metrics)
{
    size_t n = 0;
    for (const struct label *l = metrics->counts.labels; l; l = l->next)
        n++;
    struct snapshot *s = mk_mem_zalloc(1, sizeof *s + n * sizeof s->labels[0]);
    if (!s)
        return NULL;
    s->worker = worker;
    s->metrics = metrics;
    for (const struct label *l = metrics->counts.labels; l; l = l->next) {
        struct label_totals *at = &s->labels[s->n_labels++];
        at->name = l->name;
        metrics_request_counts_sum(&metrics->counts, l, &at->totals);
        metrics_totals_add(&at->totals, &s->all);
    }
    return s;
}

bool metrics_snapshot_process_at(const struct snapshot *s, size_t i, struct process_view *out)
{
    if (!mk_worker_stats_at(s->worker, i, &out->stats))
        return false;
    out->known = metrics_processes_find(s->metrics->processes, out->stats.pid, &out->info);
    if (!out->known)
        out->info = (struct process_info){0};
    return true;
}

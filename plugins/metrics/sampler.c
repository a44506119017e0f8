/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler.h"

enum { SECOND_MS = 1000 };

struct sampler {
    struct mk_worker *worker;
    const struct metrics *metrics;
    const struct process_reporter *reporter;
    struct mk_timer timer;
    uint64_t set;         /* id of the set of hosts, a hash of their names */
    struct totals totals; /* totals of all hosts, which are too large for a worker's stack */
};

/* Fills in the connections and memory of all processes, and the counts of all hosts. */
static void fill_sample(struct sampler *s, struct sample *out)
{
    struct process_info info;
    struct mk_worker_stats stats;
    struct totals *t = &s->totals;
    memset(t, 0, sizeof *t);
    for (const struct label *l = s->metrics->counts.labels; l; l = l->next)
        metrics_request_counts_sum(&s->metrics->counts, l, t);
    *out = (struct sample){.now_ms = mk_worker_now_ms(s->worker)};
    out->values[FIELD_REQUESTS] = metrics_totals_requests(t);
    out->values[FIELD_BYTES] = t->bytes;
    metrics_totals_sum_by_class(t, &out->values[FIELD_CLASSES]);
    for (size_t i = 0; mk_worker_stats_at(s->worker, i, &stats); i++) {
        if (!stats.pid)
            continue;
        out->values[FIELD_CONNECTIONS] += stats.open;
        if (metrics_processes_find(s->metrics->processes, stats.pid, &info))
            out->values[FIELD_MEMORY] += info.pss ? info.pss : info.rss;
    }
}

/* The timer fires in the middle of each second, so that a late timer does not skip a second. */
static void set_timer(struct sampler *s, uint64_t now_ms)
{
    mk_timer_set(&s->timer, s->worker, (uint32_t)(SECOND_MS - now_ms % SECOND_MS + SECOND_MS / 2));
}

static void on_sample_timer(struct mk_timer *t)
{
    struct sampler *s = MK_CONTAINER(t, struct sampler, timer);
    struct sample sample;
    uint64_t now_ms = mk_worker_now_ms(s->worker);
    if (mk_worker_is_draining(s->worker))
        return;
    if (metrics_history_claim_second(s->metrics->history, now_ms)) {
        fill_sample(s, &sample);
        metrics_history_add(s->metrics->history, &sample, s->totals.buckets, s->set);
    }
    set_timer(s, now_ms);
}

static uint64_t hash_host_names(const struct label *labels)
{
    static const struct mk_hash_key key = {0};
    uint64_t set = 1;
    for (const struct label *l = labels; l; l = l->next)
        set = set * 31 + mk_hash(&key, l->name);
    return set ? set : 1;
}

struct sampler *metrics_sampler_new(struct mk_worker *w, const struct metrics *metrics,
                                    const struct process_reporter *reporter)
{
    struct sampler *s = mk_mem_zalloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->worker = w;
    s->metrics = metrics;
    s->reporter = reporter;
    s->set = hash_host_names(metrics->counts.labels);
    mk_timer_init(&s->timer, on_sample_timer);
    mk_timer_set(&s->timer, w, 0);
    return s;
}

void metrics_sampler_free(struct sampler *s)
{
    if (!s)
        return;
    mk_timer_stop(&s->timer);
    mk_mem_free(s);
}

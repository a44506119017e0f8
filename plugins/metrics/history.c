/* SPDX-License-Identifier: Apache-2.0 */
#include "history.h"

static uint64_t load_relaxed(const _Atomic uint64_t *from)
{
    return atomic_load_explicit(from, memory_order_relaxed);
}

static void store_relaxed(_Atomic uint64_t *to, uint64_t n)
{
    atomic_store_explicit(to, n, memory_order_relaxed);
}

static uint64_t second_of(uint64_t now_ms)
{
    return now_ms / 1000;
}

bool metrics_history_claim_second(struct history *h, uint64_t now_ms)
{
    uint64_t claimed = atomic_load(&h->claimed), own = second_of(now_ms) + 1;
    do {
        if (claimed >= own)
            return false;
    } while (!atomic_compare_exchange_weak(&h->claimed, &claimed, own));
    return true;
}

/* ---- Writing ---- */

static uint64_t counter_increase(uint64_t before, uint64_t now, bool same_set)
{
    return same_set && now > before ? now - before : 0;
}

static bool is_counter_field(unsigned field)
{
    return field == FIELD_REQUESTS || field == FIELD_BYTES ||
           (field >= FIELD_CLASSES && field < FIELD_CLASSES + CLASSES);
}

/* Adds the increment since the previous sample. The first sample includes all earlier counts. */
static uint64_t update_cumulative_counter(struct history *h, unsigned field, uint64_t now, bool same_set)
{
    uint64_t n = load_relaxed(&h->set) ? load_relaxed(&h->counted[field]) +
                                             counter_increase(load_relaxed(&h->raw[field]), now, same_set)
                                       : now;
    store_relaxed(&h->raw[field], now);
    store_relaxed(&h->counted[field], n);
    return n;
}

static void add_latency_slice(struct history *h, uint64_t now_ms, const uint64_t buckets[BUCKETS],
                              bool same_set)
{
    size_t place = second_of(now_ms) % SLICES;
    atomic_store(&h->slices[place].now_ms, 0);
    atomic_thread_fence(memory_order_release);
    for (unsigned b = 0; b < BUCKETS; b++) {
        uint64_t n = counter_increase(load_relaxed(&h->buckets[b]), buckets[b], same_set);
        atomic_store_explicit(&h->slices[place].buckets[b], n < UINT32_MAX ? (uint32_t)n : UINT32_MAX,
                              memory_order_relaxed);
        store_relaxed(&h->buckets[b], buckets[b]);
    }
    atomic_store(&h->slices[place].now_ms, now_ms);
}

static void sum_recent_buckets(const struct history *h, uint64_t now_ms, uint64_t out[BUCKETS])
{
    struct slice s;
    for (unsigned back = 0; back < RECENT; back++) {
        if (!metrics_history_slice(h, now_ms, back, &s))
            continue;
        for (unsigned b = 0; b < BUCKETS; b++)
            out[b] += s.buckets[b];
    }
}

void metrics_history_add(struct history *h, const struct sample *s, const uint64_t buckets[BUCKETS],
                         uint64_t set_of_hosts)
{
    static const unsigned thousandths[] = {500, 900, 990, 999};
    size_t place = second_of(s->now_ms) % SAMPLES;
    uint64_t recent[BUCKETS] = {0};
    bool same_set = !load_relaxed(&h->set) || load_relaxed(&h->set) == set_of_hosts;
    add_latency_slice(h, s->now_ms, buckets, same_set);
    sum_recent_buckets(h, s->now_ms, recent);
    atomic_store(&h->samples[place].now_ms, 0);
    atomic_thread_fence(memory_order_release);
    for (unsigned f = 0; f < FIELD_P50; f++)
        store_relaxed(&h->samples[place].values[f],
                      is_counter_field(f) ? update_cumulative_counter(h, f, s->values[f], same_set)
                                          : s->values[f]);
    for (unsigned q = 0; q < FIELDS - FIELD_P50; q++)
        store_relaxed(&h->samples[place].values[FIELD_P50 + q],
                      mk_stat_quantile(recent, BUCKETS, thousandths[q]));
    atomic_store(&h->samples[place].now_ms, s->now_ms);
    store_relaxed(&h->set, set_of_hosts);
}

/* ---- Reading ---- */

static bool read_sample(const struct history *h, uint64_t second, struct sample *out)
{
    size_t place = second % SAMPLES;
    out->now_ms = atomic_load(&h->samples[place].now_ms);
    if (!out->now_ms || second_of(out->now_ms) != second)
        return false;
    for (unsigned f = 0; f < FIELDS; f++)
        out->values[f] = load_relaxed(&h->samples[place].values[f]);
    atomic_thread_fence(memory_order_acquire);
    return atomic_load(&h->samples[place].now_ms) == out->now_ms; /* false if it was overwritten meanwhile */
}

size_t metrics_history_read(const struct history *h, uint64_t now_ms, struct sample out[SAMPLES])
{
    uint64_t last = second_of(now_ms), second = last < SAMPLES ? 0 : last - SAMPLES + 1;
    size_t n = 0;
    for (; second <= last; second++)
        n += read_sample(h, second, &out[n]);
    return n;
}

bool metrics_history_slice(const struct history *h, uint64_t now_ms, unsigned back, struct slice *out)
{
    uint64_t second = second_of(now_ms) - back;
    size_t place = second % SLICES;
    out->now_ms = atomic_load(&h->slices[place].now_ms);
    if (!out->now_ms || second_of(out->now_ms) != second)
        return false;
    for (unsigned b = 0; b < BUCKETS; b++)
        out->buckets[b] = atomic_load_explicit(&h->slices[place].buckets[b], memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    return atomic_load(&h->slices[place].now_ms) == out->now_ms;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "history.h"

#include <string.h>

#include "unit/test.h"

static struct history history;

static void setup(void)
{
    memset(&history, 0, sizeof history);
}

static uint64_t set_of_hosts = 1;

/* Adds a sample with `n` requests, whose durations are all in one bucket. */
static bool add(struct history *h, uint64_t now_ms, uint64_t n, unsigned bucket)
{
    struct sample s = {.now_ms = now_ms};
    uint64_t buckets[BUCKETS];
    if (!metrics_history_claim_second(h, now_ms))
        return false;
    for (unsigned b = 0; b < BUCKETS; b++)
        buckets[b] = h->buckets[b];
    buckets[bucket] = n;
    s.values[FIELD_REQUESTS] = n;
    metrics_history_add(h, &s, buckets, set_of_hosts);
    return true;
}

static void history_empty_has_no_samples(void **state)
{
    (void)state;
    struct sample out[SAMPLES];
    struct slice slice;
    assert_int_equal(metrics_history_read(&history, 0, out), 0);
    assert_int_equal(metrics_history_read(&history, 5000000, out), 0);
    assert_false(metrics_history_slice(&history, 5000000, 0, &slice));
}

static void history_returns_samples_oldest_first(void **state)
{
    (void)state;
    struct history *h = &history;
    struct sample out[SAMPLES];
    for (unsigned i = 1; i <= 5; i++)
        assert_true(add(h, 1000000 + 1000 * i + 10 * i, i, 0));
    assert_int_equal(metrics_history_read(&history, 1005900, out), 5);
    for (unsigned i = 1; i <= 5; i++) {
        assert_int_equal(out[i - 1].now_ms, 1000000 + 1000 * i + 10 * i);
        assert_int_equal(out[i - 1].values[FIELD_REQUESTS], i);
    }
}

static void history_changed_vhosts_cause_no_jump(void **state)
{
    static const struct {
        unsigned set, n, kept, slice;
    } seconds[] = {{1, 200, 200, 200}, {1, 206, 206, 6}, {2, 1, 206, 0},
                   {2, 3, 208, 2},     {1, 207, 208, 0}, {1, 209, 210, 2}};
    (void)state;
    struct history *h = &history;
    struct sample out[SAMPLES];
    struct slice slice;
    for (unsigned i = 0; i < MK_LEN(seconds); i++) {
        set_of_hosts = seconds[i].set;
        assert_true(add(h, 1000000 + 1000 * i, seconds[i].n, 3));
        assert_int_equal(metrics_history_read(&history, 1000000 + 1000 * i, out), i + 1);
        assert_int_equal(out[i].values[FIELD_REQUESTS], seconds[i].kept);
        assert_true(metrics_history_slice(h, 1000000 + 1000 * i, 0, &slice));
        assert_int_equal(slice.buckets[3], seconds[i].slice);
    }
    set_of_hosts = 1;
}

static void history_keeps_first_sample_of_second(void **state)
{
    (void)state;
    struct history *h = &history;
    struct sample out[SAMPLES];
    assert_true(add(h, 7100, 1, 0));
    assert_false(add(h, 7900, 2, 0));
    assert_false(add(h, 6900, 3, 0)); /* earlier samples do not change */
    assert_true(add(h, 8000, 4, 0));
    assert_int_equal(metrics_history_read(&history, 8500, out), 2);
    assert_int_equal(out[0].values[FIELD_REQUESTS], 1);
    assert_int_equal(out[1].values[FIELD_REQUESTS], 4);
}

static void history_overwrites_oldest_samples(void **state)
{
    (void)state;
    struct history *h = &history;
    struct sample out[SAMPLES];
    for (unsigned i = 0; i < 2 * SAMPLES + 7; i++)
        assert_true(add(h, 1000 * i + 500, i, 0));
    assert_int_equal(metrics_history_read(&history, (2 * SAMPLES + 6) * 1000, out), SAMPLES);
    assert_int_equal(out[0].values[FIELD_REQUESTS], SAMPLES + 7);
    assert_int_equal(out[SAMPLES - 1].values[FIELD_REQUESTS], 2 * SAMPLES + 6);
}

static void history_gap_stays_empty(void **state)
{
    (void)state;
    struct history *h = &history;
    struct sample out[SAMPLES];
    struct slice slice;
    for (unsigned i = 0; i < SAMPLES; i++)
        add(h, 1000 * i + 500, i, 0);
    add(h, 1000 * (SAMPLES + 100), 9999, 0); /* 100 seconds pass without samples */
    assert_int_equal(metrics_history_read(&history, 1000 * (SAMPLES + 100), out), SAMPLES - 100);
    assert_int_equal(out[SAMPLES - 102].now_ms, 1000 * (SAMPLES - 1) + 500);
    assert_int_equal(out[SAMPLES - 101].values[FIELD_REQUESTS], 9999);
    assert_true(metrics_history_slice(h, 1000 * (SAMPLES + 100), 0, &slice));
    for (unsigned back = 1; back < SLICES; back++)
        assert_false(metrics_history_slice(h, 1000 * (SAMPLES + 100), back, &slice));
    assert_int_equal(metrics_history_read(&history, 1000 * (3 * SAMPLES), out), 0);
}

static void history_slice_holds_difference_of_a_second(void **state)
{
    (void)state;
    struct history *h = &history;
    struct slice slice;
    add(h, 10500, 5, 20);
    add(h, 11500, 12, 20);
    add(h, 12500, 3, 30);
    assert_true(metrics_history_slice(h, 12600, 1, &slice));
    assert_int_equal(slice.now_ms, 11500);
    assert_int_equal(slice.buckets[20], 7);
    assert_true(metrics_history_slice(h, 12600, 0, &slice));
    assert_int_equal(slice.buckets[20], 0);
    assert_int_equal(slice.buckets[30], 3);
    assert_int_equal(h->buckets[20], 12);
}

static void history_decreasing_counts_are_ignored(void **state)
{
    (void)state;
    struct history *h = &history;
    struct slice slice;
    add(h, 10500, 5, 20);
    add(h, 11500, 2, 20); /* a virtual host with its own counts was removed */
    assert_true(metrics_history_slice(h, 11500, 0, &slice));
    assert_int_equal(slice.buckets[20], 0);
    add(h, 12500, 6, 20);
    assert_true(metrics_history_slice(h, 12500, 0, &slice));
    assert_int_equal(slice.buckets[20], 4);
}

static void history_quantiles_cover_ten_seconds(void **state)
{
    (void)state;
    struct history *h = &history;
    struct sample out[SAMPLES];
    unsigned slow = mk_stat_fine_bucket(1000000), quick = mk_stat_fine_bucket(100);
    add(h, 1500, 100, slow);
    for (unsigned i = 1; i <= RECENT; i++)
        add(h, 1000 * i + 1500, 10 * i, quick);
    assert_int_equal(metrics_history_read(&history, 1000 * RECENT + 1500, out), RECENT + 1);
    assert_in_range(out[0].values[FIELD_P50], 900000, 1100000);
    assert_in_range(out[RECENT - 1].values[FIELD_P99], 900000, 1100000);
    assert_in_range(out[RECENT].values[FIELD_P999], 90, 120);
    for (unsigned i = 1; i <= RECENT; i++)
        add(h, 1000 * (RECENT + i) + 1500, 10 * RECENT, quick);
    assert_int_equal(metrics_history_read(&history, 2000 * RECENT + 1500, out), 2 * RECENT + 1);
    assert_int_equal(out[2 * RECENT].values[FIELD_P50], 0);
}

/* The worker died while it wrote the sample. */
static void history_incomplete_sample_is_skipped(void **state)
{
    (void)state;
    struct history *h = &history;
    struct sample out[SAMPLES];
    struct slice slice;
    add(h, 10500, 5, 20);
    add(h, 11500, 6, 20);
    h->samples[11 % SAMPLES].now_ms = 0;
    h->slices[11 % SLICES].now_ms = 0;
    assert_int_equal(metrics_history_read(&history, 11600, out), 1);
    assert_int_equal(out[0].now_ms, 10500);
    assert_false(metrics_history_slice(h, 11600, 0, &slice));
    assert_true(add(h, 12500, 7, 20));
    assert_int_equal(metrics_history_read(&history, 12500, out), 2);
}

static void history_memory_is_bounded(void **state)
{
    (void)state;
    assert_in_range(sizeof history, 1, 128 << 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(history_empty_has_no_samples, setup),
        fixture_test(history_returns_samples_oldest_first, setup),
        fixture_test(history_keeps_first_sample_of_second, setup),
        fixture_test(history_overwrites_oldest_samples, setup),
        fixture_test(history_gap_stays_empty, setup),
        fixture_test(history_slice_holds_difference_of_a_second, setup),
        fixture_test(history_decreasing_counts_are_ignored, setup),
        fixture_test(history_quantiles_cover_ten_seconds, setup),
        fixture_test(history_incomplete_sample_is_skipped, setup),
        fixture_test(history_changed_vhosts_cause_no_jump, setup),
        fixture_test(history_memory_is_bounded, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

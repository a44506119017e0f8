/* SPDX-License-Identifier: Apache-2.0 */
/* The components that a worker remembers, and the counters of their reasons. */
#include "service/readiness.h"

#include <duda/readiness.h>
#include <errno.h>
#include <monkey/readiness.h>

#include "service/worker_ctx.h"
#include "unit/test.h"

enum { REASONS = 4 };

static struct duda_worker_ctx ctx;
static char texts[REASONS][32];
static uint64_t cells[REASONS];
static bool is_full;

struct duda_worker_ctx *duda_worker_ctx(struct mk_worker *worker)
{
    assert_ptr_equal(worker, &ctx);
    return &ctx;
}

/* ---- Statistics with one series for each reason ---- */

struct mk_stat_registry *mk_worker_statistics(const struct mk_worker *worker)
{
    (void)worker;
    return (struct mk_stat_registry *)&ctx;
}

unsigned __wrap_mk_stat_find(const struct mk_stat_registry *registry, const char *name);
unsigned __wrap_mk_stat_find(const struct mk_stat_registry *registry, const char *name)
{
    (void)registry;
    assert_string_equal(name, MK_READINESS_TABLE);
    return 1;
}

uint32_t __wrap_mk_stat_next(const struct mk_stat_registry *registry, unsigned table, uint32_t series);
uint32_t __wrap_mk_stat_next(const struct mk_stat_registry *registry, unsigned table, uint32_t series)
{
    (void)registry, (void)table, (void)series;
    return 0;
}

uint32_t __wrap_mk_stat_series(struct mk_stat_registry *registry, unsigned table, const mk_str *values);
uint32_t __wrap_mk_stat_series(struct mk_stat_registry *registry, unsigned table, const mk_str *values)
{
    (void)registry, (void)table;
    mk_str reason = values[MK_READINESS_REASON];
    for (uint32_t i = 0; i < REASONS && !is_full; i++) {
        if (!texts[i][0])
            memcpy(texts[i], reason.p, reason.len);
        if (mk_str_eq(mk_str_from_c(texts[i]), reason))
            return i + 1;
    }
    return 0;
}

uint64_t *mk_worker_cells(const struct mk_worker *worker, uint32_t series)
{
    (void)worker;
    return series ? &cells[series - 1] : NULL;
}

/* ---- Tests ---- */

static int set(const char *component, const char *reason)
{
    return duda_set_readiness((struct mk_worker *)&ctx, component, reason);
}

static void setup(void)
{
    memset(&ctx, 0, sizeof ctx);
    memset(texts, 0, sizeof texts);
    memset(cells, 0, sizeof cells);
    is_full = false;
}

static void teardown(void)
{
    duda_readiness_free(ctx.components);
}

static void readiness_of_an_unknown_component_needs_no_memory(void **state)
{
    (void)state;
    assert_int_equal(set("never", NULL), 0);
    assert_null(ctx.components);
}

static void readiness_forgets_components_that_are_ready(void **state)
{
    (void)state;
    assert_int_equal(set("a", "slow"), 0);
    assert_int_equal(set("b", "slow"), 0);
    assert_int_equal(set("c", "full"), 0);
    assert_int_equal(cells[0], 2);
    assert_int_equal(set("b", NULL), 0);
    assert_int_equal(set("b", NULL), 0);
    assert_int_equal(cells[0], 1);
    assert_int_equal(set("a", NULL), 0);
    assert_int_equal(set("c", NULL), 0);
    assert_null(ctx.components);
    assert_true(cells[0] == 0 && cells[1] == 0);
}

static void readiness_counts_the_last_reason(void **state)
{
    (void)state;
    assert_int_equal(set("a", "slow"), 0);
    assert_int_equal(set("a", "full"), 0);
    assert_int_equal(set("a", "full"), 0);
    assert_true(cells[0] == 0 && cells[1] == 1);
}

static void readiness_is_unchanged_without_a_series(void **state)
{
    (void)state;
    is_full = true;
    assert_int_equal(set("a", "slow"), -ENOSPC);
    assert_null(ctx.components);
    is_full = false;
    assert_int_equal(set("a", "slow"), 0);
    is_full = true;
    assert_int_equal(set("a", "full"), -ENOSPC);
    assert_true(cells[0] == 1 && cells[1] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(readiness_of_an_unknown_component_needs_no_memory, setup, teardown),
        fixture_test(readiness_forgets_components_that_are_ready, setup, teardown),
        fixture_test(readiness_counts_the_last_reason, setup, teardown),
        fixture_test(readiness_is_unchanged_without_a_series, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

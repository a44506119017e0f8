/* SPDX-License-Identifier: Apache-2.0 */
#include "demand_stats.h"

static const char *const names[ACME_RESULTS] = {
    [ACME_RESULT_ISSUED] = "issued",
    [ACME_RESULT_FAILED] = "failed",
    [ACME_RESULT_NOT_ALLOWED] = "not_allowed",
    [ACME_RESULT_NO_ANSWER] = "no_answer",
    [ACME_RESULT_LIMITED] = "limited",
    [ACME_RESULT_REMEMBERED] = "remembered",
    [ACME_RESULT_BUSY] = "busy",
    [ACME_RESULT_TIMEOUT] = "timeout",
};

static const struct mk_stat_metric results[] = {{.name = "monkey_acme_on_demand_total",
                                                 .help = "Requests for certificates on demand, by result.",
                                                 .column = "requests"}};
static const struct mk_stat_table results_table = {
    .name = "acme_on_demand", .labels = {"result"}, .metrics = results, .n_metrics = MK_LEN(results)};

static const struct mk_stat_metric active[] = {
    {.name = "monkey_acme_on_demand_in_progress",
     .help = "Names whose certificates on demand are being obtained.",
     .column = "in progress",
     .kind = MK_STAT_GAUGE}};
static const struct mk_stat_table active_table = {
    .name = "acme_on_demand_active", .metrics = active, .n_metrics = MK_LEN(active)};

void acme_demand_stats_register(struct mk_config *config, struct acme_demand_stats *s)
{
    struct mk_stat_registry *r = mk_config_statistics(config);
    unsigned table = mk_stat_register_table(r, &results_table);
    for (unsigned i = 0; i < ACME_RESULTS; i++) {
        mk_str name = mk_str_from_c(names[i]);
        s->results[i] = mk_stat_series(r, table, &name);
    }
    s->active = mk_stat_series(r, mk_stat_register_table(r, &active_table), NULL);
}

void acme_demand_stats_count(const struct mk_worker *worker, const struct acme_demand_stats *s,
                             enum acme_result result)
{
    mk_stat_add(mk_worker_cells(worker, s->results[result]), 1);
}

void acme_demand_stats_set_active(const struct mk_worker *worker, const struct acme_demand_stats *s, size_t n)
{
    mk_stat_set(mk_worker_cells(worker, s->active), n);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/inventory_gauges.h"

#include "base/mem.h"
#include "monkey/stats.h"

enum { SERIES_MAX = 1000 }; /* other tables share the registry */

enum { EXPIRY, USABLE, RENEWAL, NEXT_TRY, FAILURES, METRICS };

static const struct mk_stat_metric metrics[METRICS] = {
    [EXPIRY] = {.name = "monkey_tls_certificate_file_expiry_timestamp_seconds",
                .help = "Expiry of a certificate file, in seconds since 1970.",
                .kind = MK_STAT_GAUGE,
                .is_optional = true},
    [USABLE] = {.name = "monkey_tls_certificate_file_usable",
                .help = "Whether the server can use the certificate file with its key.",
                .kind = MK_STAT_GAUGE},
    [RENEWAL] = {.name = "monkey_tls_certificate_next_renewal_timestamp_seconds",
                 .help = "Time of the next renewal, in seconds since 1970.",
                 .kind = MK_STAT_GAUGE,
                 .is_optional = true},
    [NEXT_TRY] = {.name = "monkey_tls_certificate_next_attempt_timestamp_seconds",
                  .help = "Time of the next attempt after a failed renewal, in seconds since 1970.",
                  .kind = MK_STAT_GAUGE,
                  .is_optional = true},
    [FAILURES] = {.name = "monkey_tls_certificate_renewal_failures",
                  .help = "Failed attempts since the last renewal.",
                  .kind = MK_STAT_GAUGE},
};

static const struct mk_stat_table table = {
    .name = "certificate_files", .labels = {"host", "file"}, .metrics = metrics, .n_metrics = METRICS};

struct mk_tls_inventory_gauges {
    struct mk_stat_registry *registry;
    unsigned table;
    size_t n;
    bool is_listed[MK_STAT_SERIES_MAX + 1];
};

unsigned mk_tls_inventory_gauges_register(struct mk_stat_registry *registry)
{
    return mk_stat_register_table(registry, &table);
}

struct mk_tls_inventory_gauges *mk_tls_inventory_gauges_begin(struct mk_stat_registry *registry,
                                                              unsigned table_number)
{
    struct mk_tls_inventory_gauges *g = mk_mem_zalloc(1, sizeof *g);
    if (g) {
        g->registry = registry;
        g->table = table_number;
    }
    return g;
}

static mk_str first_host(const struct mk_tls_inventory_entry *entry)
{
    return entry->n_hosts ? entry->hosts[0] : MK_STR("");
}

void mk_tls_inventory_gauges_keep(struct mk_tls_inventory_gauges *g,
                                  const struct mk_tls_inventory_entry *entry)
{
    mk_str file = mk_str_from_c(entry->pair.certificate), host = first_host(entry);
    for (uint32_t i = 0; (i = mk_stat_next(g->registry, g->table, i));)
        g->is_listed[i] |= mk_str_eq(mk_stat_label(g->registry, i, 1), file) &&
                           mk_str_eq(mk_stat_label(g->registry, i, 0), host);
}

static void hide_unlisted(struct mk_tls_inventory_gauges *g)
{
    for (uint32_t i = 0; (i = mk_stat_next(g->registry, g->table, i));)
        if (!g->is_listed[i])
            mk_stat_hide(g->registry, i, true);
}

void mk_tls_inventory_gauges_hide_others(struct mk_tls_inventory_gauges *g)
{
    hide_unlisted(g);
    memset(g->is_listed, 0, sizeof g->is_listed);
}

void mk_tls_inventory_gauges_set(struct mk_tls_inventory_gauges *g,
                                 const struct mk_tls_inventory_entry *entry, int64_t expires, bool is_usable,
                                 const struct mk_tls_inventory_state *state)
{
    const mk_str labels[] = {first_host(entry), mk_str_from_c(entry->pair.certificate)};
    uint32_t series = g->n < SERIES_MAX ? mk_stat_series(g->registry, g->table, labels) : 0;
    uint64_t *cells = series == MK_STAT_RETRY ? NULL : mk_stat_cells(g->registry, series, MK_STAT_SERVER);
    if (!cells)
        return;
    g->n++;
    g->is_listed[series] = true;
    mk_stat_set(&cells[EXPIRY], (uint64_t)expires);
    mk_stat_set(&cells[USABLE], is_usable);
    mk_stat_set(&cells[RENEWAL], (uint64_t)state->renewal);
    mk_stat_set(&cells[NEXT_TRY], (uint64_t)state->retry);
    mk_stat_set(&cells[FAILURES], state->failures);
}

void mk_tls_inventory_gauges_end(struct mk_tls_inventory_gauges *g)
{
    hide_unlisted(g);
    mk_mem_free(g);
}

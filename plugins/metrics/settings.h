/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of [METRICS], and the per-configuration and per-host data. */
#ifndef METRICS_SETTINGS_H
#define METRICS_SETTINGS_H

#include <monkey/tls.h>

#include "processes.h"
#include "request_counts.h"

enum view { VIEW_PROMETHEUS, VIEW_JSON, VIEW_PAGE, VIEW_HEALTH, VIEW_READY, VIEWS };

struct networks {
    const struct mk_network *v;
    mk_str *words; /* networks as written in the configuration */
    size_t n;
};

/* A [METRICS] section. */
struct settings {
    struct networks allow, allow_health;
    mk_str paths[VIEWS]; /* absent: no route */
    bool count, by_host;
    uint32_t viewers;           /* maximum number of viewers of the live page, in each worker */
    uint64_t ready_connections; /* a worker with more connections is not ready; 0: no limit */
    mk_str not_ready_file;      /* workers are not ready while this file exists; absent: none */
};

/* Per-configuration data. */
struct metrics {
    struct processes *processes;
    struct history *history;
    struct counts counts;
    const struct mk_certificate_list *certificates; /* NULL: no list */
};

/* Per-host data. */
struct site {
    const struct settings *settings;
    struct metrics *metrics;
    const struct label *label; /* NULL: requests are not counted */
};

extern const struct mk_conf_table metrics_table;
extern const enum view metrics_views[VIEWS]; /* the data of its routes */

int metrics_settings_load(struct mk_config *config, void **data);
int metrics_settings_host(struct mk_config *config, struct mk_vhost *host, void *data, void **host_data);
/* Returns whether one of the networks is `all`. */
bool metrics_networks_contain_all(const struct networks *n);
bool metrics_networks_contain(const struct networks *n, const struct mk_addr *peer);

#endif

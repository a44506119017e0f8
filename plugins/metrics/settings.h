/* SPDX-License-Identifier: Apache-2.0 */
/* What the configuration says, and what is made of it: once for all, and once for each host. */
#ifndef METRICS_SETTINGS_H
#define METRICS_SETTINGS_H

#include "counts.h"
#include "processes.h"

enum view { VIEW_PROMETHEUS, VIEW_JSON, VIEW_PAGE, VIEW_HEALTH, VIEW_READY, VIEWS };

struct networks {
    const struct mk_network *v;
    mk_str *words; /* as written */
    size_t n;
};

/* A [METRICS]. */
struct settings {
    struct networks allow, allow_health;
    mk_str paths[VIEWS]; /* absent: no route is added */
    bool count, by_host;
    uint32_t watchers;          /* of the live page, in each worker */
    uint64_t ready_connections; /* more of them in the worker: not ready; 0: no limit */
    mk_str not_ready_file;      /* not ready while it is there; absent: none */
};

struct label {
    mk_str name;
    struct counts *counts;
    struct label *next;
};

/* Of one configuration. */
struct metrics {
    struct processes *processes;
    uint32_t load; /* its number */
    struct label *labels;
};

/* Of one host. */
struct site {
    const struct settings *settings;
    struct metrics *metrics;
    struct counts *counts; /* NULL: nothing is counted */
};

extern const struct mk_conf_table metrics_table;
extern const struct mk_handler metrics_handler;
extern const enum view metrics_views[VIEWS]; /* the data of its routes */

int metrics_settings_load(struct mk_config *config, void **data);
int metrics_settings_host(struct mk_config *config, struct mk_host *host, void *data, void **host_data);
bool metrics_networks_have(const struct networks *n, const struct mk_peer *peer);

#endif

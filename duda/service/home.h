/* SPDX-License-Identifier: Apache-2.0 */
/* What Duda has in each worker. */
#ifndef DUDA_SERVICE_HOME_H
#define DUDA_SERVICE_HOME_H

#include <monkey/meter.h>
#include <monkey/routes.h>

#include "service/board.h"
#include "service/duda_type.h"
#include "service/lines.h"

enum { DUDA_STORES_MAX = 256, DUDA_SERVICES_MAX = 64 }; /* 64: the plugins of a configuration */

/* The settings of Duda in one configuration. */
struct duda_settings {
    struct duda_board *board;
    uint32_t said; /* in rooms */
    struct duda_rules rules;
    struct duda_visits *visits;
    mk_str stores[DUDA_STORES_MAX]; /* that sections of packages bring */
    size_t n_stores;
    const void *section; /* [DUDA] */
    const struct duda_shares *shares;
    mk_str services[DUDA_SERVICES_MAX];
    mk_str scopes[DUDA_SERVICES_MAX]; /* of each */
    size_t n_services;
    struct duda_sources sources;
    struct duda_overlap *routes; /* of services that answer in the same hosts */
    bool is_checked;
};

/* Once, before all others: the plugin that Duda is. */
void duda_home_set(const struct mk_plugin *plugin);

const struct mk_plugin *duda_home_plugin(void);

struct duda_home *duda_home(struct mk_worker *worker);

/* Logs what is in the post of the worker. */
void duda_home_report(struct duda_home *home);

int duda_home_start(struct mk_worker *worker, const struct duda_settings *settings);
void duda_home_stop(struct mk_worker *worker);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The state of Duda in each worker. */
#ifndef DUDA_SERVICE_WORKER_CTX_H
#define DUDA_SERVICE_WORKER_CTX_H

#include <monkey/meter.h>
#include <monkey/route_stats.h>
#include <sys/types.h>

#include "service/crash_table.h"
#include "service/data_checks.h"
#include "service/duda_ctx.h"
#include "service/symbolizer.h"
#include "service/topic_log.h"

enum { DUDA_STORES_MAX = 256, DUDA_SERVICES_MAX = 64 }; /* a configuration loads at most 64 plugins */

/* The settings of Duda in one configuration. */
struct duda_plugin_config {
    struct duda_crash_table *crash_table;
    uint32_t n_published; /* statistics series that counts published messages */
    struct duda_topic_log topic_log;
    struct duda_subscriber_counts_memory *subscriber_counts;
    struct duda_crash_policy rules;
    uint32_t sse_keep_alive_ms; /* 0: no comments */
    uint32_t after_tasks_max;
    struct duda_session_config *session_config;
    mk_str stores[DUDA_STORES_MAX]; /* provided by sections of packages */
    size_t n_stores;
    struct duda_data_checks data_checks;
    const void *section; /* [DUDA] */
    const struct duda_shares *shares;
    const struct duda_public_urls *public_urls;
    mk_str services[DUDA_SERVICES_MAX];
    mk_str scopes[DUDA_SERVICES_MAX]; /* one per service */
    const struct duda_service *loaded[DUDA_SERVICES_MAX];
    size_t n_services;
    struct duda_symbolizer_config sources;
    bool is_checked;
    pid_t loader; /* the process that has loaded the configuration: the master, or a program with libmonkey */
};

/* Sets the plugin that implements Duda. Call it once, before the other functions. */
void duda_worker_ctx_set_plugin(const struct mk_plugin *plugin);

const struct mk_plugin *duda_worker_ctx_plugin(void);

/* Sets the configuration for which this copy of Duda is loading; NULL: it has been loaded. Until then, its
 * settings are missing. */
void duda_worker_ctx_set_loading(const struct mk_config *config);
bool duda_worker_ctx_is_loading(const struct mk_config *config);

struct duda_worker_ctx *duda_worker_ctx(struct mk_worker *worker);

/* Logs the crash report in the worker's slot. */
void duda_worker_ctx_log_crash(struct duda_worker_ctx *worker_ctx);

int duda_worker_ctx_new(struct mk_worker *worker, const struct duda_plugin_config *settings);
void duda_worker_ctx_free(struct mk_worker *worker);

#endif

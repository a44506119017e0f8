/* SPDX-License-Identifier: Apache-2.0 */
#include "service/worker_ctx.h"

#include <dlfcn.h>
#include <errno.h>

#include "service/announced_topics.h"
#include "service/crash_report.h"
#include "service/lock_table.h"
#include "service/memory.h"
#include "service/metrics.h"
#include "service/session_store.h"
#include "service/stall_detector.h"
#include "service/terminated.h"
#include "service/topic_table.h"

enum { LOOK_MS = 1000 };

static const struct mk_plugin *self;
static const struct mk_config *loading;

void duda_worker_ctx_set_loading(const struct mk_config *config)
{
    loading = config;
}

bool duda_worker_ctx_is_loading(const struct mk_config *config)
{
    return loading == config;
}

void duda_worker_ctx_set_plugin(const struct mk_plugin *plugin)
{
    if (!self)
        self = plugin;
}

const struct mk_plugin *duda_worker_ctx_plugin(void)
{
    return self;
}

struct duda_worker_ctx *duda_worker_ctx(struct mk_worker *worker)
{
    return mk_worker_data(worker, self);
}

/* Logs each line of the report separately. */
static void log_report(struct mk_worker *worker, mk_str report)
{
    while (report.p) {
        mk_str line = mk_str_cut(&report, '\n');
        mk_worker_log(worker, MK_LOG_ERROR, "%.*s", MK_STR_ARG(line));
    }
}

static void log_crash_report(struct duda_worker_ctx *worker_ctx, struct duda_crash_slot *crash_slot)
{
    uint32_t len = atomic_exchange(&crash_slot->len, 0);
    if (!len || len > sizeof crash_slot->report)
        return;
    mk_str text = mk_str_of(crash_slot->report, len);
    log_report(worker_ctx->worker, text);
    duda_symbolizer_log_stack(worker_ctx, text);
}

void duda_worker_ctx_log_crash(struct duda_worker_ctx *worker_ctx)
{
    if (worker_ctx->crash_slot)
        log_crash_report(worker_ctx, worker_ctx->crash_slot);
}

/* Handles the crash slot left by a worker with this number, which may have died in a handler. */
static void handle_dead_worker(struct duda_worker_ctx *worker_ctx, struct duda_crash_slot *crash_slot)
{
    bool closes;
    log_crash_report(worker_ctx, crash_slot);
    struct duda_route_slot *p = duda_crash_table_count_crash(
        worker_ctx->crash_table, crash_slot, worker_ctx->rules, mk_worker_now(worker_ctx->worker), &closes);
    uint64_t *cells = p ? mk_worker_cells(worker_ctx->worker, atomic_load(&p->stats_series)) : NULL;
    if (cells)
        mk_stat_add(&cells[MK_ROUTE_CRASHES], 1);
    if (p)
        mk_worker_log(worker_ctx->worker, MK_LOG_ERROR, "the handler of %s terminated its worker%s", p->name,
                      closes ? ", and not for the first time: the route answers 503 for a while" : "");
}

/* A draining worker is not replaced: if it crashes, this worker reports it. */
static void check_dead_workers(struct mk_timer *t)
{
    struct duda_worker_ctx *worker_ctx = MK_CONTAINER(t, struct duda_worker_ctx, dead_worker_timer);
    unsigned index = mk_worker_index(worker_ctx->worker);
    for (struct duda_crash_slot *crash_slot;
         (crash_slot = duda_crash_table_take_dead_slot(worker_ctx->crash_table, index));
         duda_crash_slot_release(crash_slot))
        handle_dead_worker(worker_ctx, crash_slot);
    if (duda_crash_table_has_live_peer(worker_ctx->crash_table, index))
        mk_timer_set(&worker_ctx->dead_worker_timer, worker_ctx->worker, LOOK_MS);
}

/* The program of `monkey test` defines this function. */
static void (*find_task_counter(void))(int)
{
    void (*count)(int) = NULL;
    void *found = dlsym(RTLD_DEFAULT, "duda_test_count_task");
    memcpy(&count, &found, sizeof count);
    return count;
}

int duda_worker_ctx_new(struct mk_worker *worker, const struct duda_plugin_config *settings)
{
    struct duda_worker_ctx *worker_ctx = mk_mem_zalloc(1, sizeof *worker_ctx);
    if (!worker_ctx)
        return -ENOMEM;
    worker_ctx->worker = worker;
    mk_timer_init(&worker_ctx->dead_worker_timer, check_dead_workers);
    mk_timer_init(&worker_ctx->sse_timer, NULL);
    mk_timer_init(&worker_ctx->topic_timer, NULL);
    mk_timer_init(&worker_ctx->memory_timer, NULL);
    worker_ctx->records_traces = mk_worker_records_traces(worker);
    worker_ctx->sources = &settings->sources;
    worker_ctx->rules = &settings->rules;
    worker_ctx->sse_keep_alive_ms = settings->sse_keep_alive_ms;
    worker_ctx->after_tasks_max = settings->after_tasks_max;
    worker_ctx->count_task = find_task_counter();
    worker_ctx->session_config = settings->session_config;
    worker_ctx->scopes = settings->scopes;
    worker_ctx->n_scopes = settings->n_services;
    worker_ctx->crash_table = settings->crash_table;
    worker_ctx->n_published = mk_worker_cells(worker, settings->n_published);
    worker_ctx->topic_log = &settings->topic_log;
    check_dead_workers(&worker_ctx->dead_worker_timer);
    worker_ctx->crash_slot = duda_crash_table_acquire_slot(settings->crash_table, mk_worker_index(worker));
    duda_subscriber_counts_open(&worker_ctx->subscriber_counts, settings->subscriber_counts,
                                settings->crash_table, worker_ctx->crash_slot);
    duda_crash_report_install(worker_ctx);
    worker_ctx->stall_detector = duda_stall_detector_start(worker_ctx, duda_memory_is_dev_mode(worker_ctx));
    mk_worker_set_data(worker, self, worker_ctx);
    return 0;
}

void duda_worker_ctx_free(struct mk_worker *worker)
{
    struct duda_worker_ctx *worker_ctx = duda_worker_ctx(worker);
    if (!worker_ctx)
        return;
    duda_stall_detector_stop(worker_ctx->stall_detector);
    duda_crash_report_uninstall();
    duda_symbolizer_cancel(worker_ctx);
    duda_topic_table_free(worker_ctx->topics);
    duda_announced_topics_free(worker_ctx->announced);
    duda_lock_table_free(worker_ctx->locks);
    duda_metrics_cache_free(worker_ctx->metrics);
    mk_timer_stop(&worker_ctx->dead_worker_timer);
    mk_timer_stop(&worker_ctx->sse_timer);
    mk_timer_stop(&worker_ctx->topic_timer);
    mk_timer_stop(&worker_ctx->memory_timer);
    mk_buf_free(&worker_ctx->spare);
    duda_terminated_free_all(worker_ctx);
    for (size_t i = 0; i < MK_LEN(worker_ctx->stacks); i++)
        duda_stack_pool_free(worker_ctx->stacks[i]);
    duda_memory_free_cache(worker_ctx);
    duda_session_store_free_all(worker_ctx);
    duda_crash_slot_release(worker_ctx->crash_slot);
    mk_mem_free(worker_ctx);
    mk_worker_set_data(worker, self, NULL);
}

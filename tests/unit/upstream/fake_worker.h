/* SPDX-License-Identifier: Apache-2.0 */
/* A fake worker for src/upstream: its loop is real, the test can move its clock, it counts messages to other
 * workers, and runs offloaded work when the test asks for it. */
#ifndef MK_UNIT_UPSTREAM_FAKE_WORKER_H
#define MK_UNIT_UPSTREAM_FAKE_WORKER_H

#include <monkey/attempt.h>
#include <stdio.h>
#include <sys/mman.h>

#include "base/stats.h"
#include "event/loop.h"
#include "unit/test.h"
#include "upstream/health.h"
#include "upstream/pool.h"

struct mk_worker {
    struct mk_loop loop;
    void *data;
    unsigned index;
    bool is_draining;
    unsigned n_messages;
    unsigned last_to;
    int send_error; /* result of mk_worker_send() */
    uint32_t last_message;
    unsigned n_logged;
    enum mk_log_level level; /* level of the last log line */
    char logged[500];
    bool has_threads;
    bool lacks_memory;                           /* offloading fails */
    void (*work)(void *ctx), (*done)(void *ctx); /* one job at a time */
    void *work_ctx;
};

const struct mk_plugin MK_PLUGIN_OF(upstream);
const struct mk_plugin MK_PLUGIN_OF(upstream) = {.name = "upstream"};

unsigned mk_worker_index(const struct mk_worker *w)
{
    return w->index;
}

bool mk_worker_is_draining(const struct mk_worker *w)
{
    return w->is_draining;
}

struct mk_attempt *mk_request_add_attempt(struct mk_request *request)
{
    (void)request;
    return NULL;
}

uint64_t mk_worker_now_ms(const struct mk_worker *w)
{
    return w->loop.now_ms;
}

void *mk_worker_data(const struct mk_worker *w, const struct mk_plugin *plugin)
{
    assert_ptr_equal(plugin, &MK_PLUGIN_OF(upstream));
    return w->data;
}

void mk_worker_log(struct mk_worker *w, enum mk_log_level level, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(w->logged, sizeof w->logged, fmt, args);
    va_end(args);
    w->level = level;
    w->n_logged++;
}

void mk_timer_set(struct mk_timer *t, struct mk_worker *w, uint32_t ms)
{
    mk_loop_set_timer(&w->loop, t, ms);
}

struct mk_watcher *mk_watcher_new(struct mk_worker *w, int fd, unsigned events,
                                  void (*on_ready)(void *ctx, unsigned which), void *ctx)
{
    return mk_loop_new_watcher(&w->loop, fd, events, on_ready, ctx);
}

struct mk_deferred *mk_deferred_new(struct mk_worker *w, void (*on_end)(void *ctx), void *ctx)
{
    return mk_loop_new_deferred(&w->loop, on_end, ctx);
}

struct mk_thread_pool {
    struct mk_worker *worker;
};

struct mk_thread_pool *mk_thread_pool_new(struct mk_worker *w, unsigned n, unsigned waiting_max)
{
    assert_true(n > 0 && waiting_max > 0);
    struct mk_thread_pool *t = w->lacks_memory ? NULL : mk_mem_alloc(sizeof *t);
    if (t)
        t->worker = w;
    return t;
}

int mk_worker_offload(struct mk_worker *w, void (*work)(void *ctx), void (*done)(void *ctx), void *ctx)
{
    if (!w->has_threads)
        return -EAGAIN;
    assert_null(w->done);
    w->work = work;
    w->done = done;
    w->work_ctx = ctx;
    return 0;
}

int mk_thread_pool_submit(struct mk_thread_pool *t, void (*work)(void *ctx), void (*done)(void *ctx),
                          void *ctx)
{
    return mk_worker_offload(t->worker, work, done, ctx);
}

/* Runs the offloaded work and its completion callback. */
static inline void end_work(struct mk_worker *w)
{
    void (*done)(void *ctx) = w->done;
    w->done = NULL;
    if (!done)
        return;
    w->work(w->work_ctx);
    done(w->work_ctx);
}

void mk_thread_pool_free(struct mk_thread_pool *t)
{
    if (t)
        end_work(t->worker);
    mk_mem_free(t);
}

int mk_worker_send(struct mk_worker *w, const struct mk_plugin *plugin, unsigned to, mk_str message)
{
    (void)plugin;
    assert_true(message.len >= sizeof w->last_message);
    memcpy(&w->last_message, message.p, sizeof w->last_message);
    w->last_to = to;
    w->n_messages++;
    return w->send_error;
}

static inline void run_once(struct mk_worker *w)
{
    assert_int_equal(mk_loop_run_once(&w->loop, 0), 0);
}

static inline void *new_shared(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    return p;
}

void *mk_config_shared(struct mk_config *c, const char *name, size_t size)
{
    (void)c, (void)name;
    return new_shared(size);
}

/* Only one configuration at a time is supported. */
static struct mk_stat_registry *registry;

struct mk_stat_registry *mk_config_statistics(struct mk_config *c)
{
    (void)c;
    if (!registry)
        registry = new_shared(mk_stat_size());
    return registry;
}

uint64_t *mk_worker_cells(const struct mk_worker *w, uint32_t series)
{
    return mk_stat_cells(registry, series, w->index + 1);
}

/* The published statistics of a backend, summed across all workers. */
struct backend_stats {
    uint64_t open, idle, waiting, requests, failures, checks, checks_failed, state, latency_us;
};

static inline struct backend_stats sum_stats(const struct mk_upstream_stats *s, unsigned slot)
{
    uint32_t series = mk_upstream_stats_health(s, slot)->series;
#define SUM(cell) mk_stat_sum(s->registry, series, cell)
    return (struct backend_stats){.open = SUM(MK_UPSTREAM_STATS_BUSY) + SUM(MK_UPSTREAM_STATS_IDLE),
                                  .idle = SUM(MK_UPSTREAM_STATS_IDLE),
                                  .waiting = SUM(MK_UPSTREAM_STATS_WAITING),
                                  .requests = SUM(MK_UPSTREAM_STATS_REQUESTS),
                                  .failures = SUM(MK_UPSTREAM_STATS_FAILURES),
                                  .checks = SUM(MK_UPSTREAM_STATS_CHECKS),
                                  .checks_failed = SUM(MK_UPSTREAM_STATS_CHECKS_FAILED),
                                  .state = SUM(MK_UPSTREAM_STATS_STATE),
                                  .latency_us = SUM(MK_UPSTREAM_STATS_LATENCY)};
#undef SUM
}

int mk_config_shared_fd(struct mk_config *c, const char *name, int (*make)(void))
{
    (void)c, (void)name;
    return make();
}

int mk_config_hash_key(struct mk_config *c, const char *purpose, struct mk_hash_key *out)
{
    (void)c, (void)purpose;
    *out = (struct mk_hash_key){1, 2};
    return 0;
}

/* Returns whether the row has been woken since the last call. */
static inline bool was_woken(const struct mk_conn_limit *l, unsigned row)
{
    uint64_t woken[MK_CONN_LIMIT_WORDS];
    return mk_conn_limit_pop_woken(l, row, woken);
}

static inline void free_shared(struct mk_upstream_stats *stats, struct mk_conn_limit *limit)
{
    munmap(stats->registry, mk_stat_size());
    registry = NULL;
    munmap(stats->memory, sizeof *stats->memory);
    munmap(limit->memory, sizeof *limit->memory);
}

#endif

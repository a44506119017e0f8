/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of a worker for its plugins (data, time, events, threads), and the start and stop of plugins. */

#include <stdio.h>

#include "setup/plugins.h"
#include "worker/worker.h"
#include "worker/worker_async.h"

enum {
    OFFLOADS_MAX = 1024,                 /* maximum number of waiting and running jobs */
    TIMER_MS_MAX = 20 * 24 * 3600 * 1000 /* maximum delay of a timer; the timer wheel spans 24 days */
};

/* ---- Time and events ---- */

uint64_t mk_worker_now_ms(const struct mk_worker *w)
{
    return w->loop.now_ms;
}

/* Unix time in seconds; mk_worker_now_ms() is monotonic. */
int64_t mk_worker_now(const struct mk_worker *w)
{
    return w->loop.now_unix;
}

void mk_timer_set(struct mk_timer *t, struct mk_worker *w, uint32_t ms)
{
    mk_loop_set_timer(&w->loop, t, ms < TIMER_MS_MAX ? ms : TIMER_MS_MAX);
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

/* ---- Work in other threads ---- */

int mk_worker_offload(struct mk_worker *w, void (*work)(void *ctx), void (*done)(void *ctx), void *ctx)
{
    return mk_thread_pool_submit(&w->thread_pool, work, done, ctx);
}

struct mk_thread_pool *mk_thread_pool_new(struct mk_worker *w, unsigned n, unsigned waiting_max)
{
    return mk_thread_pool_new_on(&w->loop, n, waiting_max);
}

/* ---- Calls from other threads ---- */

int mk_worker_post(struct mk_worker *w, void (*fn)(void *ctx), void *ctx)
{
    return mk_post_queue_push(&w->inbox, fn, ctx);
}

void mk_worker_run_posts(struct mk_worker *w)
{
    mk_post_queue_run(&w->inbox);
}

static void on_wakeup(struct mk_loop *loop)
{
    struct mk_worker *w = MK_CONTAINER(loop, struct mk_worker, loop);
    mk_worker_run_posts(w);
    if (w->on_wakeup)
        w->on_wakeup(w);
}

/* ---- Start and end of the asynchronous operations ---- */

mk_err mk_worker_async_init(struct mk_worker *w)
{
    mk_post_queue_init(&w->inbox, &w->loop);
    w->loop.on_wakeup = on_wakeup;
    return mk_thread_pool_init(&w->thread_pool, &w->loop, MK_OFFLOAD_THREADS,
                               OFFLOADS_MAX - MK_OFFLOAD_THREADS);
}

void mk_worker_async_fini(struct mk_worker *w)
{
    w->ending = true;
    mk_thread_pool_fini(&w->thread_pool); /* first, because its completion callbacks may post */
    mk_post_queue_close(&w->inbox);
    mk_loop_run_tasks(&w->loop);
}

/* ---- Plugins ---- */

void mk_worker_set_data(struct mk_worker *w, const struct mk_plugin *plugin, void *data)
{
    size_t i = mk_plugins_index_of(w->generation, plugin);
    if (i < w->generation->n_plugins)
        w->plugin_data[i] = data;
}

static size_t recent_slot(const struct mk_plugin *plugin)
{
    uintptr_t address = (uintptr_t)plugin;
    return (address >> 6 ^ address >> 12) % MK_WORKER_RECENT_PLUGINS;
}

MK_NOINLINE static void *find_plugin_data(struct mk_worker *w, const struct mk_plugin *plugin)
{
    size_t i = mk_plugins_index_of(w->generation, plugin);
    if (i == w->generation->n_plugins)
        return NULL;
    __atomic_store_n(&w->recent_plugins[recent_slot(plugin)], (uint8_t)i, __ATOMIC_RELAXED);
    return w->plugin_data[i];
}

/* Requests often read the data of the same few plugins: their indexes are tried first. */
void *mk_worker_data(const struct mk_worker *w, const struct mk_plugin *plugin)
{
    size_t i = __atomic_load_n(&w->recent_plugins[recent_slot(plugin)], __ATOMIC_RELAXED);
    if (MK_LIKELY(plugin && i < w->generation->n_plugins &&
                  mk_hook_is_of_plugin(w->generation->plugins_by_order[i]->object.plugin, plugin)))
        return w->plugin_data[i];
    return find_plugin_data((struct mk_worker *)(uintptr_t)w, plugin);
}

const struct mk_plugin *mk_worker_plugin_at(const struct mk_worker *w, size_t i)
{
    const struct mk_loaded_plugin *l = mk_plugins_at(w->generation, i);
    return l ? l->object.plugin : NULL;
}

void mk_worker_set_activity(struct mk_worker *w, const char *what, const char *of)
{
    struct mk_counters *n = w->manager.counters;
    n->moves = 0; /* marks the line as something other than a request */
    snprintf(n->line, sizeof n->line, "%s%s", what, of);
    mk_loop_heartbeat(&w->loop, true);
}

mk_err mk_worker_start_plugins(struct mk_worker *w)
{
    for (; w->n_started < w->generation->n_plugins; w->n_started++) {
        const struct mk_loaded_plugin *l = mk_plugins_at(w->generation, w->n_started);
        mk_worker_set_activity(w, "in worker_start() of ", l->object.plugin->name);
        int e = l->object.plugin->worker_start ? l->object.plugin->worker_start(w, l->data) : 0;
        if (e) {
            mk_log_error(w->web.log, "the plugin %s cannot start in a worker: %s", l->object.plugin->name,
                         mk_err_text(e));
            return e;
        }
    }
    return 0;
}

void mk_worker_drain_plugins(struct mk_worker *w)
{
    for (size_t i = 0; i < w->n_started; i++) {
        const struct mk_loaded_plugin *l = mk_plugins_at(w->generation, i);
        if (l->object.plugin->worker_drain)
            l->object.plugin->worker_drain(w, l->data);
    }
}

void mk_worker_release_memory_of_plugins(struct mk_worker *w, unsigned what)
{
    for (size_t i = 0; i < w->n_started; i++) {
        const struct mk_loaded_plugin *l = mk_plugins_at(w->generation, i);
        if (l->object.plugin->on_release_memory)
            l->object.plugin->on_release_memory(w, what, l->data);
    }
}

int mk_worker_run_command(struct mk_worker *w, mk_str plugin, mk_str words, struct mk_buf *out,
                          const struct mk_command_end *end)
{
    for (size_t i = 0; i < w->n_started; i++) {
        const struct mk_loaded_plugin *l = mk_plugins_at(w->generation, i);
        const struct mk_plugin *p = l->object.plugin;
        if (p->on_command && mk_str_eq(plugin, mk_str_from_c(p->name)))
            return p->on_command(w, words, out, end, l->data);
    }
    return -ENOENT;
}

void mk_worker_notify_exit(struct mk_worker *w)
{
    for (size_t i = 0; i < w->n_started; i++) {
        const struct mk_loaded_plugin *l = mk_plugins_at(w->generation, i);
        if (l->object.plugin->on_worker_exit)
            l->object.plugin->on_worker_exit(w, l->data);
    }
}

/* Calls the plugins in the reverse order of the list, in which a plugin follows the plugins that it needs: it may still
 * use them, whatever their order in on_request is. */
static void end_in_reverse(struct mk_worker *w, const struct mk_loaded_plugin *l, bool stops)
{
    if (!l)
        return;
    end_in_reverse(w, l->next, stops);
    const struct mk_plugin *p = l->object.plugin;
    void (*end)(struct mk_worker *, void *) = stops ? p->worker_stop : p->worker_cancel;
    if (!end || mk_plugins_index_of(w->generation, p) >= w->n_started)
        return;
    mk_worker_set_activity(w, stops ? "in worker_stop() of " : "in worker_cancel() of ", p->name);
    end(w, l->data);
}

void mk_worker_cancel_plugins(struct mk_worker *w)
{
    end_in_reverse(w, w->generation->plugins, false);
}

void mk_worker_stop_plugins(struct mk_worker *w)
{
    end_in_reverse(w, w->generation->plugins, true);
    w->n_started = 0;
}

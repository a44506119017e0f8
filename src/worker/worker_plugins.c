/* SPDX-License-Identifier: Apache-2.0 */
/* Starting and stopping plugins in a worker, and their data. */
#include <stdio.h>

#include "setup/plugins.h"
#include "worker/worker.h"

void mk_worker_set_data(struct mk_worker *w, const struct mk_plugin *plugin, void *data)
{
    size_t i = mk_plugins_index_of(w->generation, plugin);
    if (i < w->generation->n_plugins)
        w->plugin_data[i] = data;
}

void *mk_worker_data(const struct mk_worker *w, const struct mk_plugin *plugin)
{
    size_t i = mk_plugins_index_of(w->generation, plugin);
    return i < w->generation->n_plugins ? w->plugin_data[i] : NULL;
}

const struct mk_plugin *mk_worker_plugin_at(const struct mk_worker *w, size_t i)
{
    const struct mk_loaded_plugin *l = mk_plugins_at(w->generation, i);
    return l ? l->object.plugin : NULL;
}

void mk_worker_set_activity(struct mk_worker *w, const char *what, const char *of)
{
    struct mk_counters *n = w->service.counters;
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

void mk_worker_notify_exit(struct mk_worker *w)
{
    for (size_t i = 0; i < w->n_started; i++) {
        const struct mk_loaded_plugin *l = mk_plugins_at(w->generation, i);
        if (l->object.plugin->on_worker_exit)
            l->object.plugin->on_worker_exit(w, l->data);
    }
}

void mk_worker_stop_plugins(struct mk_worker *w)
{
    while (w->n_started > 0) {
        const struct mk_loaded_plugin *l = mk_plugins_at(w->generation, --w->n_started);
        mk_worker_set_activity(w, "in worker_stop() of ", l->object.plugin->name);
        if (l->object.plugin->worker_stop)
            l->object.plugin->worker_stop(w, l->data);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/worker_channels.h"

#include "os/fd.h"
#include "os/fd_passing.h"
#include "setup/plugins.h"

static bool is_any_plugin_receiving(const struct mk_config_generation *g)
{
    for (size_t i = 0; i < g->n_plugins; i++)
        if (mk_plugins_at(g, i)->object.plugin->on_message)
            return true;
    return false;
}

mk_err mk_worker_channels_open(struct mk_config_generation *g)
{
    if (!is_any_plugin_receiving(g))
        return 0;
    g->worker_channels = mk_arena_zalloc(&g->arena, g->server.workers, sizeof *g->worker_channels);
    mk_err e = g->worker_channels ? 0 : -ENOMEM;
    for (; g->n_worker_channels < g->server.workers && !e; g->n_worker_channels += !e) {
        struct mk_worker_channel *m = &g->worker_channels[g->n_worker_channels];
        e = mk_fd_passing_pair(&m->send_fd, &m->receive_fd);
    }
    return e;
}

void mk_worker_channels_keep_own(struct mk_config_generation *g, unsigned index)
{
    for (unsigned i = 0; i < g->n_worker_channels; i++)
        if (i != index)
            mk_fd_close(&g->worker_channels[i].receive_fd);
}

void mk_worker_channels_close(struct mk_config_generation *g)
{
    for (; g->n_worker_channels; g->n_worker_channels--) {
        mk_fd_close(&g->worker_channels[g->n_worker_channels - 1].send_fd);
        mk_fd_close(&g->worker_channels[g->n_worker_channels - 1].receive_fd);
    }
}

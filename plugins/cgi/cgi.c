/* SPDX-License-Identifier: Apache-2.0 */
/* Responds to requests with the output of programs (RFC 3875). */
#include "handler.h"

#include <errno.h>

#include <monkey/version.h>

struct cgi {
    unsigned n_pools; /* number of pools in each worker */
};

MK_PLUGIN_DECLARE(cgi);

/* ---- The configuration ---- */

static int load_plugin(struct mk_config *config, void **data)
{
    *data = mk_config_alloc(config, sizeof(struct cgi));
    mk_config_enable_body_spool(config);
    return *data ? 0 : -ENOMEM;
}

static int bind_host(struct mk_config *config, struct mk_vhost *host, void *data, void **host_data)
{
    struct cgi *cgi = data;
    (void)host;
    *host_data = cgi_settings_load(config, &cgi->n_pools);
    return *host_data ? 0 : -ENOMEM;
}

/* ---- The worker ---- */

static int worker_start(struct mk_worker *worker, void *data)
{
    const struct cgi *cgi = data;
    struct cgi_pool *pools = mk_mem_zalloc(cgi->n_pools + 1, sizeof *pools);
    if (!pools)
        return -ENOMEM;
    for (unsigned i = 0; i < cgi->n_pools; i++)
        cgi_pool_init(&pools[i], worker);
    mk_worker_set_data(worker, &MK_PLUGIN_OF(cgi), pools);
    return 0;
}

static void worker_stop(struct mk_worker *worker, void *data)
{
    const struct cgi *cgi = data;
    struct cgi_pool *pools = mk_worker_data(worker, &MK_PLUGIN_OF(cgi));
    for (unsigned i = 0; pools && i < cgi->n_pools; i++)
        while (pools[i].processes)
            cgi_process_kill(pools[i].processes);
    mk_mem_free(pools);
}

/* ---- A request ---- */

static enum mk_verdict handle_request(struct mk_request *request, struct mk_response *response, void *data)
{
    const struct cgi_settings *settings = mk_vhost_data(mk_request_vhost(request), &MK_PLUGIN_OF(cgi));
    struct cgi_pool *pools = mk_worker_data(mk_request_worker(request), &MK_PLUGIN_OF(cgi));
    return cgi_handler_run(request, response, settings, data, &pools[settings->pool - 1]);
}

static const struct mk_handler handler = {
    .name = "cgi",
    .syntax = "[INTERPRETER [MEDIA-TYPE]]",
    .handle = handle_request,
    .bind = cgi_settings_bind,
    .traits = MK_HANDLER_FILES,
};

static const struct mk_conf_table *const sections[] = {&cgi_table, NULL};
static const struct mk_handler *const handlers[] = {&handler, NULL};

MK_PLUGIN(cgi) = {
    MK_PLUGIN_HEAD,
    .name = "cgi",
    .version = MONKEY_VERSION,
    .help = "Answers requests with the output of programs (RFC 3875).",
    .sections = sections,
    .handlers = handlers,
    .load = load_plugin,
    .host = bind_host,
    .worker_start = worker_start,
    .worker_stop = worker_stop,
};

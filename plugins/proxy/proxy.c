/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <monkey/plugin.h>
#include <monkey/worker.h>

#include "call.h"
#include "mirror.h"

MK_PLUGIN_DECLARE(proxy);

static bool bind(const struct mk_conf_spot *spot, mk_str words, void **data)
{
    return proxy_route_bind(&MK_PLUGIN_OF(proxy), spot, words, data);
}

static int start(struct mk_worker *worker, void *data)
{
    (void)data;
    struct proxy_mirrors *m = proxy_mirrors_new(worker);
    mk_worker_set_data(worker, &MK_PLUGIN_OF(proxy), m);
    return m ? 0 : -ENOMEM;
}

static void stop(struct mk_worker *worker, void *data)
{
    (void)data;
    proxy_mirrors_free(mk_worker_data(worker, &MK_PLUGIN_OF(proxy)));
}

static const struct mk_handler handler = {
    .name = "proxy",
    .form = proxy_route_form,
    .handle = proxy_call_handle,
    .bind = bind,
    .traits = MK_HANDLER_FORWARDS,
};

static const struct mk_handler *const handlers[] = {&handler, NULL};
static const char *const needs[] = {"upstream", NULL};

MK_PLUGIN(proxy) = {
    MK_PLUGIN_HEAD,        .name = "proxy",
    .version = MK_VERSION, .help = "Passes requests to HTTP servers behind this one.",
    .handlers = handlers,  .needs = needs,
    .worker_start = start, .worker_stop = stop,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin that services need: it brings the functions of Duda. */
#include "service/home.h"

MK_PLUGIN_DECLARE(duda);

static int load(struct mk_config *config, void **data)
{
    (void)config, (void)data;
    duda_home_set(&MK_PLUGIN_OF(duda));
    return 0;
}

static int worker_start(struct mk_worker *worker, void *data)
{
    (void)data;
    return duda_home_start(worker);
}

static void worker_stop(struct mk_worker *worker, void *data)
{
    (void)data;
    duda_home_stop(worker);
}

MK_PLUGIN(duda) = {
    MK_PLUGIN_HEAD,
    .name = "duda",
    .version = "2.0",
    .help = "Web services in C.",
    .load = load,
    .worker_start = worker_start,
    .worker_stop = worker_stop,
};

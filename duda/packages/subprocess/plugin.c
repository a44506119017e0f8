/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: gives each worker a spawner, which starts any program. */
#include <errno.h>
#include <monkey/meter.h>

#include "common/package.h"
#include "process.h"

static int load_plugin(struct mk_config *config, void **data)
{
    uint32_t *meter = mk_config_alloc(config, sizeof *meter);
    if (!meter)
        return -ENOMEM;
    *meter = mk_meter_get(config, MK_STR("subprocess"), MK_STR("main"));
    *data = meter;
    mk_config_allow_program(config, NULL, NULL, &(struct mk_program){.path = "/"}); /* services choose */
    return 0;
}

static int start_spawner_in_worker(struct mk_worker *w, void *data)
{
    mk_worker_set_data(w, &MK_PLUGIN_OF(duda_subprocess), mk_worker_cells(w, *(const uint32_t *)data));
    return 0;
}

PACKAGE_PLUGIN(subprocess, "Runs other programs for Duda services.", .load = load_plugin,
               .worker_start = start_spawner_in_worker, .needs = PACKAGE_NEEDS("duda"));

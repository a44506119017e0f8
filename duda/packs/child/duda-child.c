/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: each worker gets a spawner. */
#include <monkey/plugin.h>

MK_PLUGIN_DECLARE(duda_child);

static int load(struct mk_config *config, void **data)
{
    (void)data;
    mk_config_want_children(config);
    return 0;
}

static const char *const needs[] = {"duda", NULL};

MK_PLUGIN(duda_child) = {
    MK_PLUGIN_HEAD,        .name = "duda-child",
    .version = MK_VERSION, .help = "Other programs for services of Duda.",
    .load = load,          .needs = needs,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/plugin_list.h"

#include "setup/config_generation_type.h"
#include "web/hooks.h"

const struct mk_loaded_plugin *mk_plugin_list_find(const struct mk_config_generation *g,
                                                   const struct mk_plugin *plugin)
{
    const struct mk_loaded_plugin *l = g->plugins;
    while (l && !mk_hook_is_of_plugin(l->object.plugin, plugin))
        l = l->next;
    return l;
}

const struct mk_loaded_plugin *mk_plugin_list_find_name(const struct mk_config_generation *g,
                                                        const char *name)
{
    const struct mk_loaded_plugin *l = g->plugins;
    while (l && strcmp(l->object.plugin->name, name) != 0)
        l = l->next;
    return l;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/loaded.h"

#include "settings/generation_type.h"
#include "web/hooks.h"

const struct mk_loaded *mk_loaded_find(const struct mk_generation *g, const struct mk_plugin *plugin)
{
    const struct mk_loaded *l = g->plugins;
    while (l && !mk_hook_is_of(l->object.plugin, plugin))
        l = l->next;
    return l;
}

const struct mk_loaded *mk_loaded_named(const struct mk_generation *g, const char *name)
{
    const struct mk_loaded *l = g->plugins;
    while (l && strcmp(l->object.plugin->name, name) != 0)
        l = l->next;
    return l;
}

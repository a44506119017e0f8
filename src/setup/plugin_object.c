/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/plugin_object.h"

#include "base/mem.h"
#include "setup/builtin.h"
#include "setup/config_generation_type.h"
#include "setup/plugin_file.h"
#include "web/hooks.h"

/* Weak: the build of the program defines the list of built-in plugins; unit tests link without it. */
#pragma weak mk_builtin_plugins

static const struct mk_plugin *const *builtin_plugins(void)
{
    static const struct mk_plugin *const none[] = {NULL};
    const struct mk_plugin *const *all = mk_builtin_plugins;
    return all ? all : none;
}

static const struct mk_plugin *find_builtin_plugin(mk_str name)
{
    const struct mk_plugin *const *p = builtin_plugins();
    while (*p && !mk_str_eq(mk_str_from_c((*p)->name), name))
        p++;
    return *p;
}

bool mk_plugin_object_open(struct mk_plugin_object *o, mk_str name, char message[MK_PLUGIN_OBJECT_ERROR_MAX])
{
    *o = (struct mk_plugin_object){0};
    if (mk_str_find(name, '/') != MK_STR_NONE)
        return mk_plugin_file_open(o, name, message);
    o->plugin = find_builtin_plugin(name); /* takes precedence over a file of that name */
    return o->plugin || mk_plugin_file_open_by_name(o, name, message);
}

bool mk_plugin_object_open_needed(struct mk_plugin_object *o, const struct mk_plugin_object *by, mk_str name,
                                  char message[MK_PLUGIN_OBJECT_ERROR_MAX])
{
    char beside[PATH_MAX];
    if (!find_builtin_plugin(name) && mk_plugin_file_is_beside(by, name, beside))
        name = mk_str_from_c(beside);
    return mk_plugin_object_open(o, name, message);
}

bool mk_plugin_object_from_program(struct mk_plugin_object *o, const struct mk_plugin *plugin,
                                   char message[MK_PLUGIN_OBJECT_ERROR_MAX])
{
    *o = (struct mk_plugin_object){.plugin = plugin};
    return mk_plugin_check(plugin, message) && mk_plugin_check_copy_to_full_size(o, message);
}

void mk_plugin_object_close(struct mk_plugin_object *o)
{
    if (o->handle)
        mk_plugin_file_close(o);
    mk_mem_free(o->widened);
    *o = (struct mk_plugin_object){0};
}

/* ---- All available plugins ---- */

struct listing {
    bool (*each)(const struct mk_plugin_object *o, void *ctx);
    void *ctx;
};

static bool list_unless_builtin(const struct mk_plugin_object *o, void *ctx)
{
    const struct listing *l = ctx;
    return find_builtin_plugin(mk_str_from_c(o->plugin->name)) || l->each(o, l->ctx);
}

void mk_plugin_object_for_each(bool (*each)(const struct mk_plugin_object *o, void *ctx), void *ctx)
{
    for (const struct mk_plugin *const *p = builtin_plugins(); *p; p++)
        if (!each(&(struct mk_plugin_object){.plugin = *p}, ctx))
            return;
    mk_plugin_file_for_each(list_unless_builtin, &(struct listing){each, ctx});
}

/* ---- Plugins of a generation ---- */

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

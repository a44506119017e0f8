/* SPDX-License-Identifier: Apache-2.0 */
/* Finds plugins, built in or in object files, and validates them before any of their code runs. Also finds
 * the loaded plugins of a generation. */
#ifndef MK_SETUP_PLUGIN_OBJECT_H
#define MK_SETUP_PLUGIN_OBJECT_H

#include "setup/plugin_check.h"

/* Opens a plugin. `name` is a word ("security": built in, or monkey-security.so next to the program or in the
 * plugin folder) or a file name with a slash. False: it failed; `error` holds the reason. Each file is first
 * loaded in a child process, because a broken file could crash the process. */
bool mk_plugin_object_open(struct mk_plugin_object *o, mk_str name,
                           char error[MK_PLUGIN_OBJECT_ERROR_MAX]) MK_MUST_USE;
/* Opens a dependency of `by` by name: a file in the folder of `by` takes precedence over the plugin folders,
 * but not over a built-in plugin. */
bool mk_plugin_object_open_needed(struct mk_plugin_object *o, const struct mk_plugin_object *by, mk_str name,
                                  char error[MK_PLUGIN_OBJECT_ERROR_MAX]) MK_MUST_USE;
/* Validates a plugin of the embedding program, and stores it in *o. False: it is invalid; `error` holds the
 * reason. */
bool mk_plugin_object_from_program(struct mk_plugin_object *o, const struct mk_plugin *plugin,
                                   char error[MK_PLUGIN_OBJECT_ERROR_MAX]) MK_MUST_USE;
void mk_plugin_object_close(struct mk_plugin_object *o);

/* Calls each() for every plugin that can be opened by name until each() returns false; closes each object
 * afterwards. */
void mk_plugin_object_for_each(bool (*each)(const struct mk_plugin_object *o, void *ctx), void *ctx);

/* ---- Plugins of a generation ---- */

struct mk_loaded_plugin {
    struct mk_loaded_plugin *next; /* in `Load` order */
    struct mk_plugin_object object;
    const struct mk_conf_entry *entry; /* its `Load` entry */
    void *data;                        /* data that load() of the plugin has set */
    bool started;                      /* load() has succeeded, so unload() must be called */
};

struct mk_config_generation;

/* Finds a plugin by its address (mk_hook_is_of_plugin) or by name; NULL: not loaded. */
const struct mk_loaded_plugin *mk_plugin_list_find(const struct mk_config_generation *g,
                                                   const struct mk_plugin *plugin);
const struct mk_loaded_plugin *mk_plugin_list_find_name(const struct mk_config_generation *g,
                                                        const char *name);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin that a configuration loads. */
#ifndef MK_SETUP_PLUGIN_LIST_H
#define MK_SETUP_PLUGIN_LIST_H

#include "conf/tree.h"
#include "setup/plugin_object.h"

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

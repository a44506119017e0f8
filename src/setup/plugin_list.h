/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin that a configuration loads. */
#ifndef MK_SETUP_PLUGIN_LIST_H
#define MK_SETUP_PLUGIN_LIST_H

#include "conf/tree.h"
#include "setup/plugin_object.h"

struct mk_loaded_plugin {
    struct mk_loaded_plugin *next; /* in the order of `Load` */
    struct mk_plugin_object object;
    const struct mk_conf_entry *entry; /* its `Load` */
    void *data;                        /* what its load() set */
    bool started;                      /* load() returned 0, so unload() must be called */
};

struct mk_config_generation;

/* The one that knows itself by this address (mk_hook_is_of_plugin), or that has this name; NULL if it is not loaded.
 */
const struct mk_loaded_plugin *mk_plugin_list_find(const struct mk_config_generation *g,
                                                   const struct mk_plugin *plugin);
const struct mk_loaded_plugin *mk_plugin_list_find_name(const struct mk_config_generation *g,
                                                        const char *name);

#endif

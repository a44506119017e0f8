/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin that a configuration loads. */
#ifndef MK_SETUP_LOADED_H
#define MK_SETUP_LOADED_H

#include "conf/tree.h"
#include "setup/object.h"

struct mk_loaded {
    struct mk_loaded *next; /* in the order of `Load` */
    struct mk_object object;
    const struct mk_conf_entry *entry; /* its `Load` */
    void *data;                        /* what its load() set */
    bool started;                      /* load() returned 0, so unload() must be called */
};

struct mk_generation;

/* The one that knows itself by this address (mk_hook_is_of), or that has this name; NULL if it is not loaded.
 */
const struct mk_loaded *mk_loaded_find(const struct mk_generation *g, const struct mk_plugin *plugin);
const struct mk_loaded *mk_loaded_named(const struct mk_generation *g, const char *name);

#endif

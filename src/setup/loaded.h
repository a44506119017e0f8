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

#endif

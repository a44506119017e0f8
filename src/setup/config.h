/* SPDX-License-Identifier: Apache-2.0 */
/* Defines struct mk_config, which is opaque to plugins: they pass it to the functions of monkey/config.h
 * while a configuration is loaded. */
#ifndef MK_SETUP_CONFIG_H
#define MK_SETUP_CONFIG_H

#include "setup/config_generation_type.h"
#include "setup/plugin_object.h"

struct mk_config {
    struct mk_config_generation *generation;
    struct mk_conf_report *report;
    const struct mk_loaded_plugin *plugin; /* plugin whose function is running */
    struct mk_vhost_config *site;          /* NULL in load() */
    const struct mk_conf_entry *entry;     /* route whose handler is being bound, or NULL */
};

#endif

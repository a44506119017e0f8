/* SPDX-License-Identifier: Apache-2.0 */
/* [PLUGINS]: opens the configured plugins and their dependencies. */
#ifndef MK_SETUP_PLUGIN_LOAD_H
#define MK_SETUP_PLUGIN_LOAD_H

#include "setup/config_generation_type.h"

/* Adds the plugins to g->plugins, those of an embedding program first. Errors go to the report. */
void mk_plugin_load_configured(struct mk_config_generation *g, struct mk_conf_report *report);
/* Adds the plugins of g->embedding, which are those of the library itself: they need no other plugins, and
 * have neither sections nor handlers. */
void mk_plugin_load_of_library(struct mk_config_generation *g, struct mk_conf_report *report);

#endif

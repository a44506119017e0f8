/* SPDX-License-Identifier: Apache-2.0 */
/* The plugins of one generation: which were loaded, their sections, and the hosts that use them. */
#ifndef MK_SETUP_PLUGINS_H
#define MK_SETUP_PLUGINS_H

#include "settings/config_generation_type.h"
#include "setup/plugin_list.h"

/* Calls their load(). All sections must be bound. */
void mk_plugins_load(struct mk_config_generation *g, struct mk_conf_report *report);
/* Calls their host() and gives every host its hooks. All hosts must be built. */
void mk_plugins_configure_hosts(struct mk_config_generation *g, struct mk_conf_report *report);
/* Called in the master before it starts the workers of the generation. False: a plugin failed, which was
 * reported. */
bool mk_plugins_start_in_master(struct mk_config_generation *g, struct mk_conf_report *report) MK_MUST_USE;
/* What they wait for since (mk_config_wait_ready()): 0, -EAGAIN: ask again soon, or an error, which was reported.
 */
mk_err mk_plugins_poll_ready(struct mk_config_generation *g, struct mk_conf_report *report) MK_MUST_USE;
/* Calls their unload(). Their code must stay loaded until the arena of the generation is freed, because its
 * cleanups may call it. mk_plugins_detach_objects() returns how many objects to close after that. */
void mk_plugins_unload(struct mk_config_generation *g);
size_t mk_plugins_detach_objects(struct mk_config_generation *g,
                                 struct mk_plugin_object objects[MK_PLUGINS_MAX]);

/* The i-th in the order of on_request; NULL when there are no more. */
const struct mk_loaded_plugin *mk_plugins_at(const struct mk_config_generation *g, size_t i);
/* Its number in that order; of one that is not loaded: how many are. */
size_t mk_plugins_index_of(const struct mk_config_generation *g, const struct mk_plugin *plugin);

/* The table of a section of a loaded plugin; NULL if there is none. */
const struct mk_conf_table *mk_plugins_find_section_table(const struct mk_config_generation *g,
                                                          mk_str section);
/* The handler of that name, and its plugin; NULL if no loaded plugin has it. */
const struct mk_handler *mk_plugins_find_handler(const struct mk_config_generation *g, mk_str name,
                                                 const struct mk_plugin **plugin);

/* For hints: the name of an available plugin that replaces that plugin of Monkey 1, or has the section or the
 * handler; NULL if there is none. The first call opens all plugins, the others read a list. */
const char *mk_plugins_suggest_successor(struct mk_config_generation *g, mk_str old);
const char *mk_plugins_suggest_for_section(struct mk_config_generation *g, mk_str section);
const char *mk_plugins_suggest_for_handler(struct mk_config_generation *g, mk_str handler);

#endif

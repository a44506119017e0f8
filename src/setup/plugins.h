/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins of a generation: calls load(), host() and unload(), and finds sections and handlers. */
#ifndef MK_SETUP_PLUGINS_H
#define MK_SETUP_PLUGINS_H

#include "setup/config_generation_type.h"
#include "setup/plugin_object.h"

/* Calls load() of each plugin. All sections must be bound. */
void mk_plugins_call_load(struct mk_config_generation *g, struct mk_conf_report *report);
/* Calls host() of each plugin for each host, and sets the hooks of the hosts. All hosts must be built. */
void mk_plugins_configure_hosts(struct mk_config_generation *g, struct mk_conf_report *report);
/* Calls master_start() of each plugin, in the master and before the workers of the generation start. False: a
 * plugin failed, and the error was reported. */
bool mk_plugins_start_in_master(struct mk_config_generation *g, struct mk_conf_report *report) MK_MUST_USE;
/* Checks the conditions of mk_config_wait_ready(). Returns 0; -EAGAIN: call again when g->ready_fd is readable,
 * and at latest after mk_plugins_ready_timeout_ms(); or an error after reporting it. */
mk_err mk_plugins_check_ready(struct mk_config_generation *g, struct mk_conf_report *report) MK_MUST_USE;
uint32_t mk_plugins_ready_timeout_ms(const struct mk_config_generation *g);
/* Calls unload() of each plugin. The code of the plugins must stay loaded until the arena of the generation
 * is freed, because its cleanups may call that code. mk_plugins_detach_objects() returns how many objects to
 * close after that. */
void mk_plugins_unload(struct mk_config_generation *g);
size_t mk_plugins_detach_objects(struct mk_config_generation *g,
                                 struct mk_plugin_object objects[MK_PLUGINS_MAX]);

/* Returns the i-th plugin in on_request order; NULL after the last. */
const struct mk_loaded_plugin *mk_plugins_at(const struct mk_config_generation *g, size_t i);
/* Returns the index of the plugin in on_request order, or the number of plugins if it is not loaded. */
size_t mk_plugins_index_of(const struct mk_config_generation *g, const struct mk_plugin *plugin);

/* Returns the table of the section if a loaded plugin defines it; NULL: none does. */
const struct mk_conf_table *mk_plugins_find_section_table(const struct mk_config_generation *g,
                                                          mk_str section);
/* Returns the handler with that name, and stores its plugin; NULL: no loaded plugin has it. */
const struct mk_handler *mk_plugins_find_handler(const struct mk_config_generation *g, mk_str name,
                                                 const struct mk_plugin **plugin);

/* For hints: these functions return the name of an available plugin that replaces a Monkey 1 plugin, or has
 * the section or handler; NULL: none. The first call opens all plugins; later calls use the cached list. */
const char *mk_plugins_suggest_successor(struct mk_config_generation *g, mk_str old);
const char *mk_plugins_suggest_for_section(struct mk_config_generation *g, mk_str section);
const char *mk_plugins_suggest_for_handler(struct mk_config_generation *g, mk_str handler);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The plugins of one generation: which were loaded, their sections, and the hosts that use them. */
#ifndef MK_SETUP_PLUGINS_H
#define MK_SETUP_PLUGINS_H

#include "settings/generation_type.h"
#include "setup/loaded.h"

/* Calls their load(). All sections must be bound. */
void mk_plugins_start(struct mk_generation *g, struct mk_conf_report *report);
/* Calls their host() and gives every host its hooks. All hosts must be built. */
void mk_plugins_enter_hosts(struct mk_generation *g, struct mk_conf_report *report);
/* Called in the master before it starts the workers of the generation. False: a plugin failed, which was
 * reported. */
bool mk_plugins_prepare(struct mk_generation *g, struct mk_conf_report *report) MK_MUST_USE;
/* What they wait for since (mk_config_wait_ready()): 0, -EAGAIN: ask again soon, or an error, which was reported.
 */
mk_err mk_plugins_await(struct mk_generation *g, struct mk_conf_report *report) MK_MUST_USE;
/* Calls their unload(). Their code must stay loaded until the arena of the generation is freed, because its
 * cleanups may call it. mk_plugins_detach() returns how many objects to close after that. */
void mk_plugins_stop(struct mk_generation *g);
size_t mk_plugins_detach(struct mk_generation *g, struct mk_object objects[MK_PLUGINS_MAX]);

/* The i-th in the order of on_request; NULL when there are no more. */
const struct mk_loaded *mk_plugins_at(const struct mk_generation *g, size_t i);
/* Its number in that order; of one that is not loaded: how many are. */
size_t mk_plugins_place(const struct mk_generation *g, const struct mk_plugin *plugin);

/* The table of a section of a loaded plugin; NULL if there is none. */
const struct mk_conf_table *mk_plugins_table(const struct mk_generation *g, mk_str section);
/* The handler of that name, and its plugin; NULL if no loaded plugin has it. */
const struct mk_handler *mk_plugins_handler(const struct mk_generation *g, mk_str name,
                                            const struct mk_plugin **plugin);

/* For hints: the name of an available plugin that replaces that plugin of Monkey 1, or has the section or the
 * handler; NULL if there is none. The first call opens all plugins, the others read a list. */
const char *mk_plugins_seek_successor(struct mk_generation *g, mk_str old);
const char *mk_plugins_seek_section(struct mk_generation *g, mk_str section);
const char *mk_plugins_seek_handler(struct mk_generation *g, mk_str handler);

#endif

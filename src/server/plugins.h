/* SPDX-License-Identifier: Apache-2.0 */
/* The plugins of one generation: which were loaded, which sections they bring, which hosts they have business
 * with. */
#ifndef MK_SERVER_PLUGINS_H
#define MK_SERVER_PLUGINS_H

#include "server/config.h"
#include "server/object.h"

/* A plugin that a configuration loads. */
struct mk_loaded {
    struct mk_loaded *next; /* in the order of `Load` */
    struct mk_object object;
    const struct mk_conf_entry *entry; /* that says so */
    void *data;                        /* what its load() set */
    bool started;                      /* load() answered 0, so unload() is to be called */
};

/* Opens what [PLUGINS] names. What is wrong goes to the report. */
void mk_plugins_open(struct mk_generation *g, struct mk_conf_report *report);
/* Once all sections are bound: calls their load(). */
void mk_plugins_start(struct mk_generation *g, struct mk_conf_report *report);
/* Once all hosts are built: calls their host(), and gives every host its hooks. */
void mk_plugins_enter_hosts(struct mk_generation *g, struct mk_conf_report *report);
/* In the master, before the workers of the generation are started. False: one of them cannot, which was
 * reported. */
bool mk_plugins_prepare(struct mk_generation *g, struct mk_conf_report *report) MK_MUST_USE;
/* Calls their unload(). Their code must stay until the arena of the generation has ended: cleanups may be
 * theirs. mk_plugins_detach() answers how many objects are to be closed then. */
void mk_plugins_stop(struct mk_generation *g);
size_t mk_plugins_detach(struct mk_generation *g, struct mk_object objects[MK_PLUGINS_MAX]);

/* The i-th in the order of on_request; NULL when there are no more. */
const struct mk_loaded *mk_plugins_at(const struct mk_generation *g, size_t i);

/* The table of a section that a loaded plugin brings; NULL if none does. */
const struct mk_conf_table *mk_plugins_table(const struct mk_generation *g, mk_str section);
/* The handler of that name, and whose it is; NULL if no loaded plugin has it. */
const struct mk_handler *mk_plugins_handler(const struct mk_generation *g, mk_str name,
                                            const struct mk_plugin **plugin);

/* A plugin that is not loaded, but could be, and brings the section or the handler: writes its name. */
/* The one that replaces the plugin of Monkey 1 with that name. */
bool mk_plugins_seek_successor(mk_str old, char name[64]);
bool mk_plugins_seek_section(mk_str section, char name[64]);
bool mk_plugins_seek_handler(mk_str handler, char name[64]);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The sections of plugins: binds each to its table, keeps its settings, and prints them. */
#ifndef MK_SETUP_PLUGIN_SECTIONS_H
#define MK_SETUP_PLUGIN_SECTIONS_H

#include "settings/config_generation_type.h"

/* A section of a plugin, and its settings. */
struct mk_plugin_section {
    struct mk_plugin_section *next; /* of the same host, or above all hosts */
    const struct mk_conf_table *table;
    const struct mk_conf_section *section;
    void *settings;
};

/* Sections of rules or lists that a host has twice, or that are written twice above all hosts, become one: its entries
 * in their order. Call it before any section is bound. `find`: the table of a plugin's
 * section, NULL for other ones. */
void mk_plugin_sections_join(struct mk_config_generation *g,
                             const struct mk_conf_table *(*find)(const struct mk_config_generation *g,
                                                                 mk_str name));

/* Binds a section of a plugin; `site` is the host above it. */
void mk_plugin_sections_bind(struct mk_config_generation *g, const struct mk_conf_table *table,
                             const struct mk_conf_section *section, struct mk_vhost_config *site,
                             struct mk_conf_report *report);

/* The next section of that table and site after `after` (NULL: the first); NULL if there is none. */
const struct mk_plugin_section *mk_plugin_sections_find(const struct mk_config_generation *g,
                                                        const struct mk_conf_table *table,
                                                        const struct mk_vhost_config *site,
                                                        const struct mk_plugin_section *after);

/* The section that filled these settings; NULL if none did. */
const struct mk_plugin_section *mk_plugin_sections_of_settings(const struct mk_config_generation *g,
                                                               const void *settings);

/* Prints the sections of one host, or (NULL) those above all hosts. */
void mk_plugin_sections_print(const struct mk_config_generation *g, const struct mk_vhost_config *site,
                              struct mk_buf *out);

#endif

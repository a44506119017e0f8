/* SPDX-License-Identifier: Apache-2.0 */
/* Sections of plugins: binds each to its table, stores the settings, and prints the sections. */
#ifndef MK_SETUP_PLUGIN_SECTIONS_H
#define MK_SETUP_PLUGIN_SECTIONS_H

#include "setup/config_generation_type.h"

/* A plugin's section and its settings. */
struct mk_plugin_section {
    struct mk_plugin_section *next; /* next section of the same host or, for a section outside hosts, the next
                                     * of those */
    const struct mk_conf_table *table;
    const struct mk_conf_section *section;
    void *settings;
};

/* Merges repeated rule or list sections of a host, or outside hosts, into one; entries keep their order. Call
 * it before any section is bound. find() returns the table of a plugin's section, NULL for other sections. */
void mk_plugin_sections_join(struct mk_config_generation *g,
                             const struct mk_conf_table *(*find)(const struct mk_config_generation *g,
                                                                 mk_str name));

/* Binds a section of a plugin. `site`: the host of the section; NULL: none. */
void mk_plugin_sections_bind(struct mk_config_generation *g, const struct mk_conf_table *table,
                             const struct mk_conf_section *section, struct mk_vhost_config *site,
                             struct mk_conf_report *report);

/* Returns the next section with that table and host after `after` (NULL: the first one); NULL: none. */
const struct mk_plugin_section *mk_plugin_sections_find(const struct mk_config_generation *g,
                                                        const struct mk_conf_table *table,
                                                        const struct mk_vhost_config *site,
                                                        const struct mk_plugin_section *after);

/* Returns the section that has these settings; NULL: none. */
const struct mk_plugin_section *mk_plugin_sections_of_settings(const struct mk_config_generation *g,
                                                               const void *settings);

/* Prints the sections of one host, or (NULL) those outside hosts. */
void mk_plugin_sections_print(const struct mk_config_generation *g, const struct mk_vhost_config *site,
                              struct mk_buf *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration while it is being loaded, as plugins see it: struct mk_config of monkey/config.h from
 * inside. */
#ifndef MK_SERVER_CONFIG_H
#define MK_SERVER_CONFIG_H

#include "server/generation.h"

struct mk_loaded;

/* A section of a plugin, and the struct that it filled. */
struct mk_bound {
    struct mk_bound *next;
    const struct mk_conf_table *table;
    const struct mk_conf_section *section;
    const struct mk_site *site; /* NULL: it stands above all hosts, or is of the server */
    void *settings;
};

struct mk_config {
    struct mk_generation *generation;
    struct mk_conf_report *report;
    const struct mk_loaded *plugin; /* that is being asked */
    struct mk_site *site;           /* NULL in load() */
};

/* Binds a section of a plugin; `site` is the host above it. */
void mk_config_bind(struct mk_generation *g, const struct mk_conf_table *table,
                    const struct mk_conf_section *section, const struct mk_site *site,
                    struct mk_conf_report *report);

/* Prints those of one host, or (NULL) those above all. */
void mk_config_print(const struct mk_generation *g, const struct mk_site *site, struct mk_buf *out);

#endif

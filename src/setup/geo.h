/* SPDX-License-Identifier: Apache-2.0 */
/* Databases of addresses (`GeoDatabase`), for the conditions `country` and `asn`. The implementation is
 * geo_maxminddb.c, a build option (MK_MAXMINDDB). */
#ifndef MK_SETUP_GEO_H
#define MK_SETUP_GEO_H

#include "conf/table.h"
#include "web/condition.h"

/* Opens the databases that [SERVER] names, or reports errors. The report holds them while the configuration is
 * loaded; they are closed with the arena. */
void mk_geo_open(const struct mk_conf_table *table, const struct mk_conf_section *server,
                 const struct mk_conf_words *names, struct mk_arena *arena, struct mk_conf_report *report);

/* Opens a database, which is closed with the arena, and appends it to the list. Returns NULL, or a text that
 * describes the failure. */
typedef const char *mk_geo_open_fn(const char *path, struct mk_arena *arena, const struct mk_geo **list);

#endif

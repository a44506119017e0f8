/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the place of geo.c in a server without conditions. */
#include "setup/geo.h"

void mk_geo_open(const struct mk_conf_table *table, const struct mk_conf_section *server,
                 const struct mk_conf_words *names, struct mk_arena *arena, struct mk_conf_report *report)
{
    const struct mk_conf_entry *e = mk_conf_table_entry(table, server, MK_STR("GeoDatabase"));
    (void)names;
    (void)arena;
    if (e)
        mk_conf_report_error(report, &e->at, "this server was built without conditions");
}

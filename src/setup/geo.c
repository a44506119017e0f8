/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/geo.h"

#include "conf/path.h"

/* Defined in geo_maxminddb.c, if the build has libmaxminddb. */
extern mk_geo_open_fn mk_geo_maxminddb_open __attribute__((weak));

void mk_geo_open(const struct mk_conf_table *table, const struct mk_conf_section *server,
                 const struct mk_conf_words *names, struct mk_arena *arena, struct mk_conf_report *report)
{
    const struct mk_conf_entry *e = mk_conf_table_entry(table, server, MK_STR("GeoDatabase"));
    report->geo = NULL;
    if (!names->n || !e)
        return;
    if (!mk_geo_maxminddb_open) {
        mk_conf_report_error(report, &e->at, "this server was built without libmaxminddb");
        mk_conf_report_hint(report,
                            "build it with libmaxminddb-dev, or use lists of networks: `from file:NAME`");
        return;
    }
    for (size_t i = 0; i < names->n; i++) {
        mk_str path = mk_conf_path_resolve(arena, e->at.file, names->v[i]);
        const char *error = path.p ? mk_geo_maxminddb_open(path.p, arena, &report->geo) : NULL;
        struct mk_conf_source_pos at = mk_conf_tree_value_pos(e, names->v[i]);
        if (error)
            mk_conf_report_error(report, &at, "cannot open the database %.*s: %s", MK_STR_ARG(path), error);
    }
}

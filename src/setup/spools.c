/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/spools.h"

#include "conf/table.h"
#include "conf/value.h"
#include "settings/keys.h"
#include "web/spools.h"

/* A mistake in [SERVER] is reported once, whichever hosts have it. */
struct check {
    const struct mk_generation *g;
    struct mk_conf_report *report;
    uint64_t share;
    const struct mk_conf_entry *reported;
};

static const struct mk_conf_entry *entry_in(const struct mk_conf_section *section)
{
    return mk_conf_table_entry(mk_keys_tables[MK_SECTION_SERVER], section, MK_STR("MaxBodySize"));
}

static void check_size(struct check *c, const struct mk_conf_entry *e, uint64_t max)
{
    char room[32];
    struct mk_buf share = mk_buf_fixed(room, sizeof room);
    if (!e || e == c->reported || (max && max <= c->share))
        return;
    c->reported = e;
    struct mk_conf_source_pos at = mk_conf_tree_value_pos(e, e->value);
    mk_conf_value_write_size(&share, c->share, 1);
    mk_conf_report_warn(
        c->report, &at,
        "MaxBodySize allows more than the half of SpoolMax that one client may use: content of "
        "more than %.*s is a 413",
        MK_STR_ARG(mk_buf_str(&share)));
    mk_conf_report_hint(c->report, "raise SpoolMax in [SERVER], or write `stream` behind the route");
}

static void check_site(struct check *c, const struct mk_site *site)
{
    const struct mk_conf_entry *own = entry_in(site->section);
    uint64_t max = site->settings.site.request.max_body_size;
    check_size(c, own ? own : entry_in(mk_conf_tree_find(&c->g->tree, MK_STR("SERVER"))), max);
    for (const struct mk_site_location *l = site->locations; l; l = l->next)
        check_size(c, entry_in(l->section), l->settings.request.max_body_size);
}

void mk_spools_check(const struct mk_generation *g, struct mk_conf_report *report)
{
    const struct mk_spools spools = {.max = g->server.spool_max ? g->server.spool_max : UINT64_MAX};
    struct check c = {.g = g, .report = report, .share = mk_spool_request_share(&spools)};
    for (const struct mk_site *site = g->sites; site && g->server.spool_max; site = site->next)
        if (site->spools)
            check_site(&c, site);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/spool_check.h"

#include "conf/table.h"
#include "conf/value.h"
#include "setup/keys.h"
#include "web/spool_quota.h"

/* State of the check. `reported` ensures that a MaxBodySize in [SERVER] is reported only once, not for each
 * host. */
struct spool_check {
    const struct mk_config_generation *g;
    struct mk_conf_report *report;
    uint64_t share;
    const struct mk_conf_entry *reported;
};

static const struct mk_conf_entry *body_max_entry(const struct mk_conf_section *section)
{
    return mk_conf_table_find_entry(section, MK_STR("MaxBodySize"));
}

static void warn_body_max(struct spool_check *c, const struct mk_conf_entry *e, uint64_t max)
{
    char buf[32];
    struct mk_buf share = mk_buf_fixed(buf, sizeof buf);
    if (!e || e == c->reported || (max && max <= c->share))
        return;
    c->reported = e;
    struct mk_conf_source_pos at = mk_conf_tree_value_pos(e, e->value);
    mk_conf_value_write_size(&share, c->share, 1);
    mk_conf_report_warn(
        c->report, &at,
        "MaxBodySize exceeds the half of SpoolMax that one client may use: request bodies above "
        "%.*s get 413",
        MK_STR_ARG(mk_buf_str(&share)));
    mk_conf_report_hint(c->report, "raise SpoolMax in [SERVER], or add `stream` to the route");
}

static void check_host_body_max(struct spool_check *c, const struct mk_vhost_config *site)
{
    const struct mk_conf_entry *own = body_max_entry(site->section);
    uint64_t max = site->settings.site.request.max_body_size;
    warn_body_max(c, own ? own : body_max_entry(mk_conf_tree_find(&c->g->tree, MK_STR("SERVER"))), max);
    for (const struct mk_location_config *l = site->locations; l; l = l->next)
        warn_body_max(c, body_max_entry(l->section), l->settings.request.max_body_size);
}

void mk_spool_check_body_limits(const struct mk_config_generation *g, struct mk_conf_report *report)
{
    const struct mk_spool_quota spools = {.max = g->server.spool_max ? g->server.spool_max : UINT64_MAX};
    struct spool_check c = {.g = g, .report = report, .share = mk_spool_quota_request_max(&spools)};
    for (const struct mk_vhost_config *site = g->sites; site && g->server.spool_max; site = site->next)
        if (site->spools)
            check_host_body_max(&c, site);
}

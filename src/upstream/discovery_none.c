/* SPDX-License-Identifier: Apache-2.0 */
/* A server without service discovery (MK_DISCOVERY=OFF). */
#include "upstream/discovery.h"

void mk_discovery_check_section(struct mk_config *config, const struct mk_upstream_settings *s)
{
    if (mk_discovery_is_configured(s))
        mk_config_error(config, s, s->n_resolved ? "Server" : "ServersFile",
                        "this server has no service discovery: Monkey was built without MK_DISCOVERY");
}

bool mk_discovery_add_sources(struct mk_config *config, const void *section, struct mk_upstream *u)
{
    (void)config, (void)section, (void)u;
    return false; /* mk_discovery_check_section() has reported it */
}

void mk_discovery_publish(struct mk_upstreams *all, struct mk_config *config)
{
    (void)all, (void)config;
}

bool mk_discovery_start(struct mk_pool *p, struct mk_discovery **out)
{
    (void)p;
    *out = NULL;
    return true;
}

void mk_discovery_drain(struct mk_discovery *d)
{
    (void)d;
}

void mk_discovery_stop(struct mk_discovery *d)
{
    (void)d;
}

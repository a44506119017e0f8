/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/config_loader.h"

#include "conf/bind.h"
#include "setup/geo.h"
#include "setup/keys.h"

struct mk_vhost_config *mk_config_loader_add_host(struct mk_config_loader *l,
                                                  const struct mk_conf_section *section)
{
    struct mk_vhost_config *site = mk_arena_zalloc(&l->g->arena, 1, sizeof *site);
    if (!site)
        return NULL;
    *l->end = site;
    l->end = &site->next;
    l->g->n_sites++;
    site->section = section;
    site->host.root.fd = -1;
    site->settings.site = l->g->server.site;
    return site;
}

mk_err mk_config_loader_bind_server(struct mk_config_loader *l)
{
    struct mk_conf_section *server = l->g->tree.first;
    while (server && !mk_str_eq_nocase(server->name, MK_STR("SERVER")))
        server = server->next;
    if (server)
        server->table = &mk_keys_server;
    mk_err e = mk_conf_bind(&mk_keys_server, server, &l->g->server, &l->g->arena, l->report);
    mk_geo_open(&mk_keys_server, server, &l->g->server.geo_databases, &l->g->arena, l->report);
    return e;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: [MEMCACHED] sections, and the connections of every worker. */
#include <duda/request.h>
#include <errno.h>
#include <monkey/plugin.h>

#include "common/package.h"
#include "memcached.h"

#define AT(member) MK_CONF_AT(struct memcached_settings, member)

static const struct mk_conf_key keys[] = {
    PACKAGE_NAME_KEY,
    {.name = "Servers",
     .type = MK_CONF_TEXT,
     AT(servers),
     .max = 8192,
     .help = "Addresses, separated by spaces: HOST:PORT, unix:/path or the Name of an [UPSTREAM] for TLS. "
             "Keys are distributed over all servers."},
    {.name = "Timeout",
     .type = MK_CONF_TIME,
     AT(timeout_ms),
     .default_value = "1s",
     .min = 50,
     .max = 3600000,
     .help = "Timeout for a connection, and for the reply to a command."},
    {.name = "MaxQueue",
     .type = MK_CONF_NUM,
     AT(waiting_max),
     .default_value = "10000",
     .min = 1,
     .max = 1000000,
     .help = "Maximum number of commands of a worker that wait for each server. Further ones fail."},
    {.name = "MaxValueSize",
     .type = MK_CONF_SIZE,
     AT(value_max),
     .default_value = "1M",
     .min = 1024,
     .max = (uint64_t)1 << 30,
     .help = "Maximum size of a value. The servers have their own limit: `memcached -I`."},
};

static bool add_server(struct mk_config *config, struct memcached_settings *s, mk_str name, mk_str *names)
{
    static const struct mk_upstream_defaults defaults = {.port = 11211};
    for (unsigned i = 0; i < s->n; i++)
        if (mk_str_eq(names[i], name)) {
            mk_config_error(config, s, "Servers", "%.*s is listed twice", MK_STR_ARG(name));
            return false;
        }
    if (s->n == MK_LEN(s->upstreams)) {
        mk_config_error(config, s, "Servers", "more than %zu servers", MK_LEN(s->upstreams));
        return false;
    }
    names[s->n] = name;
    s->upstreams[s->n] = mk_upstream_open(config, s, "Servers", name, &defaults);
    return s->upstreams[s->n++] != NULL;
}

static bool check_memcached_section(struct mk_config *config, const struct package_sections *before,
                                    void *settings)
{
    struct memcached_settings *s = settings;
    mk_str names[MEMCACHED_SERVERS_MAX], rest = s->servers;
    (void)before;
    while (rest.p) {
        mk_str name = mk_str_cut(&rest, ' ');
        if (name.len && !add_server(config, s, name, names))
            return false;
    }
    struct memcached_hash_ring_point *points =
        mk_config_alloc(config, s->n * MEMCACHED_POINTS * sizeof *points);
    if (!points)
        return false;
    memcached_hash_ring_build(points, names, s->n);
    s->points = points;
    return true;
}

/* ---- In a worker ---- */

static int open_servers(void *instance, struct mk_worker *w, const void *settings)
{
    struct duda_memcached *m = instance;
    int e = 0;
    m->settings = settings;
    m->servers = mk_mem_zalloc(m->settings->n, sizeof *m->servers);
    for (unsigned i = 0; m->servers && i < m->settings->n && !e; i++)
        e = memcached_conn_open(&m->servers[i], w, m->settings, m->settings->upstreams[i]);
    return m->servers ? e : -ENOMEM;
}

static void close_servers(void *instance)
{
    struct duda_memcached *m = instance;
    for (unsigned i = 0; m->servers && i < m->settings->n; i++)
        memcached_conn_close(&m->servers[i]);
    mk_mem_free(m->servers);
}

PACKAGE_TYPE(memcached, "MEMCACHED", struct memcached_settings, struct duda_memcached,
             "Memcached servers for Duda services.", .location = "Servers",
             .max = DUDA_MEMCACHED_SECTIONS_MAX, .check_section = check_memcached_section,
             .open = open_servers, .close = close_servers);

struct duda_memcached *duda_memcached_find(struct duda_ctx *d, const char *name)
{
    return package_find_instance(&kind, d, name);
}

struct duda_memcached *duda_memcached_of(struct mk_worker *worker, const char *name)
{
    return package_instance_of(&kind, worker, name);
}

PACKAGE_PLUGIN(memcached, "Memcached client for Duda services.", PACKAGE_HAS_TYPE,
               .needs = PACKAGE_NEEDS("upstream", "duda"));

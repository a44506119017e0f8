/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: [MEMCACHED] sections, and connections of every worker. */
#include <duda/asked.h>
#include <errno.h>
#include <monkey/plugin.h>

#include "memcache.h"
#include "sections.h"

#define AT(member) MK_CONF_AT(struct memcache_settings, member)

static const struct mk_conf_key keys[] = {
    PACK_NAME_KEY,
    {.name = "Servers",
     .type = MK_CONF_TEXT,
     AT(servers),
     .max = 8192,
     .help = "Where they are: HOST:PORT, unix:/path or the Name of an [UPSTREAM], which adds TLS; several "
             "with blanks between them. The keys are spread over all."},
    {.name = "Timeout",
     .type = MK_CONF_TIME,
     AT(timeout_ms),
     .def = "1s",
     .min = 50,
     .max = 3600000,
     .help = "For a connection, and for the reply to a command."},
    {.name = "MaxQueue",
     .type = MK_CONF_NUM,
     AT(waiting_max),
     .def = "10000",
     .min = 1,
     .max = 1000000,
     .help = "How many commands of a worker may wait for each server. More are refused."},
    {.name = "MaxValueSize",
     .type = MK_CONF_SIZE,
     AT(value_max),
     .def = "1M",
     .min = 1024,
     .max = (uint64_t)1 << 30,
     .help = "How long a value may be. The servers have a limit of their own: `memcached -I`."},
};

static bool add_server(struct mk_config *config, struct memcache_settings *s, mk_str name, mk_str *names)
{
    static const struct mk_upstream_defaults defaults = {.port = 11211};
    for (unsigned i = 0; i < s->n; i++)
        if (mk_str_eq(names[i], name)) {
            mk_config_error(config, s, "Servers", "%.*s is there twice", MK_STR_ARG(name));
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

static bool check(struct mk_config *config, const struct pack_sections *before, void *settings)
{
    struct memcache_settings *s = settings;
    mk_str names[MEMCACHE_SERVERS_MAX], rest = s->servers;
    (void)before;
    while (rest.p) {
        mk_str name = mk_str_cut(&rest, ' ');
        if (name.len && !add_server(config, s, name, names))
            return false;
    }
    struct memcache_point *points = mk_config_alloc(config, s->n * MEMCACHE_POINTS * sizeof *points);
    if (!points)
        return false;
    memcache_ring_make(points, names, s->n);
    s->points = points;
    return true;
}

/* ---- In a worker ---- */

static int open_servers(void *one, struct mk_worker *w, const void *settings)
{
    struct duda_memcache *m = one;
    int e = 0;
    m->settings = settings;
    m->servers = mk_mem_zalloc(m->settings->n, sizeof *m->servers);
    for (unsigned i = 0; m->servers && i < m->settings->n && !e; i++)
        e = memcache_server_open(&m->servers[i], w, m->settings, m->settings->upstreams[i]);
    return m->servers ? e : -ENOMEM;
}

static void close_servers(void *one)
{
    struct duda_memcache *m = one;
    for (unsigned i = 0; m->servers && i < m->settings->n; i++)
        memcache_server_close(&m->servers[i]);
    mk_mem_free(m->servers);
}

PACK_KIND(memcache, "MEMCACHED", struct memcache_settings, struct duda_memcache,
          "Servers of Memcached for services of Duda.", .place = "Servers", .max = DUDA_MEMCACHE_SECTIONS_MAX,
          .check = check, .open = open_servers, .close = close_servers);

struct duda_memcache *duda_memcache_find(struct duda *d, const char *name)
{
    return pack_find(&kind, d, name);
}

PACK_PLUGIN(memcache, "Memcached for services of Duda.", .needs = PACK_NEEDS("upstream", "duda"));

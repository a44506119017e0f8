/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: [HTTP] sections. */
#include <duda/asked.h>
#include <errno.h>
#include <monkey/plugin.h>
#include <monkey/text.h>

#include "server.h"

#define AT(member) MK_CONF_AT(struct duda_http, member)

MK_PLUGIN_DECLARE(duda_http);

static const struct mk_conf_key keys[] = {
    {.name = "Name",
     .type = MK_CONF_TEXT,
     AT(name),
     .def = "main",
     .min = 1,
     .max = 63,
     .help = "What services call it."},
    {.name = "Server",
     .type = MK_CONF_TEXT,
     AT(server),
     .max = 1024,
     .help =
         "Where it is: HOST:PORT, unix:/path or the Name of an [UPSTREAM], which adds TLS and more servers."},
    {.name = "Host",
     .type = MK_CONF_TEXT,
     AT(host),
     .max = 255,
     .help = "The field Host; else that is Server."},
    {.name = "Timeout",
     .type = MK_CONF_TIME,
     AT(timeout_ms),
     .def = "10s",
     .min = 10,
     .max = 3600000,
     .help = "Until a response begins, and between two pieces of it."},
    {.name = "Tries",
     .type = MK_CONF_NUM,
     AT(tries),
     .def = "2",
     .min = 1,
     .max = 16,
     .help = "How many servers are tried with a request that may be repeated."},
    {.name = "MaxContent",
     .type = MK_CONF_SIZE,
     AT(content_max),
     .def = "16M",
     .min = 1,
     .max = (uint64_t)1 << 30,
     .help = "How long a response may be that is read as a whole."},
};

static const struct mk_conf_table table = {
    .section = "HTTP",
    .keys = keys,
    .n = MK_LEN(keys),
    .repeatable = true,
    .help = "A server that services of Duda ask over HTTP.",
    .size = sizeof(struct duda_http),
    .scope = MK_CONF_SERVER,
};

struct servers {
    struct duda_http *v[DUDA_HTTP_SERVERS_MAX];
    size_t n;
};

static void add(struct mk_config *config, struct servers *all, struct duda_http *s)
{
    static const struct mk_upstream_defaults defaults = {.port = 80, .keep = 32};
    for (size_t i = 0; i < all->n; i++)
        if (mk_str_eq(all->v[i]->name, s->name)) {
            mk_config_error(config, s, "Name", "there are two [HTTP] `%.*s`", MK_STR_ARG(s->name));
            return;
        }
    if (all->n == MK_LEN(all->v)) {
        mk_config_error(config, s, NULL, "more than %zu [HTTP]", MK_LEN(all->v));
        return;
    }
    if (!s->server.len) {
        mk_config_error(config, s, NULL, "[HTTP] has no Server");
        return;
    }
    if (!s->host.len)
        s->host = mk_str_starts(s->server, MK_STR("unix:")) ? MK_STR("localhost") : s->server;
    if (!mk_is_field_value(s->host))
        mk_config_error(config, s, "Host", "expected the name of a host");
    s->upstream = mk_upstream_open(config, s, "Server", s->server, &defaults);
    if (s->upstream)
        all->v[all->n++] = s;
}

static int load(struct mk_config *config, void **data)
{
    struct servers *all = mk_config_alloc(config, sizeof *all);
    if (!all)
        return -ENOMEM;
    for (struct duda_http *s = NULL; (s = mk_config_section(config, &table, s));)
        add(config, all, s);
    if (!all->n)
        mk_config_warn(config, NULL, NULL, "duda-http is loaded, but there is no [HTTP] with a Server");
    *data = all;
    return 0;
}

static int worker_start(struct mk_worker *w, void *data)
{
    mk_worker_set_data(w, &MK_PLUGIN_OF(duda_http), data);
    return 0;
}

struct duda_http *duda_http_find(const struct duda *d, const char *name)
{
    const struct servers *all = mk_worker_data(duda_worker(d), &MK_PLUGIN_OF(duda_http));
    for (size_t i = 0; all && i < all->n; i++)
        if (!name || mk_str_eq(all->v[i]->name, mk_str_from_c(name)))
            return all->v[i];
    return NULL;
}

static const struct mk_conf_table *const sections[] = {&table, NULL};
static const char *const needs[] = {"upstream", "duda", NULL};

MK_PLUGIN(duda_http) = {
    MK_PLUGIN_HEAD,
    .name = "duda-http",
    .version = MK_VERSION,
    .help = "Requests to other servers for services of Duda.",
    .sections = sections,
    .load = load,
    .worker_start = worker_start,
    .needs = needs,
};

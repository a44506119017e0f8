/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: [HTTP] sections. */
#include <duda/asked.h>
#include <errno.h>
#include <monkey/plugin.h>
#include <monkey/text.h>

#include "sections.h"
#include "server.h"

#define AT(member) MK_CONF_AT(struct duda_http, member)

MK_PLUGIN_DECLARE(duda_http);

static const struct mk_conf_key keys[] = {
    PACK_NAME_KEY,
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

static bool check(struct mk_config *config, const struct pack_sections *before, void *settings)
{
    static const struct mk_upstream_defaults defaults = {.port = 80, .keep = 32};
    struct duda_http *s = settings;
    (void)before;
    if (!s->host.len)
        s->host = mk_str_starts(s->server, MK_STR("unix:")) ? MK_STR("localhost") : s->server;
    if (!mk_is_field_value(s->host))
        mk_config_error(config, s, "Host", "expected the name of a host");
    s->upstream = mk_upstream_open(config, s, "Server", s->server, &defaults);
    return s->upstream != NULL;
}

/* ---- In a worker ---- */

static int open_server(void *one, struct mk_worker *w, const void *settings)
{
    struct duda_http *http = one;
    (void)w;
    *http = *(const struct duda_http *)settings;
    return 0;
}

static void close_server(void *one)
{
    (void)one;
}

static const struct pack_kind kind = {
    .plugin = &MK_PLUGIN_OF(duda_http),
    .table = &table,
    .name = "http",
    .place = "Server",
    .max = DUDA_HTTP_SERVERS_MAX,
    .check = check,
    .size = sizeof(struct duda_http),
    .open = open_server,
    .close = close_server,
};

static int load(struct mk_config *config, void **data)
{
    return pack_load(&kind, config, data);
}

struct duda_http *duda_http_find(struct duda *d, const char *name)
{
    return pack_find(&kind, d, name);
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
    .worker_start = pack_worker_start,
    .worker_stop = pack_worker_stop,
    .needs = needs,
};

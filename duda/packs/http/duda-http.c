/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: [HTTP_CLIENT] sections. */
#include <duda/asked.h>
#include <errno.h>
#include <monkey/plugin.h>
#include <monkey/text.h>

#include "sections.h"
#include "server.h"

#define AT(member) MK_CONF_AT(struct duda_http, member)

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
    {.name = "MaxTries",
     .type = MK_CONF_NUM,
     AT(tries),
     .def = "2",
     .min = 1,
     .max = 16,
     .help = "How many servers are tried with a request that may be repeated."},
    {.name = "MaxBodySize",
     .type = MK_CONF_SIZE,
     AT(content_max),
     .def = "16M",
     .min = 1,
     .max = (uint64_t)1 << 30,
     .help = "How long a response may be that is read as a whole."},
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

PACK_KIND(http, "HTTP_CLIENT", struct duda_http, struct duda_http, "A server that services of Duda ask over HTTP.",
          .place = "Server", .max = DUDA_HTTP_SERVERS_MAX, .check = check);

struct duda_http *duda_http_find(struct duda *d, const char *name)
{
    return pack_find(&kind, d, name);
}

PACK_PLUGIN(http, "Requests to other servers for services of Duda.", .needs = PACK_NEEDS("upstream", "duda"));

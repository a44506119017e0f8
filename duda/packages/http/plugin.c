/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: [HTTP_CLIENT] sections. */
#include <dlfcn.h>
#include <duda/request.h>
#include <monkey/plugin.h>
#include <monkey/text.h>
#include <stdio.h>
#include <string.h>

#include "client.h"
#include "common/package.h"

#define AT(member) MK_CONF_AT(struct duda_http_client, member)

static const struct mk_conf_key keys[] = {
    PACKAGE_NAME_KEY,
    {.name = "Server",
     .type = MK_CONF_TEXT,
     AT(server),
     .max = 1024,
     .help = "Address: HOST:PORT, unix:/path or the Name of an [UPSTREAM] for TLS or several servers."},
    {.name = "Host",
     .type = MK_CONF_TEXT,
     AT(host),
     .max = 255,
     .help = "The Host header. Default: the value of `Server`."},
    {.name = "Timeout",
     .type = MK_CONF_TIME,
     AT(timeout_ms),
     .default_value = "10s",
     .min = 10,
     .max = 3600000,
     .help = "Timeout for the start of a response, and between two reads."},
    {.name = "MaxTries",
     .type = MK_CONF_NUM,
     AT(tries),
     .default_value = "2",
     .min = 1,
     .max = 16,
     .help = "Maximum number of servers to try for an idempotent request."},
    {.name = "MaxBodySize",
     .type = MK_CONF_SIZE,
     AT(content_max),
     .default_value = "16M",
     .min = 1,
     .max = (uint64_t)1 << 30,
     .help = "Maximum size of a response body that is read as a whole."},
};

/* Returns the address of the fake server that replaces the server of a section in `monkey test`; NULL if
 * there is none. */
static const char *find_test_backend(mk_str name)
{
    const char *(*address)(const char *name) = NULL;
    char buf[64];
    void *found = dlsym(RTLD_DEFAULT, "duda_test_backend_address");
    memcpy(&address, &found, sizeof address);
    snprintf(buf, sizeof buf, "%.*s", MK_STR_ARG(name));
    return address ? address(buf) : NULL;
}

static bool check_http_client_section(struct mk_config *config, const struct package_sections *before,
                                      void *settings)
{
    static const struct mk_upstream_defaults defaults = {.port = 80, .keepalive = 32};
    struct duda_http_client *s = settings;
    (void)before;
    if (!s->host.len)
        s->host = mk_str_starts(s->server, MK_STR("unix:")) ? MK_STR("localhost") : s->server;
    if (!mk_is_header_value(s->host))
        mk_config_error(config, s, "Host", "expected a host name");
    const char *fake = find_test_backend(s->name);
    if (fake)
        s->server = mk_config_copy(config, mk_str_from_c(fake));
    s->upstream = mk_upstream_open(config, s, "Server", s->server, &defaults);
    return s->upstream != NULL;
}

PACKAGE_TYPE(http, "HTTP_CLIENT", struct duda_http_client, struct duda_http_client,
             "An HTTP server to which Duda services send requests.", .location = "Server",
             .max = DUDA_HTTP_SERVERS_MAX, .works_without_section = true,
             .check_section = check_http_client_section);

struct duda_http_client *duda_http_find(struct duda_ctx *d, const char *name)
{
    return package_find_instance(&kind, d, name);
}

struct duda_http_client *duda_http_of(struct mk_worker *worker, const char *name)
{
    return package_instance_of(&kind, worker, name);
}

PACKAGE_PLUGIN(http, "HTTP client for Duda services.", PACKAGE_HAS_TYPE,
               .needs = PACKAGE_NEEDS("upstream", "duda"));

/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: [HTTP_CLIENT] sections. */
#include <dlfcn.h>
#include <duda/request.h>
#include <monkey/plugin.h>
#include <monkey/text.h>
#include <stdio.h>
#include <string.h>

#include "address.h"
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
     .help = "Timeout for the start of a response, and between two reads. `timeout_ms` of a request replaces "
             "it."},
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
    {.name = "SendRequestId",
     .type = MK_CONF_BOOL,
     AT(sends_request_id),
     .default_value = "on",
     .help =
         "Sends the ID of the handler's request in the header `X-Request-Id`, unless the service sets it."},
    {.name = "SendTraceContext",
     .type = MK_CONF_BOOL,
     AT(sends_trace),
     .default_value = "on",
     .help =
         "Sends the trace of the handler's request in the headers `traceparent` and `tracestate`, unless the "
         "service sets them. The plugin `tracing` begins traces."},
    {.name = "AllowHosts",
     .type = MK_CONF_WORDS,
     AT(allow_hosts),
     .max = 256,
     .help = "Hosts to whose URLs services may send requests, besides `Server`: `api.example.org`, "
             "`*.example.net` (subdomains), `*` (any host), with `https://` before and `:PORT` after it if "
             "needed. Without a port, only 80 (http) and 443 (https) are allowed."},
    {.name = "AllowPrivate",
     .type = MK_CONF_WORDS,
     AT(allow_private),
     .max = 256,
     .help =
         "Networks with private or reserved addresses to which names in `AllowHosts` may resolve, such as "
         "`10.1.0.0/16`; `all` for any. By default, only public addresses are allowed."},
    {.name = "TLSAuthority",
     .type = MK_CONF_TEXT,
     .flags = MK_CONF_READS,
     AT(tls_authority),
     .help = "A PEM file with the certificate authorities to trust for URLs of `AllowHosts`. Default: those "
             "of the system."},
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

/* ---- AllowHosts ---- */

enum { HOSTS_MAX = 128, IDLE_PER_HOST = 8 };

static bool parse_allowed_host(struct mk_config *config, struct duda_http_client *s, mk_str word)
{
    char *host = mk_config_alloc(config, HTTP_URL_HOST_MAX + 1);
    if (!host)
        return false;
    if (http_allow_parse(word, host, &s->allowed[s->n_allowed++]))
        return true;
    mk_config_error(config, s, "AllowHosts",
                    "`%.*s` is not a host: expected [http:// or https://]HOST[:PORT], *.DOMAIN or *",
                    MK_STR_ARG(mk_str_first(word, 80)));
    return false;
}

static bool parse_allowed_hosts(struct mk_config *config, struct duda_http_client *s)
{
    s->allowed = mk_config_alloc(config, (s->allow_hosts.n + 1) * sizeof *s->allowed);
    for (size_t i = 0; s->allowed && i < s->allow_hosts.n; i++)
        if (!parse_allowed_host(config, s, s->allow_hosts.v[i]))
            return false;
    return s->allowed;
}

static bool parse_private_networks(struct mk_config *config, struct duda_http_client *s)
{
    size_t n = s->allow_private.n;
    struct mk_network *networks = n ? mk_config_alloc(config, n * sizeof *networks) : NULL;
    for (size_t i = 0; networks && i < n; i++)
        if (!mk_network_parse(s->allow_private.v[i], &networks[i])) {
            mk_config_error(config, s, "AllowPrivate",
                            "`%.*s` is not a network: expected ADDRESS, ADDRESS/BITS or all",
                            MK_STR_ARG(mk_str_first(s->allow_private.v[i], 80)));
            return false;
        }
    s->private_networks = networks ? mk_config_network_set(config, networks, NULL, n) : NULL;
    return !n || s->private_networks;
}

static bool allows_address(void *ctx, const struct mk_addr *addr)
{
    const struct duda_http_client *s = ctx;
    return http_address_is_public(addr) ||
           (!addr->is_unix && mk_network_set_contains(s->private_networks, addr));
}

/* Opens the upstream for the URLs with one scheme. */
static bool open_hosts(struct mk_config *config, struct duda_http_client *s, bool tls,
                       struct mk_upstream **out)
{
    const struct mk_upstream_dynamic_options options = {.tls = tls,
                                                        .max_hosts = HOSTS_MAX,
                                                        .keepalive = IDLE_PER_HOST,
                                                        .tls_authority = s->tls_authority,
                                                        .allows = allows_address,
                                                        .allows_ctx = s};
    char buf[80];
    enum http_allow_scheme other = tls ? HTTP_ALLOW_HTTP : HTTP_ALLOW_HTTPS;
    bool is_needed = false;
    for (size_t i = 0; i < s->n_allowed; i++)
        is_needed |= s->allowed[i].scheme != other;
    snprintf(buf, sizeof buf, "%.*s %s", MK_STR_ARG(s->name), tls ? "https" : "http");
    if (is_needed)
        *out = mk_upstream_open_dynamic(config, s, "AllowHosts", mk_str_from_c(buf), &options);
    return !is_needed || *out;
}

static bool check_allowed_hosts(struct mk_config *config, struct duda_http_client *s)
{
    if (!parse_allowed_hosts(config, s) || !parse_private_networks(config, s))
        return false;
    return s->is_faked ||
           (open_hosts(config, s, false, &s->http_hosts) && open_hosts(config, s, true, &s->https_hosts));
}

/* ---- The section ---- */

static bool check_http_client_section(struct mk_config *config, const struct package_sections *before,
                                      void *settings)
{
    static const struct mk_upstream_defaults defaults = {.port = 80, .keepalive = 32};
    struct duda_http_client *s = settings;
    (void)before;
    const char *fake = find_test_backend(s->name);
    s->is_faked = fake;
    if (!s->server.len && !s->allow_hosts.n) {
        mk_config_error(config, s, NULL, "[HTTP_CLIENT] has neither Server nor AllowHosts");
        return false;
    }
    if (!check_allowed_hosts(config, s))
        return false;
    if (!s->server.len && !fake)
        return true;
    if (!s->host.len)
        s->host = mk_str_starts(s->server, MK_STR("unix:")) ? MK_STR("localhost") : s->server;
    if (!mk_is_header_value(s->host))
        mk_config_error(config, s, "Host", "expected a host name");
    if (fake)
        s->server = mk_config_copy(config, mk_str_from_c(fake));
    s->upstream = mk_upstream_open(config, s, "Server", s->server, &defaults);
    return s->upstream != NULL;
}

PACKAGE_TYPE(http, "HTTP_CLIENT", struct duda_http_client, struct duda_http_client,
             "An HTTP server to which Duda services send requests.", .location = "Server",
             .location_is_optional = true, .max = DUDA_HTTP_SERVERS_MAX, .works_without_section = true,
             .check_section = check_http_client_section);

void duda_http_require(struct mk_config *config, const void *section, const char *key, mk_str name)
{
    const struct package_sections *all = mk_config_data(config, kind.plugin);
    mk_str names[PACKAGE_SECTIONS_MAX];
    if (!all || all->has_invalid) /* already reported, maybe for the section with this name */
        return;
    for (size_t i = 0; i < all->n; i++) {
        names[i] = ((const struct package_settings *)all->v[i])->name;
        if (mk_str_eq(names[i], name))
            return;
    }
    mk_config_error(config, section, key, "no [HTTP_CLIENT] has the Name `%.*s`", MK_STR_ARG(name));
    mk_config_suggest(config, name, names, all->n);
}

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

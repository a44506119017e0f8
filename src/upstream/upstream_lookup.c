/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the upstream that a route names. The first route that uses an upstream creates it, and determines the
 * defaults for its section. */
#include "upstream/upstream_lookup.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sha1.h"
#include "event/tls.h"
#include "upstream/discovery.h"
#include "upstream/endpoint.h"
#include "upstream/http2.h"
#include "upstream/resolver.h"
#include "upstream/saved_servers.h"
#include "upstream/server_control.h"
#include "upstream/server_state.h"

/* Builds an upstream. Reports errors at the section, or at the word that names the server, in a route or in a
 * key of another plugin's section. */
struct upstream_builder {
    struct mk_config *config;
    struct mk_upstreams *all;
    const struct mk_conf_ctx *ctx; /* NULL: a key of a plugin's section names the upstream */
    const void *owner;
    const char *key;
    mk_str name;
    const struct mk_upstream_settings *section; /* NULL: the route names a server directly */
    const struct mk_upstream_settings *settings;
    struct mk_hash_key id_key;
};

#define REPORT_NAME(m, ...)                                                                                  \
    do {                                                                                                     \
        if ((m)->ctx)                                                                                        \
            mk_conf_ctx_error((m)->ctx, (m)->name, __VA_ARGS__);                                             \
        else                                                                                                 \
            mk_config_error((m)->config, (m)->owner, (m)->key, __VA_ARGS__);                                 \
    } while (0)

#define REPORT(m, key, ...)                                                                                  \
    do {                                                                                                     \
        if ((m)->section)                                                                                    \
            mk_config_error((m)->config, (m)->section, key, __VA_ARGS__);                                    \
        else                                                                                                 \
            REPORT_NAME(m, __VA_ARGS__);                                                                     \
    } while (0)

static bool defaults_are_equal(const struct mk_upstream_defaults *a, const struct mk_upstream_defaults *b)
{
    return a->port == b->port && a->tls == b->tls && a->max_connections == b->max_connections &&
           a->keepalive == b->keepalive && a->http2 == b->http2;
}

/* ---- Servers ---- */

static mk_str resolve_path(const struct upstream_builder *m, mk_str path)
{
    if (!m->section && m->ctx)
        return mk_conf_ctx_path(m->ctx, path);
    return mk_config_path(m->config, m->section ? m->section : m->owner, path);
}

static bool copy_server_address(struct upstream_builder *m, struct mk_upstream_server *s,
                                const struct mk_upstream_defaults *defaults)
{
    if (s->path.p) {
        s->path = resolve_path(m, s->path);
        return s->path.p;
    }
    s->host = mk_config_copy(m->config, s->host);
    if (!s->port)
        s->port = defaults->port;
    if (!s->port)
        REPORT(m, "Server", "the server `%.*s` needs a port", MK_STR_ARG(s->name));
    return s->host.p && s->port;
}

/* Parses the address. Errors in a section are not reported here: they were reported when the section was
 * parsed. */
static bool parse_server_address(const struct upstream_builder *m, mk_str address, struct mk_endpoint *out)
{
    if (mk_endpoint_parse(out, address))
        return true;
    if (!m->section)
        REPORT_NAME(m, "`%.*s` is not a server: expected HOST:PORT, [ADDRESS6]:PORT or unix:/path",
                    MK_STR_ARG(mk_str_first(address, 80)));
    return false;
}

static bool builder_add_server(struct upstream_builder *m, struct mk_upstream *u,
                               const struct mk_upstream_server_line *line)
{
    struct mk_upstream_server *s = &u->servers[u->n];
    struct mk_endpoint at;
    if (!parse_server_address(m, line->address, &at))
        return m->section; /* the other servers may be valid */
    *s = (struct mk_upstream_server){.upstream = u,
                                     .name = line->address,
                                     .host = at.host,
                                     .path = at.path,
                                     .port = at.port,
                                     .index = (uint16_t)u->n,
                                     .weight = line->weight,
                                     .written = line->weight,
                                     .backup = line->backup,
                                     .key = mk_upstream_stats_key(u->name, line->address),
                                     .id = mk_upstream_stats_server_id(&m->id_key, u->name, line->address)};
    if (!copy_server_address(m, s, &u->defaults))
        return false;
    if (!mk_upstream_stats_plan_slot(&m->all->stats, &m->all->plan, u->name, s->name, &s->stats_slot)) {
        REPORT(m, "Server", "more than %d servers", MK_UPSTREAM_SERVERS);
        return false;
    }
    u->n++;
    return true;
}

/* The setting that names a server, for mk_config_allow_resolver() and similar functions. */
static const void *settings_of(const struct upstream_builder *m)
{
    return m->section ? m->section : m->owner;
}

static const char *server_key(const struct upstream_builder *m)
{
    return m->section ? "Server" : m->key;
}

/* Allows the ports of the servers; unix sockets have none. If the list of servers may change while workers run,
 * any port may be needed. */
static void allow_ports(const struct upstream_builder *m, const struct mk_upstream *u, bool may_change)
{
    const void *settings = settings_of(m);
    for (unsigned i = 0; i < u->n; i++)
        if (u->servers[i].port)
            mk_config_allow_connect(m->config, settings, server_key(m), u->servers[i].port);
    if (m->settings->check_port)
        mk_config_allow_connect(m->config, settings, "HealthPort", (uint16_t)m->settings->check_port);
    if (may_change)
        mk_config_allow_connect(m->config, settings, m->settings->max_servers ? "MaxServers" : "Server", 0);
}

static void enable_resolver_if_needed(struct upstream_builder *m, const struct mk_upstream *u)
{
    struct mk_sockaddr ignored;
    for (unsigned i = 0; i < u->n; i++)
        if (u->servers[i].name.p && !mk_resolver_parse_server(&u->servers[i], &ignored)) {
            mk_config_allow_resolver(m->config, settings_of(m), server_key(m));
            return;
        }
}

/* ---- Changes of the administrator ---- */

/* Finds StateFile, and lets the workers write to its folder. */
static bool builder_find_state_file(struct upstream_builder *m, struct mk_upstream *u)
{
    struct stat st;
    mk_str path = m->settings->state_file;
    if (!path.len)
        return true;
    u->state_file = mk_config_path(m->config, m->section, path);
    if (!u->state_file.p)
        return false;
    mk_str folder =
        mk_config_copy(m->config, mk_str_first(u->state_file, mk_str_find_last(u->state_file, '/') + 1));
    if (!folder.p || stat(folder.p, &st) < 0 || !S_ISDIR(st.st_mode)) {
        REPORT(m, "StateFile", "the folder of `%.*s` does not exist", MK_STR_ARG(u->state_file));
        return false;
    }
    mk_config_allow_writing(m->config, m->section, "StateFile", folder);
    return true;
}

static struct mk_upstream_server *find_server(const struct mk_upstream *u, mk_str name)
{
    for (unsigned i = 0; i < u->n; i++)
        if (mk_str_eq(u->servers[i].name, name))
            return &u->servers[i];
    return NULL;
}

/* Keeps the saved changes of servers that sources list. */
static bool builder_keep_discovered(struct upstream_builder *m, struct mk_upstream *u,
                                    const struct mk_server_state *state)
{
    struct mk_server_state *kept = mk_config_alloc(m->config, sizeof *kept);
    for (unsigned i = 0; kept && i < state->n; i++)
        if (state->entries[i].is_discovered)
            kept->entries[kept->n++] = state->entries[i];
    u->loaded = kept;
    return kept;
}

/* If the configuration repeats its predecessor, a server that was added since that one was loaded stays where it is: in the
 * room for such servers. */
static bool is_still_added(const struct upstream_builder *m, const struct mk_upstream *u,
                           const struct mk_server_state_entry *e)
{
    return e->is_added && mk_config_is_repeated(m->config) &&
           !mk_upstream_stats_is_active(&m->all->stats, mk_upstream_stats_key(u->name, e->server));
}

/* The line of a server that was added describes the whole server. If the configuration lists the server now, only the
 * mode is still a change. */
static bool builder_apply_saved(struct upstream_builder *m, struct mk_upstream *u, unsigned max,
                                const struct mk_server_state_entry *e)
{
    struct mk_upstream_server *s = find_server(u, e->server);
    if (!s && e->is_discovered && u->sources)
        return true;
    const struct mk_upstream_server_line line = {
        .address = e->server, .weight = e->weight ? e->weight : 1, .backup = e->is_backup};
    if (!s && is_still_added(m, u, e))
        return true;
    if (!s && (!e->is_added || u->n >= max)) {
        mk_config_warn(
            m->config, m->section, "StateFile", "the server %.*s is dropped: %s", MK_STR_ARG(e->server),
            e->is_added ? "there is no room for it (MaxServers)" : "the configuration no longer contains it");
        return true;
    }
    if (s && e->is_added)
        mk_config_warn(m->config, m->section, "StateFile",
                       "the configuration now lists the server %.*s, and overrides its saved weight",
                       MK_STR_ARG(e->server));
    else if (s && e->weight)
        s->weight = e->weight;
    if (!s && !builder_add_server(m, u, &line))
        return false;
    if (!s) {
        s = &u->servers[u->n - 1];
        s->is_saved = true;
    }
    s->mode = e->mode;
    return true;
}

/* Adds room for servers that the administrator may add. */
static bool builder_add_spare_servers(struct upstream_builder *m, struct mk_upstream *u, unsigned max)
{
    for (unsigned k = 1; u->n < max; k++) {
        char name[16];
        struct mk_upstream_server *s = &u->servers[u->n];
        int len = snprintf(name, sizeof name, "#%u", k);
        *s = (struct mk_upstream_server){
            .upstream = u, .index = (uint16_t)u->n, .weight = 1, .is_spare = true, .mode = MK_SERVER_VACANT};
        if (!mk_upstream_stats_plan_slot(&m->all->stats, &m->all->plan, u->name, mk_str_of(name, (size_t)len),
                                         &s->stats_slot)) {
            REPORT(m, "MaxServers", "more than %d servers", MK_UPSTREAM_SERVERS);
            return false;
        }
        u->n++;
    }
    return true;
}

static bool builder_add_changes(struct upstream_builder *m, struct mk_upstream *u, unsigned max)
{
    struct mk_server_state state = {.n = 0};
    if (u->sources && u->state_file.p && !mk_saved_servers_init(m->config, u))
        return false;
    if (u->state_file.p)
        mk_server_state_read(m->config, m->section, u->state_file, &state);
    if (u->sources && state.n && !builder_keep_discovered(m, u, &state))
        return false;
    for (unsigned i = 0; i < state.n; i++)
        if (!builder_apply_saved(m, u, max, &state.entries[i]))
            return false;
    if (u->n == max)
        return true;
    if (!m->all->control)
        m->all->control = mk_server_control_init(m->config);
    /* A server that is added may have a name. */
    mk_config_allow_resolver(m->config, m->section, m->settings->max_servers ? "MaxServers" : "Server");
    return m->all->control && builder_add_spare_servers(m, u, max);
}

static bool builder_add_servers(struct upstream_builder *m, struct mk_upstream *u)
{
    bool is_discovered = mk_discovery_is_configured(m->settings);
    unsigned n = 0, max = m->settings->max_servers;
    for (const struct mk_upstream_server_line *line = m->settings->servers; line; line = line->next)
        n += !line->resolves;
    if (is_discovered && !max)
        max = n + MK_DISCOVERY_ROOM < MK_SERVERS_MAX ? n + MK_DISCOVERY_ROOM : MK_SERVERS_MAX;
    if (n > MK_SERVERS_MAX) {
        REPORT(m, "Server", "more than %d servers in one upstream", MK_SERVERS_MAX);
        return false;
    }
    if (max && max < n) {
        REPORT(m, "MaxServers", "there are more servers: %u", n);
        return false;
    }
    if (is_discovered && max == n) {
        REPORT(m, "MaxServers", "no room is left for servers of `resolve` or `ServersFile`");
        return false;
    }
    u->servers = mk_config_alloc(m->config, (n > max ? n : max) * sizeof *u->servers);
    if (!u->servers || !builder_find_state_file(m, u))
        return false;
    for (const struct mk_upstream_server_line *line = m->settings->servers; line; line = line->next)
        if (!line->resolves && !builder_add_server(m, u, line))
            return false;
    if (is_discovered && !mk_discovery_add_sources(m->config, m->section, u))
        return false;
    /* An invalid line was skipped. Its error was reported. */
    if ((max || u->state_file.p) && !builder_add_changes(m, u, max ? max : u->n))
        return false;
    allow_ports(m, u, max > n);
    enable_resolver_if_needed(m, u);
    return true;
}

/* ---- TLS ---- */

static const char *tls_file_path(const struct upstream_builder *m, mk_str path)
{
    return path.len ? resolve_path(m, path).p : NULL;
}

static void free_tls_client(void *data)
{
    struct mk_upstream *u = data;
    if (u->tls)
        u->all->tls->client_free(u->tls);
}

static void free_check_tls_client(void *data)
{
    struct mk_upstream *u = data;
    if (u->check_tls)
        u->all->tls->client_free(u->check_tls);
}

static bool builder_new_tls_client(struct upstream_builder *m, struct mk_tls_client **out)
{
    const struct mk_upstream_settings *s = m->settings;
    const char *error = NULL;
    struct mk_tls_settings_error problem = {0};
    m->all->tls = mk_tls_load(&error);
    if (!m->all->tls) {
        REPORT(m, "TLS", "this server has no TLS: %s", error);
        return false;
    }
    struct mk_tls_client_settings rules = {.authority = tls_file_path(m, s->tls_authority),
                                           .certificate = tls_file_path(m, s->tls_certificate),
                                           .key = tls_file_path(m, s->tls_key),
                                           .verifies = s->tls_verify};
    if (m->all->tls->client_new(&rules, out, &problem)) {
        REPORT(m, "TLS", "%s%s%s", problem.file ? problem.file : "", problem.file ? ": " : "", problem.text);
        return false;
    }
    if (*problem.text)
        mk_config_warn(m->config, m->section, "TLSCertificate", "%s: %s", problem.file, problem.text);
    return true;
}

static bool builder_add_tls(struct upstream_builder *m, struct mk_upstream *u)
{
    return builder_new_tls_client(m, &u->tls) && mk_config_add_cleanup(m->config, free_tls_client, u);
}

/* Sets the TLS settings of health checks. */
static bool builder_add_check_tls(struct upstream_builder *m, struct mk_upstream *u)
{
    enum mk_health_tls how = m->settings->check_tls;
    if (how == MK_HEALTH_TLS_AUTO || (how == MK_HEALTH_TLS_ON && u->tls))
        u->check_tls = u->tls;
    else if (how == MK_HEALTH_TLS_ON)
        return builder_new_tls_client(m, &u->check_tls) &&
               mk_config_add_cleanup(m->config, free_check_tls_client, u);
    return true;
}

/* ---- HTTP/2 ---- */

/* Defined by src/http2client if HTTP/2 is built in. */
extern const struct mk_upstream_http2_module mk_h2_session_module __attribute__((weak));

const struct mk_upstream_http2_module *mk_upstream_http2_get_module(void)
{
    return &mk_h2_session_module;
}

static bool builder_add_http2(struct upstream_builder *m, struct mk_upstream *u)
{
    u->http2 = m->all->http2 = mk_upstream_http2_get_module();
    if (!u->http2)
        REPORT_NAME(m, "this server does not support HTTP/2: Monkey was built without %s", "nghttp2");
    if (m->settings->check_text.len && !m->settings->check_port) {
        REPORT(m, "HealthText", "checks of content need HTTP/1.1, on a port that `HealthPort` names");
        return false;
    }
    return u->http2;
}

/* ---- Settings ---- */

static uint32_t value_or_default(uint32_t set, uint32_t preferred)
{
    return set == MK_SETTING_UNSET ? preferred : set;
}

/* The [UPSTREAM] settings for a server that a route names directly. */
static struct mk_upstream_settings *default_settings_for_route(struct upstream_builder *m)
{
    struct mk_upstream_settings *s = mk_config_defaults(m->config, &mk_upstream_settings_table);
    struct mk_upstream_server_line *line = mk_config_alloc(m->config, sizeof *line);
    if (!s || !line)
        return NULL;
    *line = (struct mk_upstream_server_line){.address = mk_config_copy(m->config, m->name), .weight = 1};
    s->name = line->address;
    s->servers = line;
    return line->address.p ? s : NULL;
}

/* ---- KeyFile ---- */

enum { SECRET_MIN = 32, FILE_MAX = 16 * 1024 };

static ssize_t read_key_file(const char *path, char *buf, size_t cap)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, buf, cap) : -1;
    int e = errno;
    if (fd >= 0)
        close(fd);
    errno = e;
    return n;
}

/* Removes the newline that some editors add at the end of a file. */
static mk_str strip_line_end(mk_str s)
{
    while (mk_str_ends(s, MK_STR("\n")) || mk_str_ends(s, MK_STR("\r")))
        s.len--;
    return s;
}

/* Loads a secret shared by several machines. False: unreadable or too short, and the error was reported. */
static bool load_key_file_secret(struct mk_config *config, const void *section, mk_str path,
                                 struct mk_hash_key *out)
{
    char text[FILE_MAX];
    unsigned char sum[MK_SHA1_LEN];
    ssize_t n = path.p ? read_key_file(path.p, text, sizeof text) : -1;
    mk_str secret = strip_line_end(mk_str_of(text, n > 0 ? (size_t)n : 0));
    if (n < 0)
        mk_config_error(config, section, "KeyFile", "`%.*s` cannot be read: %s", MK_STR_ARG(path),
                        strerror(errno));
    else if (secret.len < SECRET_MIN)
        mk_config_error(config, section, "KeyFile", "`%.*s` has %zu characters: a secret needs at least %d",
                        MK_STR_ARG(path), secret.len, SECRET_MIN);
    mk_sha1(secret, sum);
    memcpy(out, sum, sizeof *out);
    explicit_bzero(text, sizeof text);
    return n >= 0 && secret.len >= SECRET_MIN;
}

static bool load_server_id_key(struct upstream_builder *m)
{
    mk_str path = m->settings->key_file;
    if (!path.len)
        return mk_config_hash_key(m->config, "upstream: servers", &m->id_key) == 0;
    return load_key_file_secret(m->config, m->section, mk_config_path(m->config, m->section, path),
                                &m->id_key);
}

/* ---- The upstream ---- */

static void append_upstream(struct mk_upstreams *all, struct mk_upstream *u)
{
    if (all->last)
        all->last->next = u;
    else
        all->first = u;
    all->last = u;
    all->n++;
    all->n_servers += u->n;
}

static struct mk_upstream *builder_new_upstream(struct upstream_builder *m,
                                                const struct mk_upstream_defaults *defaults)
{
    struct mk_upstream *u = mk_config_alloc(m->config, sizeof *u);
    m->settings = m->section ? m->section : default_settings_for_route(m);
    if (!u || !m->settings)
        return NULL;
    *u = (struct mk_upstream){.name = m->settings->name,
                              .settings = m->settings,
                              .defaults = *defaults,
                              .all = m->all,
                              .max = value_or_default(m->settings->max, defaults->max_connections),
                              .idle_ms = m->settings->idle_ms,
                              .index = m->all->n};
    /* If another worker needs a connection, idle ones are closed for it, so all connections may be kept
     * idle. */
    u->keep = value_or_default(m->settings->keep, defaults->keepalive ? defaults->keepalive : u->max);
    if (!load_server_id_key(m))
        return NULL;
    u->id_key = m->id_key;
    if (!builder_add_servers(m, u) || ((defaults->tls || m->settings->tls) && !builder_add_tls(m, u)) ||
        !builder_add_check_tls(m, u) || (defaults->http2 && !builder_add_http2(m, u)))
        return NULL;
    append_upstream(m->all, u);
    return u;
}

static struct mk_upstream *find_or_build_upstream(struct upstream_builder *m,
                                                  const struct mk_upstream_defaults *defaults)
{
    m->section = mk_upstream_settings_find(&m->all->index, m->name);
    for (struct mk_upstream *u = m->all->first; u; u = u->next) {
        if (!mk_str_eq(u->name, m->name))
            continue;
        if (defaults_are_equal(&u->defaults, defaults))
            return u;
        if (m->section) {
            REPORT_NAME(m, "another kind of handler uses the upstream `%.*s`", MK_STR_ARG(m->name));
            mk_config_hint(m->config, "write an [UPSTREAM] with another Name for this one");
            return NULL;
        }
    }
    return builder_new_upstream(m, defaults);
}

struct mk_upstream *mk_upstream_lookup_for_route(struct mk_upstreams *all, const struct mk_conf_ctx *conf,
                                                 mk_str name, const struct mk_upstream_defaults *defaults)
{
    struct upstream_builder m = {.config = mk_conf_ctx_config(conf), .all = all, .ctx = conf, .name = name};
    return find_or_build_upstream(&m, defaults);
}

struct mk_upstream *mk_upstream_lookup_for_key(struct mk_upstreams *all, struct mk_config *config,
                                               const void *section, const char *key, mk_str name,
                                               const struct mk_upstream_defaults *defaults)
{
    struct upstream_builder m = {.config = config, .all = all, .owner = section, .key = key, .name = name};
    return find_or_build_upstream(&m, defaults);
}

/* ---- Dynamic upstreams ---- */

/* Adds a server that no connection uses: its slot has the statistics of all hosts. */
static bool builder_add_placeholder(struct upstream_builder *m, struct mk_upstream *u)
{
    struct mk_upstream_server *s = u->servers = mk_config_alloc(m->config, sizeof *s);
    if (!s)
        return false;
    *s = (struct mk_upstream_server){.upstream = u, .name = MK_STR("*"), .path = MK_STR(""), .weight = 1};
    u->n = 1;
    if (mk_upstream_stats_plan_slot(&m->all->stats, &m->all->plan, u->name, s->name, &s->stats_slot))
        return true;
    REPORT(m, m->key, "more than %d servers", MK_UPSTREAM_SERVERS);
    return false;
}

struct mk_upstream *mk_upstream_lookup_open_dynamic(struct mk_upstreams *all, struct mk_config *config,
                                                    const void *section, const char *key, mk_str name,
                                                    const struct mk_upstream_dynamic_options *options)
{
    struct upstream_builder m = {.config = config, .all = all, .owner = section, .key = key, .name = name};
    struct mk_upstream *u = mk_config_alloc(config, sizeof *u);
    struct mk_upstream_settings *settings = default_settings_for_route(&m);
    if (!u || !settings)
        return NULL;
    settings->max_fails = 0;
    settings->tls_authority = options->tls_authority;
    m.settings = settings;
    *u = (struct mk_upstream){.name = settings->name,
                              .settings = settings,
                              .defaults = {.tls = options->tls},
                              .all = all,
                              .keep = options->keepalive,
                              .idle_ms = settings->idle_ms,
                              .index = all->n,
                              .max_hosts = options->max_hosts,
                              .allows = options->allows,
                              .allows_ctx = options->allows_ctx};
    if (!builder_add_placeholder(&m, u) || (options->tls && !builder_add_tls(&m, u)))
        return NULL;
    mk_config_allow_resolver(config, section, key);
    mk_config_allow_connect(config, section, key, 0);
    append_upstream(all, u);
    return u;
}

mk_str mk_upstream_name(const struct mk_upstream *u)
{
    return u->name;
}

bool mk_upstream_is_tls(const struct mk_upstream *u)
{
    return u->tls;
}

unsigned mk_upstream_count(const struct mk_upstream *u)
{
    return u->n;
}

uint64_t mk_upstream_server_id(const struct mk_upstream *u, unsigned i)
{
    return i < u->n ? u->servers[i].id : 0;
}

/* ---- The limits of a route ---- */

enum { TRIES = 2, TRIES_MAX = 16, WAIT_MS = 60000 };

static bool parse_tries(const struct mk_conf_ctx *conf, mk_str value, unsigned *out)
{
    uint64_t n;
    bool is_good = mk_num_parse(value, &n) && n >= 1 && n <= TRIES_MAX;
    if (is_good)
        *out = (unsigned)n;
    else
        mk_conf_ctx_error(conf, value, "expected a number from 1 to %d", TRIES_MAX);
    return is_good;
}

/* Parses an option of MK_UPSTREAM_LIMITS_SYNTAX. 1: parsed; 0: it is another option; -EINVAL: invalid. */
static int parse_limit(const struct mk_conf_ctx *conf, mk_str word, struct mk_upstream_limits *l)
{
    bool is_good;
    mk_str value = word, name = mk_str_cut(&value, '=');
    if (!value.len)
        return 0;
    if (mk_str_eq(name, MK_STR("max_tries")))
        is_good = parse_tries(conf, value, &l->max_tries);
    else if (mk_str_eq(name, MK_STR("response_timeout")))
        is_good = mk_conf_ctx_time(conf, value, &l->response_timeout_ms);
    else if (mk_str_eq(name, MK_STR("read_timeout")))
        is_good = mk_conf_ctx_time(conf, value, &l->read_timeout_ms);
    else if (mk_str_eq(name, MK_STR("total_timeout")))
        is_good = mk_conf_ctx_time(conf, value, &l->total_timeout_ms);
    else
        return 0;
    return is_good ? 1 : -EINVAL;
}

bool mk_upstream_limits_read(const struct mk_conf_ctx *conf, mk_str words, struct mk_upstream_limits *limits,
                             bool (*read)(void *ctx, mk_str word), void *ctx)
{
    *limits = (struct mk_upstream_limits){
        .max_tries = TRIES, .response_timeout_ms = WAIT_MS, .read_timeout_ms = WAIT_MS};
    for (;;) {
        mk_str word;
        if (!mk_conf_ctx_word(conf, &words, &word))
            return false;
        if (!word.p)
            return true;
        int e = parse_limit(conf, word, limits);
        if (e < 0 || (e == 0 && !read(ctx, word)))
            return false;
    }
}

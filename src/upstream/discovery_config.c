/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of service discovery in [UPSTREAM]. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/platform.h"
#include "os/access_check.h"
#include "upstream/discovery.h"
#include "upstream/discovery_lookup.h"
#include "upstream/dns_message.h"
#include "upstream/endpoint.h"
#include "upstream/resolver.h"

enum { RESOLV_CONF_MAX = 16 * 1024, DNS_PORT = 53 };

/* Parses a link-local address with its interface, such as `fe80::1%eth0`. */
static bool parse_scoped_resolver(mk_str text, struct mk_sockaddr *out)
{
    const struct addrinfo hints = {
        .ai_family = AF_INET6, .ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    char name[MK_SOCKADDR_TEXT_MAX];
    if (text.len >= sizeof name)
        return false;
    memcpy(name, text.p, text.len);
    name[text.len] = '\0';
    if (getaddrinfo(name, "53", &hints, &found) != 0)
        return false;
    *out = (struct mk_sockaddr){.len = sizeof out->v6};
    memcpy(&out->v6, found->ai_addr, sizeof out->v6);
    freeaddrinfo(found);
    return true;
}

static bool parse_resolver(mk_str text, struct mk_sockaddr *out)
{
    struct mk_addr ignored;
    char with_port[MK_SOCKADDR_TEXT_MAX];
    struct mk_buf buf = mk_buf_fixed(with_port, sizeof with_port);
    if (mk_str_find(text, '%') != MK_STR_NONE)
        return parse_scoped_resolver(text, out);
    if (!mk_addr_parse(text, &ignored))
        return false;
    if (ignored.port)
        return mk_resolver_parse_addr(text, out);
    bool is_bare6 = text.p[0] != '[' && mk_str_find(text, ':') != MK_STR_NONE;
    mk_buf_addf(&buf, is_bare6 ? "[%.*s]:%d" : "%.*s:%d", MK_STR_ARG(text), DNS_PORT);
    return !buf.failed && mk_resolver_parse_addr(mk_buf_str(&buf), out);
}

/* ---- Checks ---- */

static bool is_srv(mk_str name)
{
    return mk_str_starts(name, MK_STR("_"));
}

static bool is_domain_name(mk_str name)
{
    unsigned char ignored[MK_DNS_QUERY_MAX];
    const struct mk_dns_query query = {.name = name, .type = MK_DNS_A};
    return mk_dns_write_query(&query, ignored);
}

/* Is this a name, with a port unless it is the name of a service? */
static bool check_resolved_line(struct mk_config *config, const struct mk_upstream_settings *s,
                                const struct mk_upstream_server_line *line)
{
    struct mk_endpoint at;
    struct mk_addr ignored;
    const char *expected = NULL;
    if (!mk_endpoint_parse(&at, line->address))
        return false; /* reported already */
    if (!at.host.p || mk_addr_parse(at.host, &ignored))
        expected = "a name before `resolve`, such as `app.example.org:8080`";
    else if (is_srv(at.host) && at.port)
        expected = "no port: the SRV records have the ports";
    else if (!is_domain_name(at.host))
        expected = "a domain name: labels of 1 to 63 bytes, separated by dots";
    if (expected)
        mk_config_report(config, MK_LOG_ERROR, s, "Server", line->address, "expected %s", expected);
    return !expected;
}

void mk_discovery_check_section(struct mk_config *config, const struct mk_upstream_settings *s)
{
    struct mk_sockaddr ignored;
    for (const struct mk_upstream_server_line *line = s->servers; line; line = line->next)
        if (line->resolves)
            (void)check_resolved_line(config, s, line);
    for (size_t i = 0; i < s->resolvers.n; i++)
        if (!parse_resolver(s->resolvers.v[i], &ignored))
            mk_config_report(
                config, MK_LOG_ERROR, s, "Resolver", s->resolvers.v[i],
                "expected the address of a name server, such as `10.0.0.53` or `[2001:db8::53]:5353`");
    if (s->resolvers.n > MK_RESOLVERS_MAX)
        mk_config_error(config, s, "Resolver", "at most %d name servers", MK_RESOLVERS_MAX);
    if (s->resolvers.n && !s->n_resolved)
        mk_config_warn(config, s, "Resolver",
                       "no Server has the option `resolve`: all names are resolved by the system");
    if (mk_discovery_is_configured(s) && !mk_platform.owns_process)
        mk_config_error(config, s, s->n_resolved ? "Server" : "ServersFile",
                        "workers that are threads cannot discover servers");
}

/* ---- Name servers ---- */

struct nameserver_counts {
    unsigned n_skipped, n_more;
};

static void add_nameserver(struct mk_resolvers *r, mk_str line, struct nameserver_counts *counts)
{
    if (!mk_str_eq(mk_str_word(&line), MK_STR("nameserver")))
        return;
    if (r->n == MK_RESOLVERS_MAX)
        counts->n_more++;
    else if (parse_resolver(mk_str_word(&line), &r->of[r->n]))
        r->n++;
    else
        counts->n_skipped++;
}

/* The file is read in the master, because a worker may not see it. */
static void read_resolv_conf(struct mk_config *config, const void *section, struct mk_resolvers *r)
{
    char text[RESOLV_CONF_MAX];
    struct nameserver_counts counts = {0};
    int fd = open("/etc/resolv.conf", O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);
    mk_str rest = mk_str_of(text, n > 0 ? (size_t)n : 0);
    if (fd >= 0)
        close(fd);
    while (rest.len)
        add_nameserver(r, mk_str_cut(&rest, '\n'), &counts);
    if (counts.n_skipped)
        mk_config_warn(config, section, "Server",
                       "/etc/resolv.conf: %u name server%s with an invalid address", counts.n_skipped,
                       counts.n_skipped == 1 ? "" : "s");
    if (counts.n_more)
        mk_config_warn(config, section, "Server", "/etc/resolv.conf: only the first %d name servers are used",
                       MK_RESOLVERS_MAX);
    if (r->n)
        return;
    mk_config_warn(config, section, "Server",
                   "/etc/resolv.conf lists no name server that can be used: 127.0.0.1 is used");
    add_nameserver(r, MK_STR("nameserver 127.0.0.1"), &counts);
}

static bool add_resolvers(struct mk_config *config, struct mk_upstream *u)
{
    const struct mk_upstream_settings *s = u->settings;
    struct mk_resolvers *r = mk_config_alloc(config, sizeof *r);
    if (!r)
        return false;
    for (size_t i = 0; i < s->resolvers.n && r->n < MK_RESOLVERS_MAX; i++)
        if (parse_resolver(s->resolvers.v[i], &r->of[r->n]))
            r->n++;
    if (!r->n)
        read_resolv_conf(config, s, r);
    u->resolvers = r;
    mk_config_allow_resolver(config, s, s->resolvers.n ? "Resolver" : "Server");
    for (unsigned i = 0; i < r->n; i++)
        mk_config_allow_connect(config, s, s->resolvers.n ? "Resolver" : "Server",
                                mk_sockaddr_port(&r->of[i]));
    return true;
}

/* ---- Sources ---- */

static bool add_source(struct mk_config *config, struct mk_upstream *u,
                       const struct mk_discovery_source *like)
{
    struct mk_discovery_source *s = mk_config_alloc(config, sizeof *s), **end = &u->sources;
    if (!s)
        return false;
    *s = *like;
    s->upstream = u;
    s->id = mk_upstream_stats_key(u->name, s->name) ^ s->weight << 1 ^ s->is_backup;
    s->id = s->id ? s->id : 1;
    while (*end)
        end = &(*end)->next;
    *end = s;
    return true;
}

static bool add_resolved_line(struct mk_config *config, const void *section, struct mk_upstream *u,
                              const struct mk_upstream_server_line *line)
{
    struct mk_endpoint at;
    if (!mk_endpoint_parse(&at, line->address))
        return false;
    struct mk_discovery_source s = {.kind = is_srv(at.host) ? MK_DISCOVER_SRV : MK_DISCOVER_ADDRESSES,
                                    .name = line->address,
                                    .host = mk_config_copy(config, at.host),
                                    .port = at.port ? at.port : u->defaults.port,
                                    .weight = line->weight,
                                    .is_backup = line->backup};
    if (s.kind == MK_DISCOVER_ADDRESSES && !s.port) {
        mk_config_report(config, MK_LOG_ERROR, section, "Server", line->address,
                         "the server `%.*s` needs a port", MK_STR_ARG(line->address));
        return false;
    }
    return s.host.p && add_source(config, u, &s);
}

/* The master reads the file with its own rights, but the first worker reads it later. */
static void check_access(struct mk_config *config, const void *section, const struct mk_discovery_source *s)
{
    struct mk_identity id = {.n_groups = 0};
    if (!mk_config_user(config, &id.uid, &id.gid))
        return;
    const struct passwd *user = getpwuid(id.uid);
    if (user)
        snprintf(id.user, sizeof id.user, "%s", user->pw_name);
    size_t denied = mk_access_check_find_denied(&id, s->path.p, 1);
    if (denied)
        mk_config_warn(config, section, "ServersFile", "the User %s of the workers cannot access `%.*s`",
                       id.user, (int)denied, s->path.p);
}

/* Workers may read the folder of the file, and the folder that a symbolic link leads to. */
static void allow_folders(struct mk_config *config, const void *section, mk_str path, mk_str folder)
{
    char target[PATH_MAX];
    mk_config_allow_path(config, section, "ServersFile", folder);
    if (!realpath(path.p, target))
        return;
    mk_str at = mk_str_from_c(target);
    mk_str target_folder = mk_config_copy(config, mk_str_first(at, mk_str_find_last(at, '/') + 1));
    if (target_folder.p && !mk_str_eq(target_folder, folder))
        mk_config_allow_path(config, section, "ServersFile", target_folder);
}

/* Reads the file once, to report mistakes in it. The workers, which may not be allowed to read it, read it again. */
static bool check_file(struct mk_config *config, const void *section, const struct mk_discovery_source *s)
{
    struct mk_discovery_lookup *l = mk_mem_zalloc(1, sizeof *l);
    if (!l)
        return false;
    l->source = s;
    int e = mk_discovery_read_file(l);
    if (e == -EBADMSG)
        mk_config_error(config, section, "ServersFile", "%.*s: %s", MK_STR_ARG(s->path), l->message);
    else if (!e)
        check_access(config, section, s);
    else if (e)
        mk_config_warn(config, section, "ServersFile", "%.*s: %s", MK_STR_ARG(s->path), l->message);
    mk_mem_free(l);
    return e != -EBADMSG;
}

static bool add_file(struct mk_config *config, const void *section, struct mk_upstream *u)
{
    struct stat st;
    struct mk_discovery_source s = {.kind = MK_DISCOVER_FILE, .port = u->defaults.port, .weight = 1};
    s.name = s.path = mk_config_path(config, section, u->settings->servers_file);
    if (!s.path.p)
        return false;
    mk_str folder = mk_config_copy(config, mk_str_first(s.path, mk_str_find_last(s.path, '/') + 1));
    if (!folder.p || stat(folder.p, &st) < 0 || !S_ISDIR(st.st_mode)) {
        mk_config_error(config, section, "ServersFile", "the folder of `%.*s` does not exist",
                        MK_STR_ARG(s.path));
        return false;
    }
    allow_folders(config, section, s.path, folder);
    return check_file(config, section, &s) && add_source(config, u, &s);
}

bool mk_discovery_add_sources(struct mk_config *config, const void *section, struct mk_upstream *u)
{
    for (const struct mk_upstream_server_line *line = u->settings->servers; line; line = line->next)
        if (line->resolves && !add_resolved_line(config, section, u, line))
            return false;
    return (!u->settings->n_resolved || add_resolvers(config, u)) &&
           (!u->settings->servers_file.len || add_file(config, section, u));
}

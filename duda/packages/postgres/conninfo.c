/* SPDX-License-Identifier: Apache-2.0 */
#include "conninfo.h"

#include <arpa/inet.h>
#include <monkey/config.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

/* Comma-separated lists; NULL: not in the connection string, so libpq uses its defaults. */
struct lists {
    const char *hosts, *addresses, *ports;
    bool has_service; /* pg_service.conf names the servers */
    bool has_user;
};

static bool is_address(mk_str host)
{
    char buf[16];
    return !host.len || host.p[0] == '/' || host.p[0] == '@' || inet_pton(AF_INET, host.p, buf) == 1 ||
           inet_pton(AF_INET6, host.p, buf) == 1;
}

static unsigned count_list_items(const char *list)
{
    unsigned n = list ? 1 : 0;
    for (const char *at = list; at && *at; at++)
        n += *at == ',';
    return n;
}

static mk_str next_list_item(struct mk_config *config, mk_str *rest)
{
    return mk_config_copy(config, mk_str_cut(rest, ','));
}

static bool fill_host_list(struct mk_config *config, struct postgres_settings *s, const struct lists *lists)
{
    mk_str hosts = mk_str_from_c(lists->hosts ? lists->hosts : ""),
           addresses = mk_str_from_c(lists->addresses ? lists->addresses : ""),
           ports = mk_str_from_c(lists->ports ? lists->ports : "");
    struct postgres_host_list *all = &s->host_list;
    unsigned n = count_list_items(lists->hosts ? lists->hosts : lists->addresses),
             n_ports = count_list_items(lists->ports);
    if (n > POSTGRES_HOSTS_MAX) {
        mk_config_error(config, s, "Server", "more than %d hosts", POSTGRES_HOSTS_MAX);
        return false;
    }
    if (lists->hosts && lists->addresses && count_list_items(lists->addresses) != n) {
        mk_config_error(config, s, "Server", "`host` has %u entries, but `hostaddr` has %u", n,
                        count_list_items(lists->addresses));
        return false;
    }
    if (n_ports > 1 && n_ports != n) {
        mk_config_error(config, s, "Server", "there are %u hosts, but %u ports", n, n_ports);
        return false;
    }
    all->has_ports = n_ports > 1;
    for (all->n = 0; all->n < n; all->n++) {
        struct postgres_host *p = &all->v[all->n];
        *p = (struct postgres_host){.host = next_list_item(config, &hosts),
                                    .address = next_list_item(config, &addresses)};
        p->port = n_ports > 1 ? next_list_item(config, &ports) : mk_config_copy(config, ports);
        if (!p->host.p || !p->address.p || !p->port.p)
            return false; /* mk_config_copy() has reported the error */
        p->is_name = !p->address.len && !is_address(p->host);
        all->has_names = all->has_names || p->is_name;
    }
    all->n = all->has_names || n > 1 ? n : 0;
    return true;
}

/* Allows the ports of the list, or libpq's default. Unix sockets need no permission. */
static void allow_ports(struct mk_config *config, const struct postgres_settings *s,
                        const struct lists *lists)
{
    enum { DEFAULT_PORT = 5432 };
    const char *list = lists->ports ? lists->ports : getenv("PGPORT");
    mk_str rest = mk_str_from_c(list && *list ? list : "5432");
    while (rest.len) {
        uint64_t port = 0;
        mk_str word = mk_str_trim(mk_str_cut(&rest, ','));
        if (!word.len || (mk_num_parse(word, &port) && port > 0 && port <= UINT16_MAX))
            mk_config_allow_connect(config, s, "Server", (uint16_t)(port ? port : DEFAULT_PORT));
    }
    if (lists->has_service || getenv("PGSERVICE"))
        mk_config_allow_connect(config, s, "Server", 0);
}

static bool is_option(const PQconninfoOption *o, const char *keyword)
{
    return strcmp(o->keyword, keyword) == 0;
}

/* Collects the host lists, lets workers read the files, and rejects an encoding other than UTF-8, on which
 * duda_postgres_quote() depends. */
static bool apply_conninfo_option(struct mk_config *config, struct postgres_settings *s,
                                  const PQconninfoOption *o, struct lists *lists)
{
    if (is_option(o, "host"))
        lists->hosts = o->val;
    else if (is_option(o, "hostaddr"))
        lists->addresses = o->val;
    else if (is_option(o, "port"))
        lists->ports = o->val;
    else if (is_option(o, "service"))
        lists->has_service = true;
    else if (is_option(o, "user"))
        lists->has_user = true;
    else if (is_option(o, "sslrootcert") || is_option(o, "sslcert") || is_option(o, "sslkey"))
        mk_config_allow_path(config, s, "Server", mk_config_copy(config, mk_str_from_c(o->val)));
    else if (is_option(o, "client_encoding") && !mk_str_eq_nocase(mk_str_from_c(o->val), MK_STR("UTF8"))) {
        mk_config_error(config, s, "Server", "client_encoding must be UTF8");
        return false;
    }
    return true;
}

/* The default user is that of the workers, as in libpq. A worker cannot look up its name, because the sandbox
 * hides /etc/passwd. */
static void set_default_user(struct mk_config *config, struct postgres_settings *s, const struct lists *lists)
{
    uid_t uid;
    gid_t gid;
    if (lists->has_user || lists->has_service || getenv("PGUSER") || getenv("PGSERVICE"))
        return;
    if (!mk_config_user(config, &uid, &gid))
        uid = geteuid();
    const struct passwd *user = getpwuid(uid);
    if (user)
        s->user = mk_config_copy(config, mk_str_from_c(user->pw_name));
}

bool postgres_conninfo_parse(struct mk_config *config, struct postgres_settings *s)
{
    char *error = NULL;
    struct lists lists = {.hosts = NULL};
    bool is_valid = true;
    PQconninfoOption *options = PQconninfoParse(s->server.p, &error);
    if (!options) {
        mk_config_error(config, s, "Server", "%.*s",
                        MK_STR_ARG(mk_str_trim(mk_str_from_c(error ? error : "out of memory"))));
        PQfreemem(error);
        return false;
    }
    for (const PQconninfoOption *o = options; o->keyword && is_valid; o++)
        if (o->val && o->val[0])
            is_valid = apply_conninfo_option(config, s, o, &lists);
    if (!lists.hosts && !lists.addresses)
        lists.hosts = getenv("PGHOST");
    is_valid = is_valid && fill_host_list(config, s, &lists);
    if (is_valid) {
        set_default_user(config, s, &lists);
        allow_ports(config, s, &lists);
    }
    if (is_valid && s->host_list.has_names)
        mk_config_allow_resolver(config, s, "Server");
    PQconninfoFree(options);
    return is_valid;
}

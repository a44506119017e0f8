/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/listen_addresses.h"

#include "conf/table.h"
#include "setup/keys.h"

enum { LISTENS_MAX = 64 }; /* equals MK_LISTENERS_MAX, which a higher layer defines */

struct listen_collector {
    struct mk_config_generation *g;
    const struct mk_config_overrides *overrides;
    struct mk_conf_report *report;
};

/* ---- Gathering ---- */

static void override_listens(struct listen_collector *c, struct mk_listens *list, size_t n)
{
    const char *const *p = c->overrides->listens;
    list->at = mk_arena_zalloc(&c->g->arena, n, sizeof *list->at);
    list->n = list->at ? n : 0;
    for (size_t i = 0; i < list->n; i++) {
        mk_str rest = mk_str_from_c(p[i]), word;
        list->at[i].written = mk_str_word(&rest);
        list->at[i].at.file = MK_STR("command line");
        if (mk_sockaddr_parse(list->at[i].written, c->overrides->listen_host, &list->at[i].addr))
            mk_conf_report_error(
                c->report, &list->at[i].at,
                "`%.*s` is not a port to listen on: expected PORT, ADDRESS:PORT, [ADDRESS6]:PORT or "
                "unix:/path",
                MK_STR_ARG(list->at[i].written));
        const char *problem = mk_keys_parse_listen_flags(&rest, &list->at[i], &word);
        if (problem)
            mk_conf_report_error(c->report, &list->at[i].at, "`%s`: `%.*s` %s", p[i],
                                 MK_CONF_REPORT_ARG(word), problem);
    }
}

/* Applies -p, which replaces every Listen. */
static void apply_listen_overrides(struct listen_collector *c)
{
    size_t n = 0;
    while (c->overrides->listens && c->overrides->listens[n])
        n++;
    if (!n)
        return;
    override_listens(c, &c->g->server.listens, n);
    for (struct mk_vhost_config *s = c->g->sites; s; s = s->next)
        s->settings.listens = (struct mk_listens){0};
}

/* Is there a host without a Listen, or no host at all? */
static bool needs_default_listen(const struct mk_config_generation *g)
{
    const struct mk_vhost_config *s = g->sites;
    while (s && s->settings.listens.n)
        s = s->next;
    return s || !g->sites;
}

static bool has_host_listen(const struct mk_config_generation *g)
{
    const struct mk_vhost_config *s = g->sites;
    while (s && !s->settings.listens.n)
        s = s->next;
    return s != NULL;
}

static void add_default_listen(struct listen_collector *c)
{
    struct mk_listens *list = &c->g->server.listens;
    bool is_told = c->g->embedding && c->g->embedding->listens_if_told;
    if (list->n || is_told || !needs_default_listen(c->g))
        return;
    list->at = mk_arena_zalloc(&c->g->arena, 1, sizeof *list->at);
    list->n = list->at ? 1 : 0;
    mk_str host = c->overrides->listen_host;
    mk_str port = mk_arena_printf(&c->g->arena, "%u", c->g->server.port);
    c->g->listens_by_default = !has_host_listen(c->g);
    if (list->at && port.p &&
        mk_sockaddr_parse(port, host.p ? host : MK_STR("0.0.0.0"), &list->at[0].addr) == 0)
        list->at[0].written = port;
}

static bool has_same_protocol(const struct mk_listen *a, const struct mk_listen *b)
{
    return a->tls == b->tls && a->http2 == b->http2;
}

static const char *protocol_name(const struct mk_listen *l)
{
    return l->tls ? "TLS" : l->http2 ? "HTTP/2 only" : "plain HTTP";
}

static void report_protocol_conflict(struct listen_collector *c, const struct mk_listen *one,
                                     const struct mk_listen *first)
{
    mk_conf_report_error(c->report, &one->at,
                         "`%.*s` is for %s here and for %s in %.*s:%u: an address supports only one of them",
                         MK_STR_ARG(one->written), protocol_name(one), protocol_name(first),
                         MK_STR_ARG(first->at.file.len ? first->at.file : MK_STR("the default")),
                         first->at.line);
}

static struct mk_listen *find_listen(const struct mk_listens *list, const struct mk_sockaddr *addr)
{
    for (size_t i = 0; i < list->n; i++)
        if (mk_sockaddr_eq(&list->at[i].addr, addr))
            return &list->at[i];
    return NULL;
}

static void append_listen(struct listen_collector *c, const struct mk_listen *one, bool of_server)
{
    struct mk_listens *all = &c->g->listens;
    if (all->n == LISTENS_MAX) {
        mk_conf_report_error(c->report, &one->at, "there are more than %d addresses to listen on",
                             LISTENS_MAX);
        return;
    }
    if (mk_arena_append(&c->g->arena, &all->at, &all->n, one, sizeof *one))
        all->at[all->n - 1].of_server = of_server;
}

static void collect_listens(struct listen_collector *c, struct mk_listens *list, bool of_server)
{
    for (size_t i = 0; i < list->n; i++) {
        struct mk_listen *one = &list->at[i];
        if (one->takes_port)
            mk_sockaddr_set_port(&one->addr, c->g->server.port);
        bool twice = mk_sockaddr_port(&one->addr) && find_listen(list, &one->addr) != one;
        const struct mk_listen *first = find_listen(&c->g->listens, &one->addr);
        if (twice)
            mk_conf_report_error(c->report, &one->at, "`%.*s` already has a Listen",
                                 MK_STR_ARG(one->written));
        else if (first && !has_same_protocol(one, first))
            report_protocol_conflict(c, one, first);
        else if (!first || of_server)
            append_listen(c, one, of_server);
    }
}

void mk_listen_addresses_collect(struct mk_config_generation *g, const struct mk_config_overrides *o,
                                 struct mk_conf_report *report)
{
    struct listen_collector c = {.g = g, .overrides = o, .report = report};
    apply_listen_overrides(&c);
    add_default_listen(&c);
    collect_listens(&c, &g->server.listens, true);
    for (struct mk_vhost_config *s = g->sites; s; s = s->next)
        collect_listens(&c, &s->settings.listens, false);
}

/* ---- Hosts ---- */

/* The assignment of hosts to an address. If `listen` is NULL, the hosts are those without a Listen of their
 * own. */
struct assign_hosts {
    struct mk_config_generation *g;
    struct mk_conf_report *report;
    const struct mk_listen *listen;
    struct mk_vhosts *hosts;
};

bool mk_listen_addresses_serves(const struct mk_listen *l, const struct mk_vhost_config *s)
{
    const struct mk_listens *own = &s->settings.listens;
    return own->n ? l && find_listen(own, &l->addr) : !l || l->of_server;
}

/* Chooses the default host: the host marked as default; or else, as in Monkey 1, the host in sites/default;
 * or else the first host. */
static void choose_default_host(struct assign_hosts *l)
{
    const struct mk_vhost_config *chosen = NULL;
    for (const struct mk_vhost_config *s = l->g->sites; s; s = s->next) {
        bool by_file = !chosen && mk_str_ends(s->section->at.file, MK_STR("/sites/default"));
        if (mk_listen_addresses_serves(l->listen, s) && (s->settings.is_default || by_file))
            chosen = s;
    }
    if (chosen)
        mk_vhosts_set_default(l->hosts, &chosen->host);
}

/* Reports only one error for a host, even if it shares several addresses with the other host. */
static void report_duplicate_name(struct assign_hosts *l, struct mk_vhost_config *s, mk_str name,
                                  const struct mk_vhost *other)
{
    if (!s->has_conflict)
        mk_conf_report_error(l->report, &s->section->at,
                             "another [HOST] already has the ServerName `%.*s`: the one in %.*s",
                             MK_STR_ARG(name), MK_STR_ARG(other->written_at));
    s->has_conflict = true;
}

static void check_single_default_host(struct assign_hosts *l)
{
    const struct mk_vhost_config *first = NULL;
    for (struct mk_vhost_config *s = l->g->sites; s; s = s->next) {
        const struct mk_conf_entry *e = mk_conf_table_find_entry(s->section, MK_STR("Default"));
        if (!mk_listen_addresses_serves(l->listen, s) || !s->settings.is_default)
            continue;
        struct mk_conf_source_pos at = e ? mk_conf_tree_value_pos(e, e->value) : s->section->at;
        if (first && !s->has_conflict)
            mk_conf_report_error(l->report, &at, "another [HOST] is already the default: the one in %.*s",
                                 MK_STR_ARG(first->host.written_at));
        s->has_conflict |= first != NULL;
        first = first ? first : s;
    }
}

static void add_hosts_of_listen(struct assign_hosts *l)
{
    mk_vhosts_init(l->hosts, &l->g->arena);
    for (struct mk_vhost_config *s = l->g->sites; s; s = s->next) {
        mk_str taken;
        const struct mk_vhost *other;
        if (!mk_listen_addresses_serves(l->listen, s))
            continue;
        mk_err e = mk_vhosts_add(l->hosts, &s->host, &taken, &other);
        if (e == -EEXIST)
            report_duplicate_name(l, s, taken, other);
        s->hosts = s->hosts ? s->hosts : l->hosts;
    }
    choose_default_host(l);
    check_single_default_host(l);
}

static bool is_named_by_host(const struct mk_config_generation *g, const struct mk_listen *l)
{
    for (const struct mk_vhost_config *s = g->sites; s; s = s->next)
        if (find_listen(&s->settings.listens, &l->addr))
            return true;
    return false;
}

static void assign_hosts(struct mk_config_generation *g, struct mk_listen *listen,
                         struct mk_conf_report *report)
{
    listen->hosts = &g->hosts;
    if (is_named_by_host(g, listen)) {
        listen->hosts = mk_arena_zalloc(&g->arena, 1, sizeof *listen->hosts);
        if (listen->hosts)
            add_hosts_of_listen(
                &(struct assign_hosts){.g = g, .report = report, .listen = listen, .hosts = listen->hosts});
    } else if (g->sites && !g->hosts.fallback) {
        mk_conf_report_error(report, &listen->at, "no [HOST] answers at `%.*s`: each has its own Listen",
                             MK_STR_ARG(listen->written));
    }
}

static bool is_host_reachable(const struct mk_config_generation *g, const struct mk_vhost_config *s)
{
    bool found = s->host.n_names > 0 || (g->listens.n == 0 && g->hosts.fallback == &s->host);
    for (size_t i = 0; i < g->listens.n && !found; i++)
        found = g->listens.at[i].hosts && g->listens.at[i].hosts->fallback == &s->host;
    return found;
}

/* ---- Distinguishing hosts ---- */

struct name_count {
    unsigned n;
};

/* Returns the counter of a name (case-insensitive), created on first use; NULL: out of memory. */
static struct name_count *name_count_of(struct mk_map *m, mk_str name)
{
    char *text = mk_arena_alloc(m->arena, name.len + 1);
    if (!text)
        return NULL;
    for (size_t i = 0; i < name.len; i++)
        text[i] = mk_char_lower(name.p[i]);
    mk_str key = mk_str_of(text, name.len);
    struct name_count *t = mk_map_get(m, key);
    if (t)
        return t;
    t = mk_arena_zalloc(m->arena, 1, sizeof *t);
    return t && mk_map_put(m, key, t) ? t : NULL;
}

/* Returns "name@80,443". Uses only the ports, because machines with the same configuration may have different
 * addresses. */
static mk_str name_with_ports(struct mk_config_generation *g, const struct mk_vhost_config *s)
{
    mk_str text = mk_vhost_name(&s->host);
    for (size_t i = 0; i < s->settings.listens.n && text.p; i++)
        text = mk_arena_printf(&g->arena, "%.*s%c%u", MK_STR_ARG(text), i ? ',' : '@',
                               (unsigned)mk_sockaddr_port(&s->settings.listens.at[i].addr));
    return text;
}

static void choose_host_id(struct mk_config_generation *g, struct mk_vhost_config *s, struct mk_map *names,
                           struct mk_map *ids)
{
    mk_str name = mk_vhost_name(&s->host);
    const struct name_count *same = name_count_of(names, name);
    s->host.id = same && same->n > 1 ? name_with_ports(g, s) : name;
    struct name_count *earlier = name_count_of(ids, s->host.id);
    if (earlier && earlier->n++)
        s->host.id = mk_arena_printf(&g->arena, "%.*s#%u", MK_STR_ARG(s->host.id), earlier->n - 1);
}

/* Uses maps, because there may be 10,000 hosts. */
static void assign_host_ids(struct mk_config_generation *g)
{
    struct mk_arena arena;
    struct mk_map names, ids;
    mk_arena_init(&arena, NULL);
    mk_map_init(&names, &arena);
    mk_map_init(&ids, &arena);
    for (const struct mk_vhost_config *s = g->sites; s; s = s->next) {
        struct name_count *t = name_count_of(&names, mk_vhost_name(&s->host));
        if (t)
            t->n++;
    }
    for (struct mk_vhost_config *s = g->sites; s; s = s->next)
        choose_host_id(g, s, &names, &ids);
    g->arena.failed |= arena.failed;
    mk_arena_fini(&arena);
}

void mk_listen_addresses_assign_hosts(struct mk_config_generation *g, struct mk_conf_report *report)
{
    assign_host_ids(g);
    add_hosts_of_listen(&(struct assign_hosts){.g = g, .report = report, .hosts = &g->hosts});
    for (size_t i = 0; i < g->listens.n; i++)
        assign_hosts(g, &g->listens.at[i], report);
    for (const struct mk_vhost_config *s = g->sites; s; s = s->next)
        if (!is_host_reachable(g, s) && !s->has_conflict)
            mk_conf_report_warn(
                report, &s->section->at,
                "no request can reach this [HOST]: it has no ServerName and is not the default");
    /* Requests that do not arrive at a listening address use g->hosts. */
    if (!g->hosts.fallback && g->listens.n && g->listens.at[0].hosts)
        g->hosts = *g->listens.at[0].hosts;
    if (g->embedding && g->embedding->listens_nowhere) /* only clears this list: the settings of hosts keep
                                                        * their addresses */
        g->listens = (struct mk_listens){0};
}

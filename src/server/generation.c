/* SPDX-License-Identifier: Apache-2.0 */
#include "server/generation.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "conf/check.h"
#include "http/field.h"
#include "server/certificates.h"
#include "server/confio.h"
#include "server/plugins.h"
#include "server/site.h"

struct load {
    struct mk_generation *g;
    const struct mk_origin *origin;
    struct mk_conf_report *report;
    bool unread; /* there is no monkey.conf, or it cannot be read at all */
};

/* ---- Reading files ---- */

static void set_folder(struct load *l, const char *path, bool is_folder)
{
    char full[PATH_MAX];
    if (!realpath(path, full))
        snprintf(full, sizeof full, "%s", path);
    l->g->folder = mk_arena_copy(&l->g->arena, mk_str_from_c(is_folder ? full : dirname(full)));
    if (!l->g->folder.p)
        l->report->no_memory = true;
}

static mk_str in_folder(struct load *l, const char *name)
{
    mk_str path = mk_arena_printf(&l->g->arena, "%.*s/%s", MK_STR_ARG(l->g->folder), name);
    if (!path.p)
        l->report->no_memory = true;
    return path;
}

/* Problems are in the report; the result only repeats that there are some. */
static void read_path(struct load *l, mk_str path)
{
    if (path.p)
        (void)!mk_conf_read_file(&l->g->tree, &l->g->arena, &mk_confio, path, l->report);
}

static void read_text(struct load *l, mk_str name, mk_str text)
{
    (void)!mk_conf_read_text(&l->g->tree, &l->g->arena, &mk_confio, name, text, l->report);
}

/* The layout of Monkey: what monkey.conf does not include itself is found beside it. */
static void read_neighbours(struct load *l)
{
    static const char *const files[] = {"monkey.mime", "plugins.load"};
    static const mk_str sections[] = {MK_STR_INIT("MIMETYPES"), MK_STR_INIT("PLUGINS")};
    mk_str sites = in_folder(l, "sites");
    if (!mk_conf_tree_find(&l->g->tree, MK_STR("HOST")) && sites.p)
        read_text(l, sites, MK_STR("@INCLUDE sites/*\n"));
    for (size_t i = 0; i < MK_LEN(files); i++) {
        mk_str path = in_folder(l, files[i]);
        if (path.p && !mk_conf_tree_find(&l->g->tree, sections[i]) && access(path.p, R_OK) == 0)
            read_path(l, path);
    }
}

static void read_origin(struct load *l)
{
    struct stat st;
    const char *path = l->origin->path;
    if (!path) {
        set_folder(l, ".", true);
        read_text(l, MK_STR("command line"), l->origin->text);
        return;
    }
    bool is_folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    set_folder(l, path, is_folder);
    if (!l->g->folder.p)
        return;
    read_path(l, is_folder ? in_folder(l, "monkey.conf") : mk_str_from_c(path));
    l->unread = l->report->n_errors && !l->g->tree.first;
    read_neighbours(l);
}

/* ---- Binding sections ---- */

static bool is_section(const struct mk_conf_section *s, enum mk_section which)
{
    return mk_str_eq_nocase(s->name, mk_str_from_c(mk_settings_tables[which]->section));
}

static void bind_section(struct load *l, enum mk_section which, const struct mk_conf_section *s, void *out)
{
    (void)!mk_conf_bind(mk_settings_tables[which], s, out, &l->g->arena, l->report);
}

static struct mk_site *add_site(struct load *l, const struct mk_conf_section *section)
{
    struct mk_site *site = mk_arena_zalloc(&l->g->arena, 1, sizeof *site);
    if (!site) {
        l->report->no_memory = true;
        return NULL;
    }
    struct mk_site **end = &l->g->sites;
    while (*end)
        end = &(*end)->next;
    *end = site;
    l->g->n_sites++;
    site->section = section;
    site->host.root.fd = -1;
    site->settings.site = l->g->server.site;
    /* A list of its own replaces the one of the server. */
    if (mk_conf_tree_entry(section, MK_STR("Indexfile")))
        site->settings.site.index = (struct mk_conf_words){0};
    (void)!mk_conf_bind_over(mk_settings_tables[MK_SECTION_HOST], section, &site->settings, &l->g->arena,
                             l->report);
    return site;
}

/* A section that belongs to the host above it; false: it is none of those. */
static bool bind_site_section(struct load *l, struct mk_site *site, const struct mk_conf_section *s)
{
    struct {
        enum mk_section which;
        struct mk_pairs *pairs;
    } lists[] = {
        {MK_SECTION_ROUTES, &site->routes},
        {MK_SECTION_ERROR_PAGES, &site->error_pages},
        {MK_SECTION_CACHE_CONTROL, &site->cache_control},
        {MK_SECTION_HANDLERS, &site->handlers},
    };
    for (size_t i = 0; i < MK_LEN(lists); i++) {
        if (is_section(s, lists[i].which)) {
            bind_section(l, lists[i].which, s, lists[i].pairs);
            return true;
        }
    }
    return false;
}

/* A section of a plugin. What nobody knows was reported before. */
static void bind_of_plugin(struct load *l, const struct mk_conf_section *s, const struct mk_site *site)
{
    const struct mk_conf_table *table = mk_plugins_table(l->g, s->name);
    if (table)
        mk_config_bind(l->g, table, s, site, l->report);
}

static void bind_rest(struct load *l)
{
    static struct mk_site nobody; /* takes what belongs to no host, so that it is checked all the same */
    struct mk_pairs loads = {0};
    struct mk_site *site = NULL, scratch = nobody;
    for (const struct mk_conf_section *s = l->g->tree.first; s; s = s->next) {
        if (is_section(s, MK_SECTION_HOST))
            site = add_site(l, s);
        else if (is_section(s, MK_SECTION_MIMETYPES))
            bind_section(l, MK_SECTION_MIMETYPES, s, &l->g->mime_types);
        else if (is_section(s, MK_SECTION_PLUGINS))
            bind_section(l, MK_SECTION_PLUGINS, s, &loads);
        else if (!bind_site_section(l, site ? site : &scratch, s))
            bind_of_plugin(l, s, site);
        else if (!site)
            mk_conf_report_error(l->report, &s->at, "[%.*s] belongs below a [HOST]", MK_STR_ARG(s->name));
    }
}

/* A section that nobody knows may be one of a plugin that is not loaded. */
static void hint_at_plugins(struct load *l)
{
    char name[64];
    for (struct mk_conf_problem *p = l->report->first; p; p = p->next) {
        const struct mk_conf_section *s = l->g->tree.first;
        while (s && (s->at.line != p->at.line || !mk_str_eq(s->at.file, p->at.file)))
            s = s->next;
        if (!s || p->hint.p || !mk_plugins_seek_section(s->name, name))
            continue;
        l->report->open = p;
        mk_conf_report_hint(l->report, "the plugin `%s` brings it: add `Load %s` to [PLUGINS]", name, name);
    }
}

static void check_sections(struct load *l)
{
    const struct mk_conf_table *tables[MK_SECTIONS + 8 * MK_PLUGINS_MAX];
    size_t n = MK_SECTIONS;
    memcpy(tables, mk_settings_tables, sizeof mk_settings_tables);
    for (const struct mk_loaded *p = l->g->plugins; p; p = p->next)
        for (const struct mk_conf_table *const *t = p->object.plugin->sections; t && *t && n < MK_LEN(tables);
             t++)
            tables[n++] = *t;
    if (mk_conf_check_sections(&l->g->tree, tables, n, l->report) == -EINVAL)
        hint_at_plugins(l);
}

static void bind_all(struct load *l)
{
    const struct mk_conf_section *server = mk_conf_tree_find(&l->g->tree, MK_STR("SERVER"));
    mk_plugins_open(l->g, l->report);
    check_sections(l);
    bind_section(l, MK_SECTION_SERVER, server, &l->g->server);
    bind_rest(l);
}

/* ---- Overrides and checks ---- */

static void override_listens(struct load *l)
{
    const char *const *p = l->origin->overrides.listens;
    size_t n = 0;
    while (p && p[n])
        n++;
    if (!n)
        return;
    struct mk_listens *list = &l->g->server.listens;
    list->at = mk_arena_zalloc(&l->g->arena, n, sizeof *list->at);
    list->n = list->at ? n : 0;
    l->report->no_memory |= !list->at;
    for (size_t i = 0; i < list->n; i++) {
        mk_str rest = mk_str_from_c(p[i]), word;
        list->at[i].written = mk_str_word(&rest);
        list->at[i].at.file = MK_STR("command line");
        if (mk_addr_parse(list->at[i].written, l->origin->overrides.listen_host, &list->at[i].addr))
            mk_conf_report_error(
                l->report, &list->at[i].at,
                "`%.*s` is not a port to listen on: expected PORT, ADDRESS:PORT, [ADDRESS6]:PORT or "
                "unix:/path",
                MK_STR_ARG(list->at[i].written));
        const char *problem = mk_settings_take_flags(&rest, &list->at[i], &word);
        if (problem)
            mk_conf_report_error(l->report, &list->at[i].at, "`%s`: `%.*s` %s", p[i],
                                 MK_CONF_REPORT_ARG(word), problem);
    }
}

static void default_listen(struct load *l)
{
    struct mk_listens *list = &l->g->server.listens;
    if (list->n)
        return;
    list->at = mk_arena_zalloc(&l->g->arena, 1, sizeof *list->at);
    list->n = list->at ? 1 : 0;
    mk_str host = l->origin->overrides.listen_host;
    mk_str port = mk_arena_printf(&l->g->arena, "%u", l->g->server.port);
    l->g->listens_by_default = true;
    if (list->at && port.p && mk_addr_parse(port, host.p ? host : MK_STR("0.0.0.0"), &list->at[0].addr) == 0)
        list->at[0].written = port;
    else
        l->report->no_memory = true;
}

static void complete_listens(struct load *l)
{
    struct mk_listens *list = &l->g->server.listens;
    for (size_t i = 0; i < list->n; i++)
        if (list->at[i].takes_port)
            mk_addr_set_port(&list->at[i].addr, l->g->server.port);
}

static void check_listens(struct load *l)
{
    const struct mk_listens *list = &l->g->server.listens;
    for (size_t i = 0; i < list->n; i++)
        for (size_t j = 0; j < i; j++)
            if (mk_addr_eq(&list->at[i].addr, &list->at[j].addr) && mk_addr_port(&list->at[i].addr))
                mk_conf_report_error(l->report, &list->at[i].at, "`%.*s` is listened on already",
                                     MK_STR_ARG(list->at[i].written));
}

static void apply_overrides(struct load *l)
{
    const struct mk_overrides *o = &l->origin->overrides;
    override_listens(l);
    default_listen(l);
    complete_listens(l);
    check_listens(l);
    if (o->workers)
        l->g->server.workers = o->workers;
    if (!l->g->server.workers)
        l->g->server.workers = mk_proc_cpus();
    if (o->pid_file) {
        l->g->server.pid_file = mk_str_from_c(o->pid_file);
    } else if (l->g->server.pid_file.len && l->g->server.pid_file.p[0] != '/') {
        l->g->server.pid_file = mk_arena_printf(&l->g->arena, "%.*s/%.*s", MK_STR_ARG(l->g->folder),
                                                MK_STR_ARG(l->g->server.pid_file));
        l->report->no_memory |= !l->g->server.pid_file.p;
    }
}

/* ---- Building ---- */

static struct mk_conf_place server_place(const struct load *l, const char *key)
{
    const struct mk_conf_section *s = mk_conf_tree_find(&l->g->tree, MK_STR("SERVER"));
    const struct mk_conf_entry *e = mk_conf_tree_entry(s, mk_str_from_c(key));
    if (e)
        return mk_conf_tree_place(e, e->value);
    return s ? s->at : (struct mk_conf_place){.file = MK_STR("command line")};
}

static void build_mime(struct load *l)
{
    struct mk_generation *g = l->g;
    struct mk_conf_place at = server_place(l, "DefaultMimeType");
    if (!mk_mime_is_type(g->server.default_type))
        mk_conf_report_error(l->report, &at, "`%.*s` is not a media type",
                             MK_STR_ARG(g->server.default_type));
    mk_mime_init(&g->mime, &g->arena, g->server.default_type);
    for (size_t i = 0; i < g->mime_types.n; i++) {
        const struct mk_pair *pair = &g->mime_types.at[i];
        if (!mk_is_field_value(pair->value) || !mk_mime_is_type(pair->value))
            mk_conf_report_error(l->report, &pair->entry->at, "`%.*s` is not a media type",
                                 MK_STR_ARG(pair->value));
        else if (!mk_mime_add(&g->mime, pair->key, pair->value))
            l->report->no_memory = true;
    }
}

/* The one that says so; else, as in Monkey, the one in sites/default; else the first. */
static void choose_default(struct load *l)
{
    const struct mk_site *chosen = NULL;
    for (const struct mk_site *s = l->g->sites; s; s = s->next) {
        bool by_file = !chosen && mk_str_ends(s->section->at.file, MK_STR("/sites/default"));
        if (s->settings.is_default || by_file)
            chosen = s;
    }
    if (chosen)
        mk_hosts_set_default(&l->g->hosts, &chosen->host);
}

static void check_default(struct load *l)
{
    const struct mk_site *first = NULL;
    for (const struct mk_site *s = l->g->sites; s; s = s->next) {
        const struct mk_conf_entry *e = mk_conf_tree_entry(s->section, MK_STR("Default"));
        struct mk_conf_place at = e ? mk_conf_tree_place(e, e->value) : s->section->at;
        if (s->settings.is_default && first)
            mk_conf_report_error(l->report, &at, "another [HOST] is the default already: the one in %.*s",
                                 MK_STR_ARG(first->host.written_at));
        else if (s->settings.is_default)
            first = s;
        else if (!s->host.n_names && &s->host != l->g->hosts.fallback)
            mk_conf_report_warn(
                l->report, &s->section->at,
                "no request can reach this [HOST]: it has no ServerName and is not the default");
    }
}

static void build_hosts(struct load *l)
{
    mk_hosts_init(&l->g->hosts, &l->g->arena);
    for (struct mk_site *s = l->g->sites; s; s = s->next) {
        mk_str taken;
        mk_site_build(l->g, s, l->report);
        mk_err e = mk_hosts_add(&l->g->hosts, &s->host, &taken);
        if (e == -EEXIST)
            mk_conf_report_error(l->report, &s->section->at,
                                 "another [HOST] has the ServerName `%.*s` already", MK_STR_ARG(taken));
        else if (e)
            l->report->no_memory = true;
    }
    choose_default(l);
    check_default(l);
    if (!l->g->sites && !l->unread) {
        struct mk_conf_place at = {.file = l->origin->path ? mk_str_from_c(l->origin->path)
                                                           : MK_STR("command line")};
        mk_conf_report_error(l->report, &at, "there is no [HOST]: nothing to serve");
        mk_conf_report_hint(l->report, "add a [HOST] with a DocumentRoot, here or in sites/");
    }
}

static void find_identity(struct load *l)
{
    struct mk_server_settings *s = &l->g->server;
    struct mk_conf_place at = server_place(l, "User");
    if (!s->user.len && s->group.len) {
        at = server_place(l, "Group");
        mk_conf_report_error(l->report, &at, "a Group is for a User: there is none");
    }
    if (!s->user.len)
        return;
    mk_str user = mk_arena_copy(&l->g->arena, s->user);
    mk_str group = mk_arena_copy(&l->g->arena, s->group.p ? s->group : MK_STR(""));
    if (!user.p || !group.p)
        l->report->no_memory = true;
    else if (mk_identity_find(user.p, group.p, &l->g->identity))
        mk_conf_report_error(l->report, &at, "there is no user `%s`%s%s%s", user.p,
                             group.len ? ", or no group `" : "", group.p, group.len ? "`" : "");
    else if (geteuid() == 0)
        l->g->has_identity = true;
    else if (l->g->identity.uid != geteuid())
        mk_conf_report_warn(l->report, &at,
                            "only root can become another user: workers stay what monkey is now");
}

/* Paths of logs are seen from the folder of the configuration, words are what they are. */
static mk_str log_path(struct load *l, mk_str where)
{
    bool is_path = !mk_logfile_is_word(where) && where.p[0] != '/';
    mk_str path =
        is_path ? mk_arena_printf(&l->g->arena, "%.*s/%.*s", MK_STR_ARG(l->g->folder), MK_STR_ARG(where))
                : mk_arena_copy(&l->g->arena, where.p ? where : MK_STR(""));
    if (!path.p)
        l->report->no_memory = true;
    return path;
}

struct mk_logfile *mk_generation_log(struct mk_generation *g, mk_str where, uint64_t max_size, unsigned keep,
                                     mk_err *why)
{
    struct mk_logfile *f = g->logs;
    while (f < g->logs + g->n_logs && !mk_str_eq(f->where, where))
        f++;
    if (f == g->logs + g->n_logs) {
        *why = g->n_logs == MK_LOGFILES_MAX ? -E2BIG : mk_logfile_open(f, where);
        if (*why)
            return NULL;
        g->n_logs++;
    }
    if (!f->max_size) {
        f->max_size = max_size;
        f->keep = keep;
    }
    return f;
}

static struct mk_logfile *open_log(struct load *l, mk_str where, struct mk_conf_place at)
{
    mk_err e = 0;
    mk_str path = log_path(l, where);
    struct mk_logfile *f = path.p ? mk_generation_log(l->g, path, 0, 0, &e) : NULL;
    if (e == -E2BIG)
        mk_conf_report_error(l->report, &at, "more than %d log files", MK_LOGFILES_MAX);
    else if (e)
        mk_conf_report_error(l->report, &at, "the log `%s` cannot be opened: %s", path.p, mk_err_text(e));
    return f;
}

static void open_logs(struct load *l)
{
    struct mk_generation *g = l->g;
    struct mk_conf_place error_log_at = server_place(l, "ErrorLog");
    if (mk_str_eq_nocase(g->server.error_log, MK_STR("off")))
        mk_conf_report_error(l->report, &error_log_at,
                             "the error log cannot be off: expected a file, `stderr` or `syslog`");
    g->error_log = open_log(l, g->server.error_log, error_log_at);
    g->access_log = open_log(l, g->server.access_log, server_place(l, "AccessLog"));
    /* As they are printed they must mean the same from everywhere. */
    if (g->error_log)
        g->server.error_log = g->error_log->where;
    if (g->access_log)
        g->server.access_log = g->access_log->where;
}

/* Only what somebody has written: the default fits every head that can be set. */
static void check_sizes(struct load *l)
{
    const struct mk_server_settings *s = &l->g->server;
    const struct mk_conf_section *section = mk_conf_tree_find(&l->g->tree, MK_STR("SERVER"));
    struct mk_conf_place at = server_place(l, "MaxURISize");
    if (section && mk_conf_tree_entry(section, MK_STR("MaxURISize")) && s->max_uri_size > s->max_head_size)
        mk_conf_report_error(l->report, &at,
                             "MaxURISize is above MaxHeadSize: a target is a part of its head");
}

static void build_all(struct load *l)
{
    check_sizes(l);
    apply_overrides(l);
    build_mime(l);
    find_identity(l);
    open_logs(l);
    mk_plugins_start(l->g, l->report);
    build_hosts(l);
    mk_plugins_enter_hosts(l->g, l->report);
    mk_certificates_build(l->g, l->report);
}

bool mk_generation_has_tls(const struct mk_generation *g)
{
    for (size_t i = 0; i < g->server.listens.n; i++)
        if (g->server.listens.at[i].tls)
            return true;
    return false;
}

struct mk_generation *mk_generation_load(const struct mk_origin *origin, struct mk_arena *report_arena,
                                         struct mk_conf_report *report)
{
    struct mk_generation *g = mk_mem_zalloc(1, sizeof *g);
    mk_conf_report_init(report, report_arena);
    if (!g) {
        report->no_memory = true;
        return NULL;
    }
    mk_arena_init(&g->arena, NULL);
    g->shared = origin->shared ? origin->shared : &g->own_shared;
    struct load l = {.g = g, .origin = origin, .report = report};
    read_origin(&l);
    bind_all(&l);
    build_all(&l);
    if (mk_conf_report_result(report) == 0)
        return g;
    mk_generation_free(g);
    return NULL;
}

void mk_generation_free(struct mk_generation *g)
{
    struct mk_object objects[MK_PLUGINS_MAX];
    mk_plugins_stop(g);
    mk_certificates_free(g);
    for (struct mk_site *s = g->sites; s; s = s->next)
        mk_site_close(s);
    for (size_t i = 0; i < g->n_logs; i++)
        mk_logfile_close(&g->logs[i]);
    size_t n = mk_plugins_detach(g, objects);
    mk_arena_fini(&g->arena);
    for (size_t i = 0; i < n; i++)
        mk_object_close(&objects[i]);
    mk_shared_fini(&g->own_shared);
    mk_mem_free(g);
}

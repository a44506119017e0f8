/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/config_generation.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "conf/check.h"
#include "conf/path.h"
#include "conf/table.h"
#include "http/header.h"
#include "os/access_check.h"
#include "os/fd.h"
#include "os/identity.h"
#include "os/proc.h"
#include "os/spool.h"
#include "setup/certificates.h"
#include "setup/conf_disk_io.h"
#include "setup/embedding.h"
#include "setup/fd_limit_check.h"
#include "setup/http2_enable.h"
#include "setup/https_rules.h"
#include "setup/keys.h"
#include "setup/listen_addresses.h"
#include "setup/location.h"
#include "setup/plugin_load.h"
#include "setup/plugin_sections.h"
#include "setup/plugins.h"
#include "setup/spool_check.h"
#include "setup/vhost_config.h"
#include "setup/worker_channels.h"

struct config_loader {
    struct mk_config_generation *g;
    const struct mk_config_source *origin;
    struct mk_conf_report *report;
    struct mk_vhost_config **end; /* end of the list of hosts */
    bool unread;                  /* monkey.conf is missing or unreadable */
};

/* ---- Reading files ---- */

static void set_config_folder(struct config_loader *l, const char *path, bool is_folder)
{
    char full[PATH_MAX];
    if (!realpath(path, full))
        snprintf(full, sizeof full, "%s", path);
    l->g->folder = mk_arena_copy(&l->g->arena, mk_str_from_c(is_folder ? full : dirname(full)));
}

static mk_str path_in_folder(struct config_loader *l, const char *name)
{
    return mk_conf_path_resolve_in(&l->g->arena, l->g->folder, mk_str_from_c(name));
}

/* Errors go to the report. */
static void read_config_file(struct config_loader *l, mk_str path)
{
    if (path.p)
        (void)!mk_conf_read_file(&l->g->tree, &l->g->arena, &mk_conf_disk_io, path, l->report);
}

static void read_config_text(struct config_loader *l, mk_str name, mk_str text)
{
    (void)!mk_conf_read_text(&l->g->tree, &l->g->arena, &mk_conf_disk_io, name, text, l->report);
}

/* Reads the default layout from the folder of monkey.conf: the files in sites/ if there is no [HOST],
 * monkey.mime if there is no [MIMETYPES], and plugins.load if there is no [PLUGINS]. */
static void read_default_files(struct config_loader *l)
{
    static const char *const files[] = {"monkey.mime", "plugins.load"};
    static const mk_str sections[] = {MK_STR_INIT("MIMETYPES"), MK_STR_INIT("PLUGINS")};
    mk_str sites = path_in_folder(l, "sites");
    if (!mk_conf_tree_find(&l->g->tree, MK_STR("HOST")) && sites.p)
        read_config_text(l, sites, MK_STR("@INCLUDE sites/*\n"));
    for (size_t i = 0; i < MK_LEN(files); i++) {
        mk_str path = path_in_folder(l, files[i]);
        if (path.p && !mk_conf_tree_find(&l->g->tree, sections[i]) && access(path.p, R_OK) == 0)
            read_config_file(l, path);
    }
}

static void read_config(struct config_loader *l)
{
    struct stat st;
    const char *path = l->origin->path;
    if (!path) {
        set_config_folder(l, ".", true);
        read_config_text(l, l->g->embedding ? MK_EMBEDDING_NAME : MK_STR("command line"), l->origin->text);
        return;
    }
    bool is_folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    set_config_folder(l, path, is_folder);
    if (!l->g->folder.p)
        return;
    read_config_file(l, is_folder ? path_in_folder(l, "monkey.conf") : mk_str_from_c(path));
    l->unread = l->report->n_errors && !l->g->tree.first;
    if (!l->unread) /* otherwise errors in the other files would distract from the error in monkey.conf */
        read_default_files(l);
    if (l->g->embedding)
        mk_embedding_merge_text(l->g, l->origin->text, l->report);
}

/* ---- Binding sections ---- */

static bool is_builtin_section(const struct mk_conf_section *s, enum mk_builtin_section which)
{
    return mk_str_eq_nocase(s->name, mk_str_from_c(mk_keys_tables[which]->section));
}

/* The report contains the reason for -EINVAL and -ENOMEM. */
static mk_err bind_section(struct config_loader *l, enum mk_builtin_section which,
                           const struct mk_conf_section *s, void *out)
{
    return mk_conf_bind(mk_keys_tables[which], s, out, &l->g->arena, l->report);
}

/* A key of another section, such as a [SERVER] key in [HOST], is reported as unknown: adds a hint that names
 * the right section. */
static void hint_right_section(struct config_loader *l, const struct mk_conf_section *section,
                               enum mk_builtin_section its, enum mk_builtin_section other,
                               const struct mk_conf_problem *before)
{
    struct mk_conf_problem *first = before ? before->next : l->report->first;
    for (const struct mk_conf_entry *e = section ? section->first : NULL; e; e = e->next) {
        if (mk_conf_table_find(mk_keys_tables[its], e->key, false) ||
            !mk_conf_table_find(mk_keys_tables[other], e->key, false))
            continue;
        for (struct mk_conf_problem *p = first; p; p = p->next) {
            if (p->at.line != e->at.line || !mk_str_eq(p->at.file, e->at.file))
                continue;
            l->report->open = p;
            mk_conf_report_hint(l->report, "`%.*s` belongs in [%s]", MK_STR_ARG(e->key),
                                mk_keys_tables[other]->section);
        }
    }
}

/* Adds hints for keys that belong to other sections. If several sections have the key, the hint names [HOST],
 * or else [SERVER]. */
static void hint_right_sections(struct config_loader *l, const struct mk_conf_section *section,
                                enum mk_builtin_section its, const struct mk_conf_problem *before)
{
    static const enum mk_builtin_section others[] = {MK_SECTION_LOCATION, MK_SECTION_SERVER, MK_SECTION_HOST};
    for (size_t i = 0; i < MK_LEN(others); i++)
        if (others[i] != its)
            hint_right_section(l, section, its, others[i], before);
}

static struct mk_vhost_config *add_host(struct config_loader *l, const struct mk_conf_section *section)
{
    struct mk_vhost_config *site = mk_arena_zalloc(&l->g->arena, 1, sizeof *site);
    if (!site)
        return NULL;
    *l->end = site;
    l->end = &site->next;
    l->g->n_sites++;
    site->section = section;
    site->host.root.fd = -1;
    site->settings.site = l->g->server.site;
    /* The Index list of the host replaces that of [SERVER]. */
    if (mk_conf_table_entry(mk_keys_tables[MK_SECTION_HOST], section, MK_STR("Index")))
        site->settings.site.index = (struct mk_conf_words){0};
    const struct mk_conf_problem *before = l->report->last;
    if (mk_conf_bind_without_defaults(mk_keys_tables[MK_SECTION_HOST], section, &site->settings, &l->g->arena,
                                      l->report))
        hint_right_sections(l, section, MK_SECTION_HOST, before);
    if (l->origin->overrides.root && !site->settings.root.len && !site->settings.redirect.len)
        site->settings.root = mk_str_from_c(l->origin->overrides.root);
    return site;
}

static void add_location(struct config_loader *l, struct mk_vhost_config *site,
                         const struct mk_conf_section *section)
{
    struct mk_location_config *location = mk_arena_zalloc(&l->g->arena, 1, sizeof *location);
    if (!location)
        return;
    struct mk_location_config **end = &site->locations;
    while (*end)
        end = &(*end)->next;
    *end = location;
    site->n_locations++;
    location->section = section;
    location->settings.request = site->settings.site.request;
    const struct mk_conf_problem *before = l->report->last;
    if (mk_conf_bind_without_defaults(mk_keys_tables[MK_SECTION_LOCATION], section, &location->settings,
                                      &l->g->arena, l->report))
        hint_right_sections(l, section, MK_SECTION_LOCATION, before);
}

/* Binds a section that belongs to the host above it. False: it is a section of another kind. */
static bool bind_host_section(struct config_loader *l, struct mk_vhost_config *site,
                              const struct mk_conf_section *s)
{
    struct {
        enum mk_builtin_section which;
        struct mk_conf_pairs *pairs;
    } lists[] = {
        {MK_SECTION_ROUTES, &site->routes},
        {MK_SECTION_ERROR_PAGES, &site->error_pages},
        {MK_SECTION_CACHE_CONTROL, &site->cache_control},
        {MK_SECTION_HANDLERS, &site->handlers},
    };
    if (is_builtin_section(s, MK_SECTION_LOCATION)) {
        add_location(l, site, s);
        return true;
    }
    for (size_t i = 0; i < MK_LEN(lists); i++) {
        if (is_builtin_section(s, lists[i].which)) {
            bind_section(l, lists[i].which, s, lists[i].pairs);
            return true;
        }
    }
    return false;
}

/* Binds a plugin's section. Unknown sections were reported before. */
static void bind_plugin_section(struct config_loader *l, const struct mk_conf_section *s,
                                struct mk_vhost_config *site)
{
    const struct mk_conf_table *table = mk_plugins_find_section_table(l->g, s->name);
    if (table)
        mk_plugin_sections_bind(l->g, table, s, site, l->report);
}

static void bind_host_and_plugin_sections(struct config_loader *l)
{
    static struct mk_vhost_config
        no_site; /* collects sections without a host, so that they are checked as well */
    struct mk_conf_pairs loads = {0};
    struct mk_vhost_config *site = NULL, scratch = no_site;
    for (const struct mk_conf_section *s = l->g->tree.first; s; s = s->next) {
        if (is_builtin_section(s, MK_SECTION_HOST))
            site = add_host(l, s);
        else if (is_builtin_section(s, MK_SECTION_MIMETYPES))
            bind_section(l, MK_SECTION_MIMETYPES, s, &l->g->mime_types);
        else if (is_builtin_section(s, MK_SECTION_PLUGINS))
            bind_section(l, MK_SECTION_PLUGINS, s, &loads);
        else if (!bind_host_section(l, site ? site : &scratch, s))
            bind_plugin_section(l, s, site);
        else if (!site)
            mk_conf_report_error(l->report, &s->at, "[%.*s] belongs below a [HOST]", MK_STR_ARG(s->name));
    }
}

/* An unknown section may belong to a plugin that is not loaded. */
static void hint_missing_plugins(struct config_loader *l)
{
    for (struct mk_conf_problem *p = l->report->first; p; p = p->next) {
        const struct mk_conf_section *s = l->g->tree.first;
        while (s && (s->at.line != p->at.line || !mk_str_eq(s->at.file, p->at.file)))
            s = s->next;
        const char *name = s ? mk_plugins_suggest_for_section(l->g, s->name) : NULL;
        if (!name)
            continue;
        l->report->open = p;
        mk_conf_report_hint(l->report, "the plugin `%s` has it: add `Load %s` to [PLUGINS]", name, name);
    }
}

static void check_section_names(struct config_loader *l)
{
    const struct mk_conf_table *tables[MK_SECTIONS + 8 * MK_PLUGINS_MAX];
    size_t n = MK_SECTIONS;
    memcpy(tables, mk_keys_tables, sizeof mk_keys_tables);
    for (const struct mk_loaded_plugin *p = l->g->plugins; p; p = p->next)
        for (const struct mk_conf_table *const *t = p->object.plugin->sections; t && *t && n < MK_LEN(tables);
             t++)
            tables[n++] = *t;
    if (mk_conf_check_sections(&l->g->tree, tables, n, l->report) == -EINVAL)
        hint_missing_plugins(l);
}

static void bind_sections(struct config_loader *l)
{
    const struct mk_conf_section *server = mk_conf_tree_find(&l->g->tree, MK_STR("SERVER"));
    mk_plugin_load_configured(l->g, l->report);
    check_section_names(l);
    mk_plugin_sections_join(l->g, mk_plugins_find_section_table);
    const struct mk_conf_problem *before = l->report->last;
    if (bind_section(l, MK_SECTION_SERVER, server, &l->g->server))
        hint_right_sections(l, server, MK_SECTION_SERVER, before);
    bind_host_and_plugin_sections(l);
}

/* ---- Overrides and checks ---- */

static void apply_overrides(struct config_loader *l)
{
    const struct mk_config_overrides *o = &l->origin->overrides;
    mk_listen_addresses_collect(l->g, o, l->report);
    if (o->workers)
        l->g->server.workers = o->workers;
    if (!l->g->server.workers)
        l->g->server.workers = mk_proc_cpus();
    if (o->pid_file)
        l->g->server.pid_file = mk_str_from_c(o->pid_file);
    else if (l->g->server.pid_file.len)
        l->g->server.pid_file = mk_conf_path_resolve_in(&l->g->arena, l->g->folder, l->g->server.pid_file);
}

/* ---- Building ---- */

static struct mk_conf_source_pos server_key_pos(const struct config_loader *l, const char *key)
{
    const struct mk_conf_section *s = mk_conf_tree_find(&l->g->tree, MK_STR("SERVER"));
    const struct mk_conf_entry *e =
        mk_conf_table_entry(mk_keys_tables[MK_SECTION_SERVER], s, mk_str_from_c(key));
    if (e)
        return mk_conf_tree_value_pos(e, e->value);
    return s ? s->at : (struct mk_conf_source_pos){.file = MK_STR("command line")};
}

static void build_mime_types(struct config_loader *l)
{
    struct mk_config_generation *g = l->g;
    struct mk_conf_source_pos at = server_key_pos(l, "DefaultMimeType");
    if (!mk_mime_is_type(g->server.default_type))
        mk_conf_report_error(l->report, &at, "`%.*s` is not a media type",
                             MK_STR_ARG(g->server.default_type));
    mk_mime_init(&g->mime, &g->arena, g->server.default_type);
    for (size_t i = 0; i < g->mime_types.n; i++) {
        const struct mk_conf_pair *pair = &g->mime_types.at[i];
        if (!mk_is_header_value(pair->value) || !mk_mime_is_type(pair->value))
            mk_conf_report_error(l->report, &pair->entry->at, "`%.*s` is not a media type",
                                 MK_STR_ARG(pair->value));
        else
            (void)!mk_mime_add(&g->mime, pair->key, pair->value);
    }
}

static void build_hosts(struct config_loader *l)
{
    for (struct mk_vhost_config *s = l->g->sites; s; s = s->next)
        mk_vhost_config_build(l->g, s, l->report);
    mk_listen_addresses_assign_hosts(l->g, l->report);
    if (!l->g->sites && !l->unread) {
        struct mk_conf_source_pos at = {.file = l->origin->path ? mk_str_from_c(l->origin->path)
                                                                : MK_STR("command line")};
        mk_conf_report_error(l->report, &at, "there is no [HOST]: nothing to serve");
        mk_conf_report_hint(l->report, "add a [HOST] with a DocumentRoot, here or in sites/");
    }
}

static void index_routes(struct config_loader *l)
{
    for (struct mk_vhost_config *s = l->g->sites; s; s = s->next) {
        s->host.route_index = mk_route_index_new(&l->g->arena, s->host.routes, s->host.n_routes);
        for (size_t i = 0; i < s->host.n_routes; i++)
            s->host.has_body_max |= s->host.routes[i].handler->body_max != NULL;
    }
}

/* Finds the first user in the list that exists. */
static mk_err find_worker_user(struct config_loader *l, mk_str users, const char *group)
{
    mk_err e = -ENOENT;
    for (mk_str word = mk_str_word(&users); e == -ENOENT && word.len; word = mk_str_word(&users)) {
        mk_str user = mk_arena_copy(&l->g->arena, word);
        e = user.p ? mk_identity_find(user.p, group, &l->g->identity) : -ENOMEM;
    }
    return e;
}

static void use_worker_identity(struct mk_config_generation *g)
{
    g->has_identity = true;
    g->logs.workers = g->identity.uid ? &g->identity : NULL;
}

static void find_worker_identity(struct config_loader *l)
{
    struct mk_server_settings *s = &l->g->server;
    struct mk_conf_source_pos at = server_key_pos(l, "User");
    if (l->g->embedding) /* the embedding program keeps its user */
        return;
    if (!s->user.len && s->group.len) {
        at = server_key_pos(l, "Group");
        mk_conf_report_error(l->report, &at, "Group needs a User, but there is none");
    }
    if (!s->user.len)
        return;
    mk_str group = mk_arena_copy(&l->g->arena, s->group.p ? s->group : MK_STR(""));
    mk_err e = group.p ? find_worker_user(l, s->user, group.p) : -ENOMEM;
    if (e == -ENOMEM)
        return;
    if (e)
        mk_conf_report_error(l->report, &at, "there is no user `%.*s`%s%s%s", MK_STR_ARG(s->user),
                             group.len ? ", or no group `" : "", group.p, group.len ? "`" : "");
    else if (geteuid() == 0)
        use_worker_identity(l->g);
    else if (l->g->identity.uid != geteuid())
        mk_conf_report_warn(l->report, &at,
                            "only root can switch to another user: workers keep the current one");
}

/* The master can open the folder, but workers may lack permission to enter it: every request would get
 * 403. */
static void check_root_access(struct config_loader *l, const struct mk_root *root,
                              const struct mk_conf_entry *e)
{
    if (root->fd < 0 || !e || !mk_access_check_find_denied(&l->g->identity, root->path, strlen(root->path)))
        return;
    struct mk_conf_source_pos at = mk_conf_tree_value_pos(e, e->value);
    mk_conf_report_warn(l->report, &at, "the User %s may not enter `%s`: workers will answer 403",
                        l->g->identity.user, root->path);
    mk_conf_report_hint(l->report, "let others search it: `chmod o+x %s`", root->path);
}

static void check_access_of_roots(struct config_loader *l)
{
    for (const struct mk_vhost_config *s = l->g->has_identity ? l->g->sites : NULL; s; s = s->next) {
        check_root_access(
            l, &s->host.root,
            mk_conf_table_entry(mk_keys_tables[MK_SECTION_HOST], s->section, MK_STR("DocumentRoot")));
        for (size_t i = 0; i < s->host.n_aliases; i++)
            check_root_access(l, &s->host.aliases[i], s->settings.aliases.at[i].entry);
    }
}

/* Resolves a path relative to the folder of the configuration; an empty path stays empty. */
static mk_str absolute_path(struct config_loader *l, mk_str where)
{
    if (where.len == 0)
        return mk_arena_copy(&l->g->arena, MK_STR(""));
    return mk_conf_path_resolve_in(&l->g->arena, l->g->folder, where);
}

/* Returns a copy in the generation's arena, because the log keeps a pointer to its path. */
static mk_str resolve_log_path(struct config_loader *l, mk_str where)
{
    mk_str word = mk_logfile_is_special_name(where) ? mk_arena_copy(&l->g->arena, where) : MK_STR_NULL;
    return word.p ? word : absolute_path(l, where);
}

static struct mk_logfile *open_logfile(struct config_loader *l, mk_str where, struct mk_conf_source_pos at)
{
    mk_str path = resolve_log_path(l, where);
    return path.p ? mk_logset_open_or_report(&l->g->logs, path, 0, 0, &at, l->report) : NULL;
}

static void open_logs(struct config_loader *l)
{
    struct mk_config_generation *g = l->g;
    struct mk_conf_source_pos error_log_at = server_key_pos(l, "ErrorLog");
    if (g->embedding)
        mk_embedding_default_logs(g);
    else if (mk_str_eq_nocase(g->server.error_log, MK_STR("off")))
        mk_conf_report_error(l->report, &error_log_at,
                             "the error log cannot be off: expected a file, `stderr` or `syslog`");
    g->error_log = open_logfile(l, g->server.error_log, error_log_at);
    struct mk_request_settings *request = &g->server.site.request;
    g->access_log = open_logfile(l, request->access_log, server_key_pos(l, "AccessLog"));
    /* The printed configuration has absolute paths, which are valid from any folder. */
    if (g->error_log)
        g->server.error_log = g->error_log->where;
    if (g->access_log)
        request->access_log = g->access_log->where;
    mk_location_set_limits(g, request, g->access_log, &g->limits);
}

/* Reports an explicit MaxURISize above MaxHeaderSize. The default MaxURISize may exceed a small
 * MaxHeaderSize, which then limits the target as well. */
static void check_head_sizes(struct config_loader *l)
{
    const struct mk_server_settings *s = &l->g->server;
    const struct mk_conf_section *section = mk_conf_tree_find(&l->g->tree, MK_STR("SERVER"));
    struct mk_conf_source_pos at = server_key_pos(l, "MaxURISize");
    if (mk_conf_table_entry(mk_keys_tables[MK_SECTION_SERVER], section, MK_STR("MaxURISize")) &&
        s->max_uri_size > s->max_head_size)
        mk_conf_report_error(l->report, &at, "MaxURISize exceeds MaxHeaderSize, which includes the target");
}

static void resolve_spool_folder(struct config_loader *l)
{
    l->g->server.spool_folder = absolute_path(l, l->g->server.spool_folder);
}

static void check_spool_folder(struct config_loader *l)
{
    struct mk_conf_source_pos at = server_key_pos(l, "SpoolFolder");
    mk_str folder = l->g->server.spool_folder;
    int fd = folder.p && l->g->wants_spool ? mk_spool_open_tmpfile(folder.p) : -1;
    if (!l->g->wants_spool || !folder.p || fd >= 0) {
        mk_fd_close(&fd);
        return;
    }
    mk_conf_report_error(l->report, &at, "cannot spool request bodies in `%s`: %s", folder.p,
                         mk_err_text(fd));
    mk_conf_report_hint(l->report, "%s",
                        fd == -EOPNOTSUPP
                            ? "its file system does not support O_TMPFILE: choose a folder on a local disk"
                            : "create it, or choose another folder with SpoolFolder in [SERVER]");
}

static void build_generation(struct config_loader *l)
{
    check_head_sizes(l);
    apply_overrides(l);
    build_mime_types(l);
    find_worker_identity(l);
    open_logs(l);
    resolve_spool_folder(l);
    mk_plugins_call_load(l->g, l->report);
    build_hosts(l);
    check_access_of_roots(l);
    mk_plugins_configure_hosts(l->g, l->report);
    index_routes(l);
    mk_location_check_access_logs(l->g, l->report);
    check_spool_folder(l);
    mk_spool_check_body_limits(l->g, l->report);
    mk_http2_enable(l->g, l->report);
    if (mk_https_rules_setup(l->g, l->report))
        mk_certificates_setup_tls(l->g, l->report);
    mk_fd_limit_check(l->g, l->report);
}

bool mk_config_generation_has_tls(const struct mk_config_generation *g)
{
    for (size_t i = 0; i < g->listens.n; i++)
        if (g->listens.at[i].tls)
            return true;
    return false;
}

struct mk_config_generation *mk_config_generation_load(const struct mk_config_source *origin,
                                                       struct mk_arena *report_arena,
                                                       struct mk_conf_report *report)
{
    struct mk_config_generation *g = mk_mem_zalloc(1, sizeof *g);
    mk_conf_report_init(report, report_arena);
    if (!g) {
        report->no_memory = true;
        return NULL;
    }
    mk_arena_init(&g->arena, NULL);
    mk_map_init(&g->sections_by_settings, &g->arena);
    mk_conf_report_watch_arena(report, &g->arena);
    g->shared = origin->shared ? origin->shared : &g->own_shared;
    g->embedding = origin->embedding;
    g->tried = origin->tried;
    g->previous = origin->previous;
    struct config_loader l = {.g = g, .origin = origin, .report = report, .end = &g->sites};
    read_config(&l);
    bind_sections(&l);
    build_generation(&l);
    g->previous = NULL;
    mk_conf_report_watch_arena(report, NULL);
    if (mk_conf_report_result(report) == 0)
        return g;
    mk_config_generation_free(g);
    return NULL;
}

void mk_config_generation_free(struct mk_config_generation *g)
{
    struct mk_plugin_object objects[MK_PLUGINS_MAX];
    mk_plugins_unload(g);
    mk_certificates_free(g);
    for (struct mk_vhost_config *s = g->sites; s; s = s->next)
        mk_vhost_config_close(g, s);
    mk_logset_close(&g->logs);
    mk_worker_channels_close(g);
    size_t n = mk_plugins_detach_objects(g, objects);
    mk_arena_fini(&g->arena);
    for (size_t i = 0; i < n; i++)
        mk_plugin_object_close(&objects[i]);
    mk_shared_state_fini(&g->own_shared);
    mk_mem_free(g);
}

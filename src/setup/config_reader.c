/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/config_reader.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "conf/check.h"
#include "conf/path.h"
#include "conf/table.h"
#include "os/access_check.h"
#include "setup/conf_disk_io.h"
#include "setup/config_loader.h"
#include "setup/embedding.h"
#include "setup/keys.h"
#include "setup/plugin_load.h"
#include "setup/plugin_sections.h"
#include "setup/plugins.h"
#include "setup/vhost_config.h"

/* ---- Reading files ---- */

static void set_config_folder(struct mk_config_loader *l, const char *path, bool is_folder)
{
    char full[PATH_MAX];
    if (!realpath(path, full))
        snprintf(full, sizeof full, "%s", path);
    l->g->folder = mk_arena_copy(&l->g->arena, mk_str_from_c(is_folder ? full : dirname(full)));
}

static const struct mk_conf_io *config_io(const struct mk_config_loader *l)
{
    return l->origin->io ? l->origin->io : &mk_conf_disk_io;
}

static mk_str path_in_folder(struct mk_config_loader *l, const char *name)
{
    return mk_conf_path_resolve_in(&l->g->arena, l->g->folder, mk_str_from_c(name));
}

/* Errors go to the report. */
static void read_config_file(struct mk_config_loader *l, mk_str path)
{
    if (path.p)
        (void)!mk_conf_read_file(&l->g->tree, &l->g->arena, config_io(l), path, l->report);
}

static void read_config_text(struct mk_config_loader *l, mk_str name, mk_str text)
{
    (void)!mk_conf_read_text(&l->g->tree, &l->g->arena, config_io(l), name, text, l->report);
}

/* Reads the default layout from the folder of monkey.conf: the files in sites/ if there is no [HOST],
 * monkey.mime if there is no [MIMETYPES], and plugins.load if there is no [PLUGINS]. */
static void read_default_files(struct mk_config_loader *l)
{
    static const char *const files[] = {"monkey.mime", "plugins.load"};
    static const mk_str sections[] = {MK_STR_INIT("MIMETYPES"), MK_STR_INIT("PLUGINS")};
    mk_str sites = path_in_folder(l, "sites");
    if (!mk_conf_tree_find(&l->g->tree, MK_STR("HOST")) && sites.p)
        read_config_text(l, sites, MK_STR("@INCLUDE sites/*\n"));
    for (size_t i = 0; i < MK_LEN(files); i++) {
        mk_str path = path_in_folder(l, files[i]);
        if (path.p && !mk_conf_tree_find(&l->g->tree, sections[i]) &&
            config_io(l)->exists(config_io(l)->ctx, path))
            read_config_file(l, path);
    }
}

static void read_config(struct mk_config_loader *l)
{
    struct stat st;
    const char *path = l->origin->path;
    if (!path) {
        set_config_folder(l, ".", true);
        read_config_text(l, l->g->embedding ? MK_EMBEDDING_NAME : MK_STR("command line"), l->origin->text);
        return;
    }
    bool is_folder = !l->origin->folder && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    if (l->origin->folder)
        l->g->folder = mk_arena_copy(&l->g->arena, mk_str_from_c(l->origin->folder));
    else
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
static mk_err bind_section(struct mk_config_loader *l, enum mk_builtin_section which,
                           const struct mk_conf_section *s, void *out)
{
    return mk_conf_bind(mk_keys_tables[which], s, out, &l->g->arena, l->report);
}

/* A key of another section, such as a [SERVER] key in [HOST], is reported as unknown: adds a hint that names
 * the right section. */
static void hint_right_section(struct mk_config_loader *l, const struct mk_conf_section *section,
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
static void hint_right_sections(struct mk_config_loader *l, const struct mk_conf_section *section,
                                enum mk_builtin_section its, const struct mk_conf_problem *before)
{
    static const enum mk_builtin_section others[] = {MK_SECTION_LOCATION, MK_SECTION_SERVER, MK_SECTION_HOST};
    for (size_t i = 0; i < MK_LEN(others); i++)
        if (others[i] != its)
            hint_right_section(l, section, its, others[i], before);
}

static struct mk_vhost_config *add_host(struct mk_config_loader *l, const struct mk_conf_section *section)
{
    struct mk_vhost_config *site = mk_config_loader_add_host(l, section);
    if (!site)
        return NULL;
    /* The Index list of the host replaces that of [SERVER]. */
    if (mk_conf_table_find_entry(section, MK_STR("Index")))
        site->settings.site.index = (struct mk_conf_words){0};
    const struct mk_conf_problem *before = l->report->last;
    if (mk_conf_bind_without_defaults(section->table, section, &site->settings, &l->g->arena, l->report))
        hint_right_sections(l, section, MK_SECTION_HOST, before);
    if (l->origin->overrides.root && !site->settings.root.len && !site->settings.redirect.len)
        site->settings.root = mk_str_from_c(l->origin->overrides.root);
    return site;
}

static void add_location(struct mk_config_loader *l, struct mk_vhost_config *site,
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
static bool bind_host_section(struct mk_config_loader *l, struct mk_vhost_config *site,
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
static void bind_plugin_section(struct mk_config_loader *l, const struct mk_conf_section *s,
                                struct mk_vhost_config *site)
{
    const struct mk_conf_table *table = mk_plugins_find_section_table(l->g, s->name);
    if (table)
        mk_plugin_sections_bind(l->g, table, s, site, l->report);
}

static void bind_host_and_plugin_sections(struct mk_config_loader *l)
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
static void hint_missing_plugins(struct mk_config_loader *l)
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

static void check_section_names(struct mk_config_loader *l)
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

/* Assigns the tables of the server's own sections; bind_plugin_section() finds those of plugins. */
static void assign_tables(struct mk_config_loader *l)
{
    for (struct mk_conf_section *s = l->g->tree.first; s; s = s->next)
        for (size_t i = 0; i < MK_SECTIONS && !s->table; i++)
            if (is_builtin_section(s, (enum mk_builtin_section)i))
                s->table = mk_keys_tables[i];
}

static void bind_sections(struct mk_config_loader *l)
{
    const struct mk_conf_section *server = mk_conf_tree_find(&l->g->tree, MK_STR("SERVER"));
    assign_tables(l);
    mk_plugin_load_configured(l->g, l->report);
    check_section_names(l);
    mk_plugin_sections_join(l->g, mk_plugins_find_section_table);
    const struct mk_conf_problem *before = l->report->last;
    if (mk_config_loader_bind_server(l))
        hint_right_sections(l, server, MK_SECTION_SERVER, before);
    bind_host_and_plugin_sections(l);
}

static void load_sections(struct mk_config_loader *l)
{
    read_config(l);
    bind_sections(l);
}

/* ---- Checks ---- */

/* The master can open the folder, but workers may lack permission to enter it: every request would get
 * 403. */
static void check_root_access(struct mk_config_loader *l, const struct mk_root *root,
                              const struct mk_conf_entry *e)
{
    if (root->fd < 0 || !e || !mk_access_check_find_denied(&l->g->identity, root->path, strlen(root->path)))
        return;
    struct mk_conf_source_pos at = mk_conf_tree_value_pos(e, e->value);
    mk_conf_report_warn(l->report, &at, "the User %s may not enter `%s`: workers will answer 403",
                        l->g->identity.user, root->path);
    mk_conf_report_hint(l->report, "let others search it: `chmod o+x %s`", root->path);
}

static void check_access_of_roots(struct mk_config_loader *l)
{
    for (const struct mk_vhost_config *s = l->g->has_identity ? l->g->sites : NULL; s; s = s->next) {
        check_root_access(l, &s->host.root, mk_conf_table_find_entry(s->section, MK_STR("DocumentRoot")));
        for (size_t i = 0; i < s->host.n_aliases; i++)
            check_root_access(l, &s->host.aliases[i], s->settings.aliases.at[i].entry);
    }
}

const struct mk_config_reader mk_config_reader = {.read = read_config,
                                                  .load = load_sections,
                                                  .build_host = mk_vhost_config_build,
                                                  .check_hosts = check_access_of_roots};

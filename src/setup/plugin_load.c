/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/plugin_load.h"

#include <unistd.h>

#include "base/assert.h"
#include "setup/builtin_handlers.h"
#include "setup/keys.h"
#include "setup/plugins.h"

/* ---- Loaded plugins ---- */

static unsigned plugin_priority(const struct mk_loaded_plugin *l)
{
    return l->object.plugin->priority ? l->object.plugin->priority : MK_PRIORITY_NORMAL;
}

static void add_loaded_plugin(struct mk_config_generation *g, struct mk_loaded_plugin *l)
{
    struct mk_loaded_plugin **end = &g->plugins;
    while (*end)
        end = &(*end)->next;
    *end = l;
    size_t at = g->n_plugins++;
    for (; at > 0 && plugin_priority(g->plugins_by_order[at - 1]) > plugin_priority(l); at--)
        g->plugins_by_order[at] = g->plugins_by_order[at - 1];
    g->plugins_by_order[at] = l;
}

/* ---- Load entries ---- */

static bool is_plugins_section(const struct mk_conf_section *s)
{
    return mk_str_eq_nocase(s->name, MK_STR("PLUGINS"));
}

static bool is_load_entry(const struct mk_conf_entry *e)
{
    return mk_str_eq_nocase(e->key, MK_STR("Load")) && !e->broken && e->value.len;
}

/* Returns the value of a `Load` entry: a plugin name as written, or a path, resolved relative to the folder
 * of the configuration file. */
static mk_str plugin_file_path(struct mk_config_generation *g, const struct mk_conf_entry *e,
                               struct mk_conf_report *report)
{
    struct mk_conf_ctx ctx = {.arena = &g->arena, .report = report, .entry = e};
    bool is_file = mk_str_find(e->value, '/') != MK_STR_NONE;
    return is_file ? mk_conf_ctx_path(&ctx, e->value) : e->value;
}

/* Returns the NAME in /usr/lib/monkey/monkey-NAME.so; absent if the path has another form. */
static mk_str plugin_name_in_path(mk_str path)
{
    mk_str name = mk_str_skip(path, mk_str_find_last(path, '/') + 1), prefix = MK_STR("monkey-"),
           suffix = MK_STR(".so");
    if (!mk_str_starts(name, prefix) || !mk_str_ends(name, suffix) || name.len <= prefix.len + suffix.len)
        return MK_STR_NULL;
    return mk_str_first(mk_str_skip(name, prefix.len), name.len - prefix.len - suffix.len);
}

/* Messages are truncated, and the end of a long path is more useful than its beginning. */
static mk_str shortened_path(mk_str path)
{
    return path.len > 64 ? mk_str_skip(path, mk_str_find_last(path, '/') + 1) : path;
}

/* A Monkey 1 configuration may name a plugin file that no longer exists: loads the current plugin with that
 * name. */
static bool open_plugin_for_old_path(struct mk_loaded_plugin *l, mk_str path,
                                     const struct mk_conf_source_pos *at, struct mk_conf_report *report)
{
    char error[MK_PLUGIN_OBJECT_ERROR_MAX];
    mk_str name = plugin_name_in_path(path);
    if (!mk_plugin_object_open(&l->object, name, error))
        return false;
    mk_conf_report_warn(report, at, "there is no `%.*s`: using the `%.*s` of this server instead",
                        MK_CONF_REPORT_ARG(path), MK_CONF_REPORT_ARG(name));
    mk_conf_report_hint(report, "write `Load %.*s`", MK_CONF_REPORT_ARG(name));
    return true;
}

/* A missing plugin is an error even in a configuration of Monkey 1: the plugin may have restricted access. */
static void report_missing_plugin(struct mk_config_generation *g, mk_str path,
                                  const struct mk_conf_source_pos *at, struct mk_conf_report *report)
{
    mk_str name = plugin_name_in_path(path);
    const char *successor = mk_plugins_suggest_successor(g, name);
    mk_conf_report_error(report, at, "there is no `%.*s`, and this server has no plugin `%.*s`",
                         MK_CONF_REPORT_ARG(path), MK_CONF_REPORT_ARG(name));
    if (successor)
        mk_conf_report_hint(report,
                            "it is now called `%s`: write `Load %s`, and include its old configuration",
                            successor, successor);
    else if (mk_str_eq(name, MK_STR("tls")) || mk_str_eq(name, MK_STR("polarssl")))
        mk_conf_report_hint(
            report, "the server now supports TLS itself: remove the line, and name the Certificate in "
                    "[SERVER] or [HOST]");
    else
        mk_conf_report_hint(report, "if it is a plugin of Monkey 1 that you do not need, remove the line");
}

static bool is_handler_loaded(const struct mk_config_generation *g, mk_str name)
{
    const struct mk_plugin *plugin;
    return mk_plugins_find_handler(g, name, &plugin);
}

/* Two plugins must not define the same section or handler: the configuration would be ambiguous. */
static bool report_name_conflicts(const struct mk_config_generation *g, const struct mk_plugin *p,
                                  const struct mk_conf_source_pos *at, struct mk_conf_report *report)
{
    size_t n_errors = report->n_errors;
    for (const struct mk_conf_table *const *t = p->sections; t && *t; t++) {
        mk_str name = mk_str_from_c((*t)->section);
        bool ours = false;
        for (size_t i = 0; i < MK_SECTIONS; i++)
            ours |= mk_str_eq_nocase(mk_str_from_c(mk_keys_tables[i]->section), name);
        if (ours || mk_plugins_find_section_table(g, name))
            mk_conf_report_error(report, at, "the plugin `%s` adds a section [%s], which already exists",
                                 p->name, (*t)->section);
    }
    for (const struct mk_handler *const *h = p->handlers; h && *h; h++)
        if (mk_builtin_handler_find(mk_str_from_c((*h)->name)) ||
            is_handler_loaded(g, mk_str_from_c((*h)->name)))
            mk_conf_report_error(report, at, "the plugin `%s` adds a handler `%s`, which already exists",
                                 p->name, (*h)->name);
    return report->n_errors > n_errors;
}

static void add_plugin_or_close(struct mk_config_generation *g, struct mk_loaded_plugin *l,
                                const struct mk_conf_source_pos *at, struct mk_conf_report *report)
{
    const char *name = l->object.plugin->name;
    const struct mk_loaded_plugin *other = mk_plugin_list_find_name(g, name);
    if (!other && g->n_plugins == MK_PLUGINS_MAX) {
        mk_conf_report_error(report, at, "too many plugins: at most %d are possible", MK_PLUGINS_MAX);
    } else if (!other && !report_name_conflicts(g, l->object.plugin, at, report)) {
        add_loaded_plugin(g, l);
        return;
    } else if (other && strcmp(other->object.path, l->object.path) != 0) {
        /* no error for the same file: two plugins that both need a plugin may open it twice */
        mk_conf_report_error(report, at, "the plugin `%s` is already loaded from %s", name,
                             *other->object.path ? other->object.path : "the program itself");
    }
    mk_plugin_object_close(&l->object);
}

/* ---- Plugin dependencies ---- */

enum { DEPTH_MAX = 8 }; /* bounds circular dependencies */

static void load_plugin_of_entry(struct mk_config_generation *g, const struct mk_conf_entry *e,
                                 struct mk_conf_report *report, unsigned depth);
static void add_plugin_with_needed(struct mk_config_generation *g, struct mk_loaded_plugin *l,
                                   const struct mk_conf_source_pos *at, struct mk_conf_report *report,
                                   unsigned depth);

/* Returns the entry that loads this plugin explicitly, possibly later in the configuration; NULL: none. */
static const struct mk_conf_entry *find_load_line(const struct mk_config_generation *g, mk_str plugin)
{
    for (const struct mk_conf_section *s = g->tree.first; s; s = s->next)
        for (const struct mk_conf_entry *e = is_plugins_section(s) ? s->first : NULL; e; e = e->next)
            if (is_load_entry(e) &&
                (mk_str_eq(e->value, plugin) || mk_str_eq(plugin_name_in_path(e->value), plugin)))
                return e;
    return NULL;
}

static void open_needed_plugin(struct mk_config_generation *g, const struct mk_loaded_plugin *by, mk_str name,
                               struct mk_conf_report *report, unsigned depth)
{
    char error[MK_PLUGIN_OBJECT_ERROR_MAX] = "the plugins depend on each other";
    const struct mk_conf_entry *line = depth < DEPTH_MAX ? find_load_line(g, name) : NULL;
    struct mk_conf_source_pos at = mk_conf_tree_value_pos(by->entry, by->entry->value);
    struct mk_loaded_plugin *l = mk_arena_zalloc(&g->arena, 1, sizeof *l);
    if (!l)
        return;
    l->entry = by->entry;
    if (line)
        load_plugin_of_entry(g, line, report, depth + 1);
    else if (depth < DEPTH_MAX && mk_plugin_object_open_needed(&l->object, &by->object, name, error))
        add_plugin_with_needed(g, l, &at, report, depth + 1);
    else
        mk_conf_report_error(report, &at, "cannot load the plugin `%.*s`, which `%s` needs: %s",
                             MK_STR_ARG(name), by->object.plugin->name, error);
}

/* Adds the plugin after the plugins that it needs. */
static void add_plugin_with_needed(struct mk_config_generation *g, struct mk_loaded_plugin *l,
                                   const struct mk_conf_source_pos *at, struct mk_conf_report *report,
                                   unsigned depth)
{
    size_t n_errors = report->n_errors;
    for (const char *const *n = l->object.plugin->needs; n && *n; n++)
        if (!mk_plugin_list_find_name(g, *n))
            open_needed_plugin(g, l, mk_str_from_c(*n), report, depth);
    if (report->n_errors == n_errors)
        add_plugin_or_close(g, l, at, report);
    else
        mk_plugin_object_close(&l->object);
}

/* ---- Opening ---- */

static void load_plugin_of_entry(struct mk_config_generation *g, const struct mk_conf_entry *e,
                                 struct mk_conf_report *report, unsigned depth)
{
    char error[MK_PLUGIN_OBJECT_ERROR_MAX];
    struct mk_loaded_plugin *l = mk_arena_zalloc(&g->arena, 1, sizeof *l);
    mk_str name = plugin_file_path(g, e, report);
    if (!l || !name.p)
        return;
    struct mk_conf_source_pos at = mk_conf_tree_value_pos(e, e->value);
    bool is_gone = e->value.p[0] == '/' && plugin_name_in_path(name).p && access(name.p, F_OK) != 0;
    bool opened = is_gone ? open_plugin_for_old_path(l, name, &at, report)
                          : mk_plugin_object_open(&l->object, name, error);
    l->entry = e;
    if (opened)
        add_plugin_with_needed(g, l, &at, report, depth);
    else if (is_gone)
        report_missing_plugin(g, name, &at, report);
    else
        mk_conf_report_error(report, &at, "cannot load the plugin `%.*s`: %s",
                             MK_CONF_REPORT_ARG(shortened_path(e->value)), error);
}

static void report_unknown_key(const struct mk_conf_entry *e, struct mk_conf_report *report)
{
    mk_conf_report_error(report, &e->at, "unknown key `%.*s` in [PLUGINS]: expected `Load NAME|FILE`",
                         MK_CONF_REPORT_ARG(e->key));
}

typedef void add_plugin_fn(struct mk_config_generation *g, struct mk_loaded_plugin *l,
                           const struct mk_conf_source_pos *at, struct mk_conf_report *report,
                           unsigned depth);

/* Adds the embedding program's plugins. */
static void add_program_plugins(struct mk_config_generation *g, struct mk_conf_report *report,
                                add_plugin_fn *add)
{
    static const struct mk_conf_entry no_line = {.at = {.file = MK_STR_INIT("the program")}};
    for (size_t i = 0; i < g->embedding->n_plugins; i++) {
        const struct mk_plugin *p = g->embedding->plugins[i];
        char error[MK_PLUGIN_OBJECT_ERROR_MAX];
        struct mk_loaded_plugin *l = mk_arena_zalloc(&g->arena, 1, sizeof *l);
        if (!l)
            return;
        l->entry = &no_line;
        if (mk_plugin_object_from_program(&l->object, p, error))
            add(g, l, &no_line.at, report, 0);
        else
            mk_conf_report_error(report, &no_line.at, "cannot load the plugin `%s`: %s",
                                 p->name ? p->name : "", error);
    }
}

static void add_library_plugin(struct mk_config_generation *g, struct mk_loaded_plugin *l,
                               const struct mk_conf_source_pos *at, struct mk_conf_report *report,
                               unsigned depth)
{
    (void)at, (void)report, (void)depth;
    MK_ASSERT(!l->object.plugin->needs && !l->object.plugin->sections && !l->object.plugin->handlers);
    add_loaded_plugin(g, l);
}

void mk_plugin_load_of_library(struct mk_config_generation *g, struct mk_conf_report *report)
{
    add_program_plugins(g, report, add_library_plugin);
}

void mk_plugin_load_configured(struct mk_config_generation *g, struct mk_conf_report *report)
{
    if (g->embedding)
        add_program_plugins(g, report, add_plugin_with_needed);
    for (const struct mk_conf_section *s = g->tree.first; s; s = s->next)
        for (const struct mk_conf_entry *e = is_plugins_section(s) ? s->first : NULL; e; e = e->next)
            if (is_load_entry(e))
                load_plugin_of_entry(g, e, report, 0);
            else if (!mk_str_eq_nocase(e->key, MK_STR("Load")))
                report_unknown_key(e, report);
}

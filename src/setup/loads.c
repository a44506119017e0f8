/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/loads.h"

#include <unistd.h>

#include "settings/keys.h"
#include "setup/ours.h"
#include "setup/plugins.h"

/* ---- The list of those that are loaded ---- */

static unsigned order_of(const struct mk_loaded *l)
{
    return l->object.plugin->order ? l->object.plugin->order : MK_PRIORITY_NORMAL;
}

static void add(struct mk_generation *g, struct mk_loaded *l)
{
    struct mk_loaded **end = &g->plugins;
    while (*end)
        end = &(*end)->next;
    *end = l;
    size_t at = g->n_plugins++;
    for (; at > 0 && order_of(g->plugins_by_order[at - 1]) > order_of(l); at--)
        g->plugins_by_order[at] = g->plugins_by_order[at - 1];
    g->plugins_by_order[at] = l;
}

/* ---- Lines ---- */

static bool is_plugins(const struct mk_conf_section *s)
{
    return mk_str_eq_nocase(s->name, MK_STR("PLUGINS"));
}

static bool is_load(const struct mk_conf_entry *e)
{
    return mk_str_eq_nocase(e->key, MK_STR("Load")) && !e->broken && e->value.len;
}

/* A relative path starts at the folder of the configuration file that has it. */
static mk_str file_of(struct mk_generation *g, const struct mk_conf_entry *e, struct mk_conf_report *report)
{
    struct mk_conf_ctx spot = {.arena = &g->arena, .report = report, .entry = e};
    bool is_file = mk_str_find(e->value, '/') != MK_STR_NONE;
    return is_file ? mk_conf_ctx_path(&spot, e->value) : e->value;
}

/* The NAME in /usr/lib/monkey/monkey-NAME.so; absent when the file has another kind of name. */
static mk_str name_in(mk_str path)
{
    mk_str name = mk_str_skip(path, mk_str_find_last(path, '/') + 1), prefix = MK_STR("monkey-"),
           suffix = MK_STR(".so");
    if (!mk_str_starts(name, prefix) || !mk_str_ends(name, suffix) || name.len <= prefix.len + suffix.len)
        return MK_STR_NULL;
    return mk_str_first(mk_str_skip(name, prefix.len), name.len - prefix.len - suffix.len);
}

/* For messages, which cut what is long: of a long path, the file says more than the first folders. */
static mk_str short_name(mk_str path)
{
    return path.len > 64 ? mk_str_skip(path, mk_str_find_last(path, '/') + 1) : path;
}

/* A configuration of Monkey 1 may name a plugin file that is gone: load today's plugin of the same name. */
static bool open_successor(struct mk_loaded *l, mk_str path, const struct mk_conf_source_pos *at,
                           struct mk_conf_report *report)
{
    char why[MK_OBJECT_WHY];
    mk_str name = name_in(path);
    if (!mk_object_open(&l->object, name, why))
        return false;
    mk_conf_report_warn(report, at, "there is no `%.*s`: using the `%.*s` of this server instead",
                        MK_CONF_REPORT_ARG(path), MK_CONF_REPORT_ARG(name));
    mk_conf_report_hint(report, "write `Load %.*s`", MK_CONF_REPORT_ARG(name));
    return true;
}

/* A missing plugin is always an error: it may have restricted access. */
static void report_gone(struct mk_generation *g, mk_str path, const struct mk_conf_source_pos *at,
                        struct mk_conf_report *report)
{
    mk_str name = name_in(path);
    const char *successor = mk_plugins_seek_successor(g, name);
    mk_conf_report_error(report, at, "there is no `%.*s`, and no plugin `%.*s` of this server",
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

static bool has_handler(const struct mk_generation *g, mk_str name)
{
    const struct mk_plugin *plugin;
    return mk_plugins_handler(g, name, &plugin);
}

/* Two plugins must not share a section or handler: the configuration would be ambiguous. */
static bool is_taken(const struct mk_generation *g, const struct mk_plugin *p,
                     const struct mk_conf_source_pos *at, struct mk_conf_report *report)
{
    size_t n_errors = report->n_errors;
    for (const struct mk_conf_table *const *t = p->sections; t && *t; t++) {
        mk_str name = mk_str_from_c((*t)->section);
        bool ours = false;
        for (size_t i = 0; i < MK_SECTIONS; i++)
            ours |= mk_str_eq_nocase(mk_str_from_c(mk_keys_tables[i]->section), name);
        if (ours || mk_plugins_table(g, name))
            mk_conf_report_error(report, at, "the plugin `%s` adds a section [%s], which already exists",
                                 p->name, (*t)->section);
    }
    for (const struct mk_handler *const *h = p->handlers; h && *h; h++)
        if (mk_ours_find(mk_str_from_c((*h)->name)) || has_handler(g, mk_str_from_c((*h)->name)))
            mk_conf_report_error(report, at, "the plugin `%s` adds a handler `%s`, which already exists",
                                 p->name, (*h)->name);
    return report->n_errors > n_errors;
}

static void keep(struct mk_generation *g, struct mk_loaded *l, const struct mk_conf_source_pos *at,
                 struct mk_conf_report *report)
{
    const char *name = l->object.plugin->name;
    const struct mk_loaded *other = mk_loaded_named(g, name);
    if (!other && g->n_plugins == MK_PLUGINS_MAX) {
        mk_conf_report_error(report, at, "more than %d plugins", MK_PLUGINS_MAX);
    } else if (!other && !is_taken(g, l->object.plugin, at, report)) {
        add(g, l);
        return;
    } else if (other && strcmp(other->object.path, l->object.path) != 0) {
        /* the same plugin may be loaded twice, by files that both need it */
        mk_conf_report_error(report, at, "the plugin `%s` is already loaded from %s", name,
                             *other->object.path ? other->object.path : "the program itself");
    }
    mk_object_close(&l->object);
}

/* ---- What a plugin needs ---- */

enum { DEPTH_MAX = 8 }; /* plugins that need each other would go on forever */

static void open_one(struct mk_generation *g, const struct mk_conf_entry *e, struct mk_conf_report *report,
                     unsigned depth);
static void settle(struct mk_generation *g, struct mk_loaded *l, const struct mk_conf_source_pos *at,
                   struct mk_conf_report *report, unsigned depth);

/* The line that loads this plugin itself, which may be a later one; NULL if there is none. */
static const struct mk_conf_entry *find_line(const struct mk_generation *g, mk_str plugin)
{
    for (const struct mk_conf_section *s = g->tree.first; s; s = s->next)
        for (const struct mk_conf_entry *e = is_plugins(s) ? s->first : NULL; e; e = e->next)
            if (is_load(e) && (mk_str_eq(e->value, plugin) || mk_str_eq(name_in(e->value), plugin)))
                return e;
    return NULL;
}

static void open_needed(struct mk_generation *g, const struct mk_loaded *by, mk_str name,
                        struct mk_conf_report *report, unsigned depth)
{
    char why[MK_OBJECT_WHY] = "plugins need each other";
    const struct mk_conf_entry *line = depth < DEPTH_MAX ? find_line(g, name) : NULL;
    struct mk_conf_source_pos at = mk_conf_tree_value_pos(by->entry, by->entry->value);
    struct mk_loaded *l = mk_arena_zalloc(&g->arena, 1, sizeof *l);
    if (!l)
        return;
    l->entry = by->entry;
    if (line)
        open_one(g, line, report, depth + 1);
    else if (depth < DEPTH_MAX && mk_object_open_needed(&l->object, &by->object, name, why))
        settle(g, l, &at, report, depth + 1);
    else
        mk_conf_report_error(report, &at, "cannot load the plugin `%.*s`, which `%s` needs: %s",
                             MK_STR_ARG(name), by->object.plugin->name, why);
}

/* They come first, so that they are loaded first. */
static void settle(struct mk_generation *g, struct mk_loaded *l, const struct mk_conf_source_pos *at,
                   struct mk_conf_report *report, unsigned depth)
{
    size_t n_errors = report->n_errors;
    for (const char *const *n = l->object.plugin->needs; n && *n; n++)
        if (!mk_loaded_named(g, *n))
            open_needed(g, l, mk_str_from_c(*n), report, depth);
    if (report->n_errors == n_errors)
        keep(g, l, at, report);
    else
        mk_object_close(&l->object);
}

/* ---- Opening ---- */

static void open_one(struct mk_generation *g, const struct mk_conf_entry *e, struct mk_conf_report *report,
                     unsigned depth)
{
    char why[MK_OBJECT_WHY];
    struct mk_loaded *l = mk_arena_zalloc(&g->arena, 1, sizeof *l);
    mk_str name = file_of(g, e, report);
    if (!l || !name.p)
        return;
    struct mk_conf_source_pos at = mk_conf_tree_value_pos(e, e->value);
    bool is_gone = e->value.p[0] == '/' && name_in(name).p && access(name.p, F_OK) != 0;
    bool opened = is_gone ? open_successor(l, name, &at, report) : mk_object_open(&l->object, name, why);
    l->entry = e;
    if (opened)
        settle(g, l, &at, report, depth);
    else if (is_gone)
        report_gone(g, name, &at, report);
    else
        mk_conf_report_error(report, &at, "cannot load the plugin `%.*s`: %s",
                             MK_CONF_REPORT_ARG(short_name(e->value)), why);
}

static void report_no_load(const struct mk_conf_entry *e, struct mk_conf_report *report)
{
    mk_conf_report_error(report, &e->at, "unknown key `%.*s` in [PLUGINS]: expected `Load NAME|FILE`",
                         MK_CONF_REPORT_ARG(e->key));
}

/* Those of the program around us. */
static void take_all(struct mk_generation *g, struct mk_conf_report *report)
{
    static const struct mk_conf_entry no_line = {.at = {.file = MK_STR_INIT("the program")}};
    for (size_t i = 0; i < g->embedding->n_plugins; i++) {
        const struct mk_plugin *p = g->embedding->plugins[i];
        char why[MK_OBJECT_WHY];
        struct mk_loaded *l = mk_arena_zalloc(&g->arena, 1, sizeof *l);
        if (!l)
            return;
        l->entry = &no_line;
        if (mk_object_take(&l->object, p, why))
            settle(g, l, &no_line.at, report, 0);
        else
            mk_conf_report_error(report, &no_line.at, "cannot load the plugin `%s`: %s",
                                 p->name ? p->name : "", why);
    }
}

void mk_loads_open(struct mk_generation *g, struct mk_conf_report *report)
{
    if (g->embedding)
        take_all(g, report);
    for (const struct mk_conf_section *s = g->tree.first; s; s = s->next)
        for (const struct mk_conf_entry *e = is_plugins(s) ? s->first : NULL; e; e = e->next)
            if (is_load(e))
                open_one(g, e, report, 0);
            else if (!mk_str_eq_nocase(e->key, MK_STR("Load")))
                report_no_load(e, report);
}

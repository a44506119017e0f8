/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/plugins.h"
#include "setup/keys.h"

#include <unistd.h>

#include "proto/service_type.h"
#include "setup/config.h"
#include "setup/ours.h"

/* ---- Which are loaded ---- */

static const struct mk_loaded *find_loaded(const struct mk_generation *g, const char *name)
{
    const struct mk_loaded *l = g->plugins;
    while (l && strcmp(l->object.plugin->name, name) != 0)
        l = l->next;
    return l;
}

const struct mk_loaded *mk_plugins_at(const struct mk_generation *g, size_t i)
{
    return i < g->n_plugins ? g->plugins_by_order[i] : NULL;
}

static unsigned order_of(const struct mk_loaded *l)
{
    return l->object.plugin->order ? l->object.plugin->order : MK_ORDER_NORMAL;
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

/* A relative path starts at the folder of the configuration file that has it. */
static mk_str file_of(struct mk_generation *g, const struct mk_conf_entry *e, struct mk_conf_report *report)
{
    struct mk_conf_spot spot = {.arena = &g->arena, .report = report, .entry = e};
    bool is_file = mk_str_find(e->value, '/') != MK_STR_NONE;
    return is_file ? mk_conf_spot_path(&spot, e->value) : e->value;
}

/* The NAME in /usr/lib/monkey/monkey-NAME.so; absent when the file has another kind of name. */
static mk_str name_in(mk_str path)
{
    mk_str name = mk_str_skip(path, mk_str_find_last(path, '/') + 1), prefix = MK_STR("monkey-"),
           suffix = MK_STR(".so");
    if (!mk_str_starts(name, prefix) || !mk_str_ends(name, suffix) || name.len <= prefix.len + suffix.len)
        return MK_ABSENT;
    return mk_str_first(mk_str_skip(name, prefix.len), name.len - prefix.len - suffix.len);
}

/* A configuration of Monkey 1 may name a plugin file that is gone: load today's plugin of the same name. */
static bool open_successor(struct mk_loaded *l, mk_str path, const struct mk_conf_place *at,
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
static void report_gone(mk_str path, const struct mk_conf_place *at, struct mk_conf_report *report)
{
    char successor[64];
    mk_str name = name_in(path);
    mk_conf_report_error(report, at, "there is no `%.*s`, and no plugin `%.*s` of this server",
                         MK_CONF_REPORT_ARG(path), MK_CONF_REPORT_ARG(name));
    if (mk_plugins_seek_successor(name, successor))
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
static bool is_taken(const struct mk_generation *g, const struct mk_plugin *p, const struct mk_conf_place *at,
                     struct mk_conf_report *report)
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

static void keep(struct mk_generation *g, struct mk_loaded *l, const struct mk_conf_place *at,
                 struct mk_conf_report *report)
{
    const char *name = l->object.plugin->name;
    const struct mk_loaded *other = find_loaded(g, name);
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

static void open_one(struct mk_generation *g, const struct mk_conf_entry *e, struct mk_conf_report *report)
{
    char why[MK_OBJECT_WHY];
    struct mk_loaded *l = mk_arena_zalloc(&g->arena, 1, sizeof *l);
    mk_str name = file_of(g, e, report);
    if (!l || !name.p)
        return;
    struct mk_conf_place at = mk_conf_tree_place(e, e->value);
    bool is_gone = e->value.p[0] == '/' && name_in(name).p && access(name.p, F_OK) != 0;
    bool opened = is_gone ? open_successor(l, name, &at, report) : mk_object_open(&l->object, name, why);
    l->entry = e;
    if (opened)
        keep(g, l, &at, report);
    else if (is_gone)
        report_gone(name, &at, report);
    else
        mk_conf_report_error(report, &at, "cannot load the plugin `%.*s`: %s", MK_CONF_REPORT_ARG(e->value),
                             why);
}

static void report_no_load(const struct mk_conf_entry *e, struct mk_conf_report *report)
{
    mk_conf_report_error(report, &e->at, "unknown key `%.*s` in [PLUGINS]: expected `Load NAME|FILE`",
                         MK_CONF_REPORT_ARG(e->key));
}

void mk_plugins_open(struct mk_generation *g, struct mk_conf_report *report)
{
    for (const struct mk_conf_section *s = g->tree.first; s; s = s->next) {
        if (!mk_str_eq_nocase(s->name, MK_STR("PLUGINS")))
            continue;
        for (const struct mk_conf_entry *e = s->first; e; e = e->next)
            if (!mk_str_eq_nocase(e->key, MK_STR("Load")))
                report_no_load(e, report);
            else if (!e->broken && e->value.len)
                open_one(g, e, report);
    }
}

void mk_plugins_stop(struct mk_generation *g)
{
    for (struct mk_loaded *l = g->plugins; l; l = l->next) {
        if (l->started && l->object.plugin->unload)
            l->object.plugin->unload(l->data);
        l->started = false;
    }
}

size_t mk_plugins_detach(struct mk_generation *g, struct mk_object objects[MK_PLUGINS_MAX])
{
    size_t n = 0;
    for (struct mk_loaded *l = g->plugins; l; l = l->next)
        objects[n++] = l->object;
    g->plugins = NULL;
    g->n_plugins = 0;
    return n;
}

/* ---- What they bring ---- */

const struct mk_conf_table *mk_plugins_table(const struct mk_generation *g, mk_str section)
{
    for (const struct mk_loaded *l = g->plugins; l; l = l->next)
        for (const struct mk_conf_table *const *t = l->object.plugin->sections; t && *t; t++)
            if (mk_str_eq_nocase(mk_str_from_c((*t)->section), section))
                return *t;
    return NULL;
}

static const struct mk_handler *handler_of(const struct mk_plugin *p, mk_str name)
{
    for (const struct mk_handler *const *h = p->handlers; h && *h; h++)
        if (mk_str_eq_nocase(mk_str_from_c((*h)->name), name))
            return *h;
    return NULL;
}

const struct mk_handler *mk_plugins_handler(const struct mk_generation *g, mk_str name,
                                            const struct mk_plugin **plugin)
{
    const struct mk_handler *found = NULL;
    for (const struct mk_loaded *l = g->plugins; l && !found; l = l->next) {
        *plugin = l->object.plugin;
        found = handler_of(l->object.plugin, name);
    }
    return found;
}

struct seeking {
    mk_str what;
    char *name;
    bool found;
};

static bool keep_name(struct seeking *s, const struct mk_plugin *p)
{
    struct mk_buf name = mk_buf_fixed(s->name, 63);
    mk_buf_add(&name, mk_str_from_c(p->name));
    s->name[name.len] = '\0';
    s->found = true;
    return false;
}

static bool look_for_section(const struct mk_object *o, void *ctx)
{
    struct seeking *s = ctx;
    for (const struct mk_conf_table *const *t = o->plugin->sections; t && *t; t++)
        if (mk_str_eq_nocase(mk_str_from_c((*t)->section), s->what))
            return keep_name(s, o->plugin);
    return true;
}

static bool look_for_handler(const struct mk_object *o, void *ctx)
{
    struct seeking *s = ctx;
    return handler_of(o->plugin, s->what) ? keep_name(s, o->plugin) : true;
}

static bool look_for_successor(const struct mk_object *o, void *ctx)
{
    struct seeking *s = ctx;
    bool is_it = mk_str_eq(mk_str_from_c(o->plugin->replaces), s->what);
    return is_it ? keep_name(s, o->plugin) : true;
}

bool mk_plugins_seek_successor(mk_str old, char name[64])
{
    struct seeking s = {.what = old, .name = name};
    mk_object_each(look_for_successor, &s);
    return s.found;
}

bool mk_plugins_seek_section(mk_str section, char name[64])
{
    struct seeking s = {.what = section, .name = name};
    mk_object_each(look_for_section, &s);
    return s.found;
}

bool mk_plugins_seek_handler(mk_str handler, char name[64])
{
    struct seeking s = {.what = handler, .name = name};
    mk_object_each(look_for_handler, &s);
    return s.found;
}

/* ---- Starting ---- */

/* Reports a plugin that failed without an error message of its own. */
static void report_failure(struct mk_config *c, const char *what, size_t n_errors, int e)
{
    if (e && c->report->n_errors == n_errors && !mk_conf_report_lacks_memory(c->report))
        mk_config_error(c, NULL, NULL, "the plugin `%s` cannot %s: %s", c->plugin->object.plugin->name, what,
                        mk_err_text(e));
}

void mk_plugins_start(struct mk_generation *g, struct mk_conf_report *report)
{
    for (struct mk_loaded *l = g->plugins; l && !g->arena.failed; l = l->next) {
        struct mk_config c = {.generation = g, .report = report, .plugin = l};
        size_t n_errors = report->n_errors;
        int e = l->object.plugin->load ? l->object.plugin->load(&c, &l->data) : 0;
        l->started = e == 0;
        report_failure(&c, "be loaded", n_errors, e);
    }
}

/* NULL: the host does not use the plugin. */
static void *enter(struct mk_generation *g, struct mk_loaded *l, struct mk_site *site,
                   struct mk_conf_report *report)
{
    const struct mk_plugin *p = l->object.plugin;
    struct mk_config c = {.generation = g, .report = report, .plugin = l, .site = site};
    size_t n_errors = report->n_errors;
    void *data = NULL;
    if (p->host)
        report_failure(&c, "serve this host", n_errors, p->host(&c, &site->host, l->data, &data));
    return data;
}

static void enter_host(struct mk_generation *g, struct mk_site *site, struct mk_conf_report *report)
{
    struct mk_hook *hooks = mk_arena_zalloc(&g->arena, g->n_plugins + 1, sizeof *hooks);
    size_t n = 0;
    for (size_t i = 0; hooks && i < g->n_plugins; i++) {
        struct mk_loaded *l = g->plugins_by_order[i];
        if (!l->started)
            continue; /* an error: this configuration will not serve */
        void *data = enter(g, l, site, report);
        if (data || !l->object.plugin->host)
            hooks[n++] = (struct mk_hook){.plugin = l->object.plugin, .data = data ? data : l->data};
    }
    site->host.plugins = hooks;
    site->host.n_plugins = n;
    (void)!(hooks && mk_hooks_build(&site->host.hooks, &g->arena, hooks, n));
}

static void collect_accept_hooks(struct mk_generation *g)
{
    g->accept_hooks = mk_arena_zalloc(&g->arena, g->n_plugins + 1, sizeof *g->accept_hooks);
    for (size_t i = 0; g->accept_hooks && i < g->n_plugins; i++) {
        const struct mk_loaded *l = g->plugins_by_order[i];
        if (l->object.plugin->on_accept)
            g->accept_hooks[g->n_accept_hooks++] = (struct mk_accept_hook){
                .name = l->object.plugin->name, .on_accept = l->object.plugin->on_accept, .data = l->data};
    }
}

void mk_plugins_enter_hosts(struct mk_generation *g, struct mk_conf_report *report)
{
    collect_accept_hooks(g);
    for (struct mk_site *s = g->sites; s && !g->arena.failed; s = s->next)
        enter_host(g, s, report);
}

bool mk_plugins_prepare(struct mk_generation *g, struct mk_conf_report *report)
{
    size_t n_errors = report->n_errors;
    mk_conf_report_watch(report, &g->arena);
    for (struct mk_loaded *l = g->plugins;
         l && report->n_errors == n_errors && !mk_conf_report_lacks_memory(report); l = l->next) {
        struct mk_config c = {.generation = g, .report = report, .plugin = l};
        const struct mk_plugin *p = l->object.plugin;
        report_failure(&c, "start", n_errors, p->master_start ? p->master_start(&c, l->data) : 0);
    }
    mk_conf_report_watch(report, NULL);
    return report->n_errors == n_errors && !report->no_memory;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "server/config.h"

#include "base/assert.h"
#include "conf/path.h"
#include "conf/print.h"
#include "server/plugins.h"

static bool stands_twice(const struct mk_generation *g, const struct mk_conf_table *table,
                         const struct mk_site *site)
{
    for (const struct mk_bound *b = g->bound; b; b = b->next)
        if (b->table == table && b->site == site)
            return true;
    return false;
}

void mk_config_bind(struct mk_generation *g, const struct mk_conf_table *table,
                    const struct mk_conf_section *section, const struct mk_site *site,
                    struct mk_conf_report *report)
{
    if (table->scope == MK_CONF_SERVER)
        site = NULL;
    else if (!table->repeatable && stands_twice(g, table, site))
        mk_conf_report_error(report, &section->at, "[%s] stands already for this host", table->section);
    struct mk_bound *b = mk_arena_zalloc(&g->arena, 1, sizeof *b);
    void *settings = mk_arena_zalloc(&g->arena, 1, table->size ? table->size : 1);
    if (!b || !settings) {
        report->no_memory = true;
        return;
    }
    *b = (struct mk_bound){.table = table, .section = section, .site = site, .settings = settings};
    struct mk_bound **end = &g->bound;
    while (*end)
        end = &(*end)->next;
    *end = b;
    (void)!mk_conf_bind(table, section, settings, &g->arena, report);
}

/* Rules that no table can show again, as they were written. */
static void print_entries(const struct mk_bound *b, struct mk_buf *out)
{
    for (const struct mk_conf_entry *e = b->section->first; e; e = e->next)
        if (!mk_conf_table_find(b->table, e->key, false))
            mk_conf_print_entry(e->key, e->value, out);
}

void mk_config_print(const struct mk_generation *g, const struct mk_site *site, struct mk_buf *out)
{
    for (const struct mk_bound *b = g->bound; b; b = b->next) {
        if (b->site != site)
            continue;
        mk_buf_add(out, MK_STR("\n"));
        mk_conf_print_section(b->table, b->settings, out);
        if (b->table->entry && !b->table->show_entry)
            print_entries(b, out);
    }
}

/* ---- What plugins call ---- */

static bool has_own(const struct mk_config *c, const struct mk_conf_table *table)
{
    return c->site && stands_twice(c->generation, table, c->site);
}

void *mk_config_section(struct mk_config *c, const struct mk_conf_table *table, const void *after)
{
    const struct mk_site *site = has_own(c, table) ? c->site : NULL;
    bool behind = !after;
    for (const struct mk_bound *b = c->generation->bound; b; b = b->next) {
        if (behind && b->table == table && b->site == site)
            return b->settings;
        behind |= b->settings == after;
    }
    return NULL;
}

void *mk_config_alloc(struct mk_config *c, size_t size)
{
    void *p = mk_arena_zalloc(&c->generation->arena, 1, size);
    c->report->no_memory |= !p;
    return p;
}

mk_str mk_config_copy(struct mk_config *c, mk_str text)
{
    mk_str copy = mk_arena_copy(&c->generation->arena, text);
    c->report->no_memory |= !copy.p;
    return copy;
}

bool mk_config_on_end(struct mk_config *c, void (*fn)(void *data), void *data)
{
    bool ok = mk_arena_on_end(&c->generation->arena, fn, data);
    c->report->no_memory |= !ok;
    return ok;
}

static const struct mk_bound *find_bound(const struct mk_config *c, const void *settings)
{
    const struct mk_bound *b = c->generation->bound;
    while (b && b->settings != settings)
        b = b->next;
    return b;
}

static struct mk_conf_place place_of(const struct mk_config *c, const void *settings, const char *key)
{
    const struct mk_bound *b = settings ? find_bound(c, settings) : NULL;
    if (!b)
        return c->plugin->entry->at;
    const struct mk_conf_entry *e = key ? mk_conf_tree_entry(b->section, mk_str_from_c(key)) : NULL;
    return e ? mk_conf_tree_place(e, e->value) : b->section->at;
}

void mk_config_error(struct mk_config *c, const void *section, const char *key, const char *fmt, ...)
{
    struct mk_conf_place at = place_of(c, section, key);
    va_list args;
    va_start(args, fmt);
    mk_conf_report_addv(c->report, MK_CONF_ERROR, &at, fmt, args);
    va_end(args);
}

void mk_config_warn(struct mk_config *c, const void *section, const char *key, const char *fmt, ...)
{
    struct mk_conf_place at = place_of(c, section, key);
    va_list args;
    va_start(args, fmt);
    mk_conf_report_addv(c->report, MK_CONF_WARNING, &at, fmt, args);
    va_end(args);
}

void mk_config_hint(struct mk_config *c, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    mk_conf_report_hintv(c->report, fmt, args);
    va_end(args);
}

mk_str mk_config_path(struct mk_config *c, const void *section, mk_str path)
{
    mk_str file = place_of(c, section, NULL).file;
    mk_str full = mk_conf_path_join(&c->generation->arena, file, path);
    c->report->no_memory |= !full.p;
    return full;
}

void mk_config_add_route(struct mk_config *c, mk_str pattern, const struct mk_handler *handler, void *data)
{
    struct mk_pattern match;
    MK_ASSERT(c->site);
    if (!mk_pattern_set(&match, pattern)) {
        mk_config_error(
            c, NULL, NULL,
            "the plugin `%s` adds a route for `%.*s`, which is not a pattern: it must begin with / or *",
            c->plugin->object.plugin->name, MK_CONF_REPORT_ARG(pattern));
        return;
    }
    struct mk_host *h = &c->site->host;
    struct mk_route *more = mk_config_alloc(c, (h->n_routes + 1) * sizeof *more);
    if (!more)
        return;
    if (h->n_routes)
        memcpy(more, h->routes, h->n_routes * sizeof *more);
    struct mk_route *route = &more[h->n_routes];
    *route = (struct mk_route){.pattern = match,
                               .handler = handler,
                               .data = data,
                               .plugin = c->plugin->object.plugin,
                               .written = mk_str_from_c(handler->name)};
    h->routes = more;
    h->n_routes++;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/plugin_sections.h"

#include "conf/bind.h"
#include "conf/print.h"

static const struct mk_plugin_sections *sections_of_host(const struct mk_config_generation *g,
                                                         const struct mk_vhost_config *site)
{
    return site ? &site->sections : &g->sections;
}

const struct mk_plugin_section *mk_plugin_sections_find(const struct mk_config_generation *g,
                                                        const struct mk_conf_table *table,
                                                        const struct mk_vhost_config *site,
                                                        const struct mk_plugin_section *after)
{
    const struct mk_plugin_section *s = after ? after->next : sections_of_host(g, site)->first;
    while (s && s->table != table)
        s = s->next;
    return s;
}

static mk_str settings_key(void *const *settings)
{
    return mk_str_of((const char *)settings, sizeof *settings);
}

const struct mk_plugin_section *mk_plugin_sections_of_settings(const struct mk_config_generation *g,
                                                               const void *settings)
{
    void *key = (void *)(uintptr_t)settings;
    return settings ? mk_map_get(&g->sections_by_settings, settings_key(&key)) : NULL;
}

/* Can repeated sections of this table be merged into one? */
static bool is_joinable(const struct mk_conf_table *table)
{
    bool is = table->entry;
    for (size_t i = 0; i < table->n; i++)
        is |= table->keys[i].flags & MK_CONF_REPEATABLE || table->keys[i].type == MK_CONF_WORDS;
    return is && !table->repeatable && table->scope == MK_CONF_VHOST;
}

static struct mk_conf_section *find_section_between(struct mk_conf_section *from,
                                                    const struct mk_conf_section *to, mk_str name)
{
    while (from != to && !mk_str_eq_nocase(from->name, name))
        from = from->next;
    return from == to ? NULL : from;
}

static void append_entries(struct mk_conf_section *to, const struct mk_conf_section *from)
{
    if (!from->first)
        return;
    if (to->last)
        to->last->next = from->first;
    else
        to->first = from->first;
    to->last = from->last;
    to->n += from->n;
}

void mk_plugin_sections_join(struct mk_config_generation *g,
                             const struct mk_conf_table *(*find)(const struct mk_config_generation *g,
                                                                 mk_str name))
{
    struct mk_conf_section *host = g->tree.first, *before = NULL;
    for (struct mk_conf_section *s = g->tree.first; s; s = s->next) {
        const struct mk_conf_table *table = find(g, s->name);
        if (mk_str_eq_nocase(s->name, MK_STR("HOST")))
            host = s;
        struct mk_conf_section *first =
            table && is_joinable(table) ? find_section_between(host, s, s->name) : NULL;
        if (!first) {
            before = s;
            continue;
        }
        append_entries(first, s);
        before->next = s->next;
        g->tree.n--;
        if (g->tree.last == s)
            g->tree.last = before;
    }
}

void mk_plugin_sections_bind(struct mk_config_generation *g, const struct mk_conf_table *table,
                             const struct mk_conf_section *section, struct mk_vhost_config *site,
                             struct mk_conf_report *report)
{
    if (table->scope == MK_CONF_SERVER)
        site = NULL;
    else if (!table->repeatable && mk_plugin_sections_find(g, table, site, NULL))
        mk_conf_report_error(report, &section->at, "this host already has a section [%s]", table->section);
    struct mk_plugin_section *s = mk_arena_zalloc(&g->arena, 1, sizeof *s);
    void *settings = mk_arena_zalloc(&g->arena, 1, table->size ? table->size : 1);
    if (!s || !settings)
        return;
    *s = (struct mk_plugin_section){.table = table, .section = section, .settings = settings};
    if (!mk_map_put(&g->sections_by_settings, settings_key(&s->settings), s))
        return;
    struct mk_plugin_sections *list = site ? &site->sections : &g->sections;
    if (list->last)
        list->last->next = s;
    else
        list->first = s;
    list->last = s;
    (void)!mk_conf_bind(table, section, settings, &g->arena, report);
}

/* Prints free-form entries as written, for a table without show_entry(). */
static void print_written_entries(const struct mk_plugin_section *s, struct mk_buf *out)
{
    for (const struct mk_conf_entry *e = s->section->first; e; e = e->next)
        if (!mk_conf_table_find(s->table, e->key, false))
            mk_conf_print_entry(e->key, e->value, out);
}

void mk_plugin_sections_print(const struct mk_config_generation *g, const struct mk_vhost_config *site,
                              struct mk_buf *out)
{
    for (const struct mk_plugin_section *s = sections_of_host(g, site)->first; s; s = s->next) {
        mk_buf_add(out, MK_STR("\n"));
        mk_conf_print_section(s->table, s->settings, out);
        if (s->table->entry && !s->table->show_entry)
            print_written_entries(s, out);
    }
}

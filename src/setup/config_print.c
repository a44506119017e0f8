/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the effective configuration as text that can be loaded again (monkey -T). */
#include "setup/config_print.h"

#include "conf/print.h"
#include "setup/keys.h"
#include "setup/plugin_sections.h"
#include "setup/plugins.h"
#include "setup/sandbox_rules.h"

enum { TEXT_MAX = 64 << 20 };

static void print_pairs_section(enum mk_builtin_section which, const struct mk_conf_pairs *pairs,
                                struct mk_buf *out)
{
    if (pairs->n == 0)
        return;
    mk_buf_add(out, MK_STR("\n"));
    mk_conf_print_section(mk_keys_tables[which], pairs, out);
}

static void print_host(const struct mk_config_generation *g, const struct mk_vhost_config *s,
                       struct mk_buf *out)
{
    struct mk_vhost_settings settings = s->settings;
    if (s->host.root.path && *s->host.root.path)
        settings.root = mk_str_from_c(s->host.root.path);
    mk_buf_add(out, MK_STR("\n"));
    mk_conf_print_section(mk_keys_tables[MK_SECTION_HOST], &settings, out);
    for (const struct mk_location_config *l = s->locations; l; l = l->next) {
        mk_buf_add(out, MK_STR("\n"));
        mk_conf_print_section(mk_keys_tables[MK_SECTION_LOCATION], &l->settings, out);
    }
    print_pairs_section(MK_SECTION_ROUTES, &s->routes, out);
    print_pairs_section(MK_SECTION_ERROR_PAGES, &s->error_pages, out);
    print_pairs_section(MK_SECTION_CACHE_CONTROL, &s->cache_control, out);
    print_pairs_section(MK_SECTION_HANDLERS, &s->handlers, out);
    mk_plugin_sections_print(g, s, out);
}

static void print_plugins_section(const struct mk_config_generation *g, struct mk_buf *out)
{
    if (g->plugins)
        mk_buf_add(out, MK_STR("\n[PLUGINS]\n"));
    for (const struct mk_loaded_plugin *l = g->plugins; l; l = l->next) {
        mk_conf_print_entry(MK_STR("Load"),
                            mk_str_from_c(*l->object.path && mk_str_find(l->entry->value, '/') != MK_STR_NONE
                                              ? l->object.path
                                              : l->object.plugin->name),
                            out);
        mk_sandbox_rules_print(g, l, "    # for it, workers may ", out);
    }
    mk_plugin_sections_print(g, NULL, out);
}

void mk_config_print_effective(const struct mk_config_generation *g, struct mk_buf *out)
{
    mk_conf_print_section(mk_keys_tables[MK_SECTION_SERVER], &g->server, out);
    print_plugins_section(g, out);
    print_pairs_section(MK_SECTION_MIMETYPES, &g->mime_types, out);
    for (const struct mk_vhost_config *s = g->sites; s; s = s->next)
        print_host(g, s, out);
}

static bool has_alias(const struct mk_conf_table *t, mk_str name, mk_str key)
{
    const struct mk_conf_key *k = mk_conf_table_find(t, name, true);
    return k && mk_str_eq_nocase(mk_str_from_c(k->name), key);
}

/* Asks all tables: the section is unknown, and few keys have aliases. */
static bool is_alias(const void *ctx, mk_str name, mk_str key)
{
    const struct mk_config_generation *g = ctx;
    bool found = false;
    for (size_t i = 0; i < MK_LEN(mk_keys_tables) && !found; i++)
        found = has_alias(mk_keys_tables[i], name, key);
    for (const struct mk_loaded_plugin *l = g->plugins; l; l = l->next) {
        const struct mk_conf_table *const *t = l->object.plugin->sections;
        for (; t && *t && !found; t++)
            found = has_alias(*t, name, key);
    }
    return found;
}

size_t mk_config_print_line_references(const struct mk_config_generation *g, mk_str text, struct mk_buf *out)
{
    return mk_conf_print_line_references(text, &g->tree.env_values,
                                         &(struct mk_conf_aliases){.is_alias = is_alias, .ctx = g}, out);
}

void mk_config_print_references(const struct mk_config_generation *g, struct mk_buf *out)
{
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    mk_config_print_effective(g, &text);
    for (mk_str rest = mk_buf_str(&text); rest.len;) {
        rest = mk_str_skip(rest, mk_config_print_line_references(g, rest, out));
        rest = mk_str_skip(rest, rest.len ? 1 : 0);
        mk_buf_add_char(out, '\n');
    }
    out->failed = out->failed || text.failed;
    mk_buf_free(&text);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/route_handlers.h"

#include "conf/other_keys.h"
#include "conf/suggest.h"
#include "setup/builtin_handlers.h"
#include "setup/conf_regex.h"
#include "setup/config.h"
#include "setup/plugins.h"
#include "web/status_handler.h"

bool mk_route_handlers_has(const struct mk_config_generation *g, mk_str name)
{
    const struct mk_plugin *plugin;
    return mk_builtin_handler_find(name) || mk_plugins_find_handler(g, name, &plugin);
}

static void report_unknown_handler(struct mk_config_generation *g, struct mk_conf_report *report,
                                   const struct mk_conf_entry *entry, mk_str name)
{
    struct mk_conf_suggest near = mk_conf_suggest_for(name);
    struct mk_conf_source_pos at = mk_conf_tree_value_pos(entry, name);
    for (size_t i = 0; mk_builtin_handler_at(i); i++)
        mk_conf_suggest_try(&near, mk_str_from_c(mk_builtin_handler_at(i)->handler->name));
    for (const struct mk_loaded_plugin *l = g->plugins; l; l = l->next)
        for (const struct mk_handler *const *h = l->object.plugin->handlers; h && *h; h++)
            mk_conf_suggest_try(&near, mk_str_from_c((*h)->name));
    mk_conf_report_error(
        report, &at, "there is no handler `%.*s`: expected static, redirect, status or a plugin's handler",
        MK_CONF_REPORT_ARG(name));
    const char *plugin = mk_plugins_suggest_for_handler(g, name);
    const char *equivalent = plugin || near.best.p ? NULL : mk_conf_other_keys_hint(name);
    if (plugin)
        mk_conf_report_hint(report, "the plugin `%s` has it: add `Load %s` to [PLUGINS]", plugin, plugin);
    else if (equivalent)
        mk_conf_report_hint(report, "%s", equivalent);
    else if (near.best.p || !mk_str_starts(entry->key, MK_STR("~")))
        mk_conf_report_suggest(report, near.best);
    else
        mk_conf_report_hint(report, MK_CONF_REGEX_BLANK);
}

static void report_handler_syntax(struct mk_conf_report *report, const struct mk_conf_entry *entry,
                                  mk_str words, const struct mk_handler *h, const char *example)
{
    struct mk_conf_source_pos at = mk_conf_tree_value_pos(entry, words);
    mk_conf_report_error(report, &at, "the handler `%s` expects %s", h->name,
                         h->syntax ? h->syntax : "nothing after it");
    if (example && report->open && !report->open->hint.p)
        mk_conf_report_hint(report, "write, for example, `%s`", example);
}

bool mk_route_handlers_bind(struct mk_config_generation *g, struct mk_vhost_config *site,
                            struct mk_conf_report *report, const struct mk_conf_entry *entry, mk_str words,
                            struct mk_route *route)
{
    mk_str rest = words, name = mk_str_word(&rest);
    const struct mk_builtin_handler *ours = mk_builtin_handler_find(name);
    const struct mk_handler *h = ours ? ours->handler : mk_plugins_find_handler(g, name, &route->plugin);
    route->written = words;
    route->handler = h;
    if (!h) {
        report_unknown_handler(g, report, entry, name);
        return false;
    }
    struct mk_config config = {.generation = g, .report = report, .site = site, .entry = entry};
    config.plugin = ours ? NULL : mk_plugin_list_find(g, route->plugin);
    struct mk_conf_ctx ctx = {
        .arena = &g->arena, .report = report, .entry = entry, .config = ours ? NULL : &config};
    bool (*bind)(const struct mk_conf_ctx *, mk_str, void **) = ours ? ours->bind : h->bind;
    size_t n_errors = report->n_errors;
    rest = mk_str_trim(rest);
    bool ok = bind ? bind(&ctx, rest, &route->data) : rest.len == 0;
    if (!ok && report->n_errors == n_errors && !mk_conf_report_out_of_memory(report))
        report_handler_syntax(report, entry, ours ? words : rest, h, ours ? ours->example : NULL);
    return ok;
}

bool mk_route_handlers_bind_status(struct mk_arena *arena, unsigned status, mk_str written,
                                   struct mk_route *route)
{
    struct mk_status_handler *data = mk_arena_zalloc(arena, 1, sizeof *data);
    if (!data)
        return false;
    data->status = status;
    route->handler = &mk_status_handler;
    route->data = data;
    route->written = written;
    return true;
}

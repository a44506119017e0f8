/* SPDX-License-Identifier: Apache-2.0 */
#include "server/handlers.h"

#include "conf/nearest.h"
#include "server/ours.h"
#include "server/plugins.h"
#include "web/redirect.h"

bool mk_handlers_has(const struct mk_generation *g, mk_str name)
{
    const struct mk_plugin *plugin;
    return mk_ours_find(name) || mk_plugins_handler(g, name, &plugin);
}

static void report_unknown(const struct mk_generation *g, struct mk_conf_report *report,
                           const struct mk_conf_entry *entry, mk_str name)
{
    char plugin[64];
    struct mk_conf_nearest near = mk_conf_nearest_to(name);
    struct mk_conf_place at = mk_conf_tree_place(entry, name);
    for (size_t i = 0; mk_ours_at(i); i++)
        mk_conf_nearest_try(&near, mk_str_from_c(mk_ours_at(i)->handler->name));
    for (const struct mk_loaded *l = g->plugins; l; l = l->next)
        for (const struct mk_handler *const *h = l->object.plugin->handlers; h && *h; h++)
            mk_conf_nearest_try(&near, mk_str_from_c((*h)->name));
    mk_conf_report_error(report, &at,
                         "there is no handler `%.*s`: expected static, redirect, status or one of a plugin",
                         MK_CONF_REPORT_ARG(name));
    if (mk_plugins_seek_handler(name, plugin))
        mk_conf_report_hint(report, "the plugin `%s` brings it: add `Load %s` to [PLUGINS]", plugin, plugin);
    else
        mk_conf_report_meant(report, near.best);
}

static void report_form(struct mk_conf_report *report, const struct mk_conf_entry *entry, mk_str words,
                        const struct mk_handler *h)
{
    struct mk_conf_place at = mk_conf_tree_place(entry, words);
    mk_conf_report_error(report, &at, "the handler `%s` expects %s", h->name,
                         h->form ? h->form : "nothing behind it");
}

/* One of a plugin: it reads its words itself. */
static bool bind_of_plugin(struct mk_generation *g, struct mk_conf_report *report,
                           const struct mk_conf_entry *entry, mk_str words, struct mk_route *route)
{
    const struct mk_handler *h = route->handler;
    struct mk_conf_spot spot = {.arena = &g->arena, .report = report, .entry = entry};
    size_t n_errors = report->n_errors;
    bool ok = h->bind ? h->bind(&spot, words, &route->data) : words.len == 0;
    if (!ok && report->n_errors == n_errors && !report->no_memory)
        report_form(report, entry, words, h);
    return ok;
}

bool mk_handlers_bind(struct mk_generation *g, struct mk_conf_report *report,
                      const struct mk_conf_entry *entry, mk_str words, struct mk_route *route)
{
    mk_str rest = words, name = mk_str_word(&rest);
    const struct mk_ours *ours = mk_ours_find(name);
    route->written = words;
    if (!ours) {
        route->handler = mk_plugins_handler(g, name, &route->plugin);
        if (route->handler)
            return bind_of_plugin(g, report, entry, mk_str_trim(rest), route);
        report_unknown(g, report, entry, name);
        return false;
    }
    route->handler = ours->handler;
    if (ours->bind(&g->arena, mk_str_trim(rest), &route->data))
        return true;
    if (route->handler->form && !route->data)
        report->no_memory = true;
    else
        report_form(report, entry, words, route->handler);
    return false;
}

bool mk_handlers_bind_status(struct mk_arena *arena, unsigned status, mk_str written, struct mk_route *route)
{
    unsigned *data = mk_arena_alloc(arena, sizeof *data);
    if (!data)
        return false;
    *data = status;
    route->handler = &mk_refusal;
    route->data = data;
    route->written = written;
    return true;
}

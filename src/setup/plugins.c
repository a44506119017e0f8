/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/plugins.h"

#include <sys/epoll.h>

#include "base/clock.h"
#include "connection/conn_manager_type.h"
#include "setup/config.h"
#include "web/redirect.h"
#include "web/status_handler.h"

/* ---- Loaded plugins ---- */

const struct mk_loaded_plugin *mk_plugins_at(const struct mk_config_generation *g, size_t i)
{
    return i < g->n_plugins ? g->plugins_by_order[i] : NULL;
}

size_t mk_plugins_index_of(const struct mk_config_generation *g, const struct mk_plugin *plugin)
{
    size_t i = plugin ? 0 : g->n_plugins;
    while (i < g->n_plugins && !mk_hook_is_of_plugin(g->plugins_by_order[i]->object.plugin, plugin))
        i++;
    return i;
}

/* Unloads in reverse order: a plugin may call functions of plugins loaded before it. */
static void unload_in_reverse(struct mk_loaded_plugin *l)
{
    if (!l)
        return;
    unload_in_reverse(l->next);
    if (l->started && l->object.plugin->unload)
        l->object.plugin->unload(l->data);
    l->started = false;
}

void mk_plugins_unload(struct mk_config_generation *g)
{
    unload_in_reverse(g->plugins);
}

size_t mk_plugins_detach_objects(struct mk_config_generation *g,
                                 struct mk_plugin_object objects[MK_PLUGINS_MAX])
{
    size_t n = 0;
    for (struct mk_loaded_plugin *l = g->plugins; l; l = l->next)
        objects[n++] = l->object;
    g->plugins = NULL;
    g->n_plugins = 0;
    return n;
}

/* ---- Plugin features ---- */

const struct mk_conf_table *mk_plugins_find_section_table(const struct mk_config_generation *g,
                                                          mk_str section)
{
    for (const struct mk_loaded_plugin *l = g->plugins; l; l = l->next)
        for (const struct mk_conf_table *const *t = l->object.plugin->sections; t && *t; t++)
            if (mk_str_eq_nocase(mk_str_from_c((*t)->section), section))
                return *t;
    return NULL;
}

static const struct mk_handler *find_handler_in(const struct mk_plugin *p, mk_str name)
{
    for (const struct mk_handler *const *h = p->handlers; h && *h; h++)
        if (mk_str_eq_nocase(mk_str_from_c((*h)->name), name))
            return *h;
    return NULL;
}

const struct mk_handler *mk_plugins_find_handler(const struct mk_config_generation *g, mk_str name,
                                                 const struct mk_plugin **plugin)
{
    const struct mk_handler *found = NULL;
    for (const struct mk_loaded_plugin *l = g->plugins; l && !found; l = l->next) {
        *plugin = l->object.plugin;
        found = find_handler_in(l->object.plugin, name);
    }
    return found;
}

/* ---- Features of available plugins ---- */

enum feature_kind { BRINGS_SUCCESSOR, BRINGS_SECTION, BRINGS_HANDLER };

struct mk_available_feature {
    struct mk_available_feature *next;
    enum feature_kind what;
    mk_str name;
    const char *plugin;
};

struct feature_list {
    struct mk_config_generation *g;
    struct mk_available_feature **end;
};

/* Copies the names, because the object is closed afterwards. */
static void append_feature(struct feature_list *l, enum feature_kind what, const char *name,
                           const struct mk_plugin *plugin)
{
    struct mk_available_feature *a = mk_arena_zalloc(&l->g->arena, 1, sizeof *a);
    if (!a)
        return;
    a->what = what;
    a->name = mk_arena_copy(&l->g->arena, mk_str_from_c(name));
    a->plugin = mk_arena_copy(&l->g->arena, mk_str_from_c(plugin->name)).p;
    *l->end = a;
    l->end = &a->next;
}

static bool list_plugin_features(const struct mk_plugin_object *o, void *feature_list)
{
    const struct mk_plugin *p = o->plugin;
    if (p->replaces)
        append_feature(feature_list, BRINGS_SUCCESSOR, p->replaces, p);
    for (const struct mk_conf_table *const *t = p->sections; t && *t; t++)
        append_feature(feature_list, BRINGS_SECTION, (*t)->section, p);
    for (const struct mk_handler *const *h = p->handlers; h && *h; h++)
        append_feature(feature_list, BRINGS_HANDLER, (*h)->name, p);
    return true;
}

/* Returns the name of a plugin that provides the feature, or NULL. The first call opens all plugins, each in
 * a child process first, and lists their features for later calls. */
static const char *find_available_feature(struct mk_config_generation *g, enum feature_kind what, mk_str name)
{
    if (!g->has_listed_available)
        mk_plugin_object_for_each(list_plugin_features, &(struct feature_list){.g = g, .end = &g->available});
    g->has_listed_available = true;
    const struct mk_available_feature *a = g->available;
    while (a && (a->what != what || !mk_str_eq_nocase(a->name, name)))
        a = a->next;
    return a ? a->plugin : NULL;
}

const char *mk_plugins_suggest_successor(struct mk_config_generation *g, mk_str old)
{
    return find_available_feature(g, BRINGS_SUCCESSOR, old);
}

const char *mk_plugins_suggest_for_section(struct mk_config_generation *g, mk_str section)
{
    return find_available_feature(g, BRINGS_SECTION, section);
}

const char *mk_plugins_suggest_for_handler(struct mk_config_generation *g, mk_str handler)
{
    return find_available_feature(g, BRINGS_HANDLER, handler);
}

/* ---- Starting ---- */

/* Reports the failure of a plugin that has not reported an error itself. */
static void report_hook_failure(struct mk_config *c, const char *what, size_t n_errors, int e)
{
    if (e && c->report->n_errors == n_errors && !mk_conf_report_out_of_memory(c->report))
        mk_config_error(c, NULL, NULL, "the plugin `%s` cannot %s: %s", c->plugin->object.plugin->name, what,
                        mk_err_text(e));
}

void mk_plugins_call_load(struct mk_config_generation *g, struct mk_conf_report *report)
{
    for (struct mk_loaded_plugin *l = g->plugins; l && !g->arena.failed; l = l->next) {
        struct mk_config c = {.generation = g, .report = report, .plugin = l};
        size_t n_errors = report->n_errors;
        int e = l->object.plugin->load ? l->object.plugin->load(&c, &l->data) : 0;
        l->started = e == 0;
        report_hook_failure(&c, "be loaded", n_errors, e);
    }
}

/* Calls the host() function of the plugin, if any, for a host. Returns the plugin's data for this host, or
 * NULL. */
static void *configure_plugin_for_host(struct mk_config_generation *g, struct mk_loaded_plugin *l,
                                       struct mk_vhost_config *site, struct mk_conf_report *report)
{
    const struct mk_plugin *p = l->object.plugin;
    struct mk_config c = {.generation = g, .report = report, .plugin = l, .site = site};
    size_t n_errors = report->n_errors;
    void *data = NULL;
    if (p->host)
        report_hook_failure(&c, "serve this host", n_errors, p->host(&c, &site->host, l->data, &data));
    return data;
}

static void configure_host(struct mk_config_generation *g, struct mk_vhost_config *site,
                           struct mk_conf_report *report)
{
    struct mk_hook *hooks = mk_arena_zalloc(&g->arena, g->n_plugins + 1, sizeof *hooks);
    size_t n = 0;
    for (size_t i = 0; hooks && i < g->n_plugins; i++) {
        struct mk_loaded_plugin *l = g->plugins_by_order[i];
        if (!l->started)
            continue; /* an error was reported: this configuration will not be used */
        void *data = configure_plugin_for_host(g, l, site, report);
        if (data || !l->object.plugin->host)
            hooks[n++] = (struct mk_hook){.plugin = l->object.plugin, .data = data ? data : l->data};
    }
    site->host.plugins = hooks;
    site->host.n_plugins = n;
    (void)!(hooks && mk_hooks_init(&site->host.hooks, &g->arena, hooks, n));
}

static void collect_accept_hooks(struct mk_config_generation *g)
{
    g->accept_hooks = mk_arena_zalloc(&g->arena, g->n_plugins + 1, sizeof *g->accept_hooks);
    for (size_t i = 0; g->accept_hooks && i < g->n_plugins; i++) {
        const struct mk_loaded_plugin *l = g->plugins_by_order[i];
        if (l->object.plugin->on_accept)
            g->accept_hooks[g->n_accept_hooks++] = (struct mk_accept_hook){
                .name = l->object.plugin->name, .on_accept = l->object.plugin->on_accept, .data = l->data};
    }
}

/* ---- Routes of plugins that no request reaches ---- */

/* Does the route handle every request for its paths, so that later routes get none of them? */
static bool route_is_final(const struct mk_route *r)
{
    bool forwards = (r->handler->traits & (MK_HANDLER_FORWARDS | MK_HANDLER_FILES)) == MK_HANDLER_FORWARDS;
    return !r->when && !r->regex &&
           (forwards || r->handler == &mk_redirect || r->handler == &mk_status_handler);
}

/* Returns the earlier route that gets the requests for this one; NULL: there is none. */
static const struct mk_route *find_earlier_route(const struct mk_vhost *h, const struct mk_route *route)
{
    for (const struct mk_route *r = h->routes; r < route; r++)
        if (route_is_final(r) && mk_pattern_matches(&r->pattern, route->pattern.text))
            return r;
    return NULL;
}

/* Has a plugin added the route, for one path? */
static bool is_page_of_plugin(const struct mk_route *r)
{
    return r->plugin && r->written.p == r->handler->name && r->pattern.kind == MK_PATTERN_EXACT;
}

/* A section for all hosts adds its pages to each of them. One host on which a page is reached is enough. */
static bool is_page_reached(const struct mk_config_generation *g, const struct mk_route *page)
{
    for (const struct mk_vhost_config *s = g->sites; s; s = s->next)
        for (size_t i = 0; i < s->host.n_routes; i++) {
            const struct mk_route *r = &s->host.routes[i];
            if (r->handler == page->handler && r->data == page->data &&
                mk_str_eq(r->pattern.text, page->pattern.text) && !find_earlier_route(&s->host, r))
                return true;
        }
    return false;
}

static const struct mk_conf_source_pos *find_route_pos(const struct mk_vhost_config *s,
                                                       const struct mk_route *route)
{
    for (size_t i = 0; i < s->routes.n; i++)
        if (mk_str_eq(s->routes.at[i].key, route->pattern.text))
            return &s->routes.at[i].entry->at;
    return &s->section->at;
}

static void warn_of_unreached_pages(const struct mk_config_generation *g, struct mk_conf_report *report)
{
    for (const struct mk_vhost_config *s = g->sites; s; s = s->next)
        for (size_t i = 0; i < s->host.n_routes; i++) {
            const struct mk_route *page = &s->host.routes[i], *first;
            if (!is_page_of_plugin(page) || !(first = find_earlier_route(&s->host, page)) ||
                is_page_reached(g, page))
                continue;
            mk_conf_report_warn(report, find_route_pos(s, first),
                                "the page `%.*s` of the plugin `%s` is never reached: this route handles it",
                                MK_CONF_REPORT_ARG(page->pattern.text), page->plugin->name);
            mk_conf_report_hint(report, "add a route above it: `%.*s %s ...`",
                                MK_CONF_REPORT_ARG(page->pattern.text), page->handler->name);
        }
}

void mk_plugins_configure_hosts(struct mk_config_generation *g, struct mk_conf_report *report)
{
    collect_accept_hooks(g);
    for (struct mk_vhost_config *s = g->sites; s && !g->arena.failed; s = s->next)
        configure_host(g, s, report);
    if (!g->arena.failed)
        warn_of_unreached_pages(g, report);
}

bool mk_plugins_start_in_master(struct mk_config_generation *g, struct mk_conf_report *report)
{
    size_t n_errors = report->n_errors;
    mk_conf_report_watch_arena(report, &g->arena);
    for (struct mk_loaded_plugin *l = g->plugins;
         l && report->n_errors == n_errors && !mk_conf_report_out_of_memory(report); l = l->next) {
        struct mk_config c = {.generation = g, .report = report, .plugin = l};
        const struct mk_plugin *p = l->object.plugin;
        report_hook_failure(&c, "start", n_errors, p->master_start ? p->master_start(&c, l->data) : 0);
    }
    mk_conf_report_watch_arena(report, NULL);
    return report->n_errors == n_errors && !report->no_memory;
}

/* ---- Waiting until plugins are ready ---- */

/* Returns 0, -EAGAIN, or an error after reporting it. */
static mk_err check_plugin_ready(struct mk_config_generation *g, const struct mk_readiness_check *a,
                                 struct mk_conf_report *report)
{
    struct mk_config c = {.generation = g, .report = report, .plugin = a->by};
    size_t n_errors = report->n_errors;
    bool is_late = mk_clock_ms() >= a->end_ms;
    int e = a->ready(&c, a->data);
    if (e == -EAGAIN && !is_late)
        return e;
    (void)epoll_ctl(g->ready_fd, EPOLL_CTL_DEL, a->fd, NULL);
    e = e == -EAGAIN ? -ETIMEDOUT : e;
    report_hook_failure(&c, "start", n_errors, e);
    return e;
}

mk_err mk_plugins_check_ready(struct mk_config_generation *g, struct mk_conf_report *report)
{
    mk_err e = 0;
    for (struct mk_readiness_check **at = &g->awaits; *at && (!e || e == -EAGAIN);) {
        mk_err one = check_plugin_ready(g, *at, report);
        if (one != -EAGAIN)
            *at = (*at)->next;
        else
            at = &(*at)->next;
        e = one ? one : e;
    }
    return e;
}

/* The timer wheel of the master spans 24 days. */
enum { READY_TIMER_MS_MAX = 20 * 24 * 3600 * 1000 };

uint32_t mk_plugins_ready_timeout_ms(const struct mk_config_generation *g)
{
    uint64_t now = mk_clock_ms(), end = now + READY_TIMER_MS_MAX;
    for (const struct mk_readiness_check *a = g->awaits; a; a = a->next)
        end = a->end_ms < end ? a->end_ms : end;
    return end > now ? (uint32_t)(end - now) : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/config.h"

#include "conf/table.h"
#include "os/network_set.h"
#include <monkey/attempt.h>

#include <monkey/sized.h>
#include <monkey/spool.h>
#include <monkey/trace.h>
#include <sys/epoll.h>

#include "base/assert.h"
#include "base/clock.h"
#include "conf/bind.h"
#include "conf/path.h"
#include "conf/suggest.h"
#include "setup/plugin_sections.h"
#include "setup/server_secret.h"
#include "web/static.h"
#include "web/trace.h"

void *mk_config_section(struct mk_config *c, const struct mk_conf_table *table, const void *after)
{
    const struct mk_config_generation *g = c->generation;
    bool has_own = c->site && mk_plugin_sections_find(g, table, c->site, NULL);
    const struct mk_plugin_section *last = mk_plugin_sections_of_settings(g, after);
    if (after && !last)
        return NULL;
    const struct mk_plugin_section *s = mk_plugin_sections_find(g, table, has_own ? c->site : NULL, last);
    return s ? s->settings : NULL;
}

void *mk_config_defaults(struct mk_config *c, const struct mk_conf_table *table)
{
    void *settings = mk_config_alloc(c, table->size);
    if (settings)
        (void)!mk_conf_bind(table, NULL, settings, &c->generation->arena, c->report);
    return settings;
}

void *mk_config_settings(struct mk_config *c, const struct mk_conf_table *table)
{
    void *settings = mk_config_section(c, table, NULL);
    return settings ? settings : mk_config_defaults(c, table);
}

void *mk_config_alloc(struct mk_config *c, size_t size)
{
    return mk_arena_zalloc(&c->generation->arena, 1, size);
}

struct mk_network_set *mk_config_network_set(struct mk_config *c, const struct mk_network *v,
                                             const uint32_t *numbers, size_t n)
{
    void *memory = mk_config_alloc(c, mk_network_set_size(n));
    return memory ? mk_network_set_build(memory, v, numbers, n) : NULL;
}

mk_str mk_config_copy(struct mk_config *c, mk_str text)
{
    return mk_arena_copy(&c->generation->arena, text);
}

bool mk_config_add_cleanup(struct mk_config *c, void (*fn)(void *data), void *data)
{
    return mk_arena_add_cleanup(&c->generation->arena, fn, data);
}

static struct mk_conf_source_pos setting_pos(const struct mk_config *c, const void *settings, const char *key)
{
    const struct mk_plugin_section *s = mk_plugin_sections_of_settings(c->generation, settings);
    if (!s)
        return c->plugin->entry->at;
    const struct mk_conf_entry *e =
        key ? mk_conf_table_entry(s->table, s->section, mk_str_from_c(key)) : NULL;
    return e ? mk_conf_tree_value_pos(e, e->value) : s->section->at;
}

static bool entry_contains(const struct mk_conf_entry *e, mk_str part)
{
    uintptr_t p = (uintptr_t)part.p, value = (uintptr_t)e->value.p;
    return p >= value && p - value < e->value.len;
}

static struct mk_conf_source_pos setting_part_pos(const struct mk_config *c, const void *settings,
                                                  const char *key, mk_str part)
{
    const struct mk_plugin_section *s = mk_plugin_sections_of_settings(c->generation, settings);
    const struct mk_conf_section *in = s ? s->section : c->site ? c->site->section : NULL;
    for (const struct mk_conf_entry *e = in ? in->first : NULL; e; e = e->next)
        if (entry_contains(e, part))
            return mk_conf_tree_value_pos(e, part);
    return setting_pos(c, settings, key);
}

static MK_PRINTF(6, 0) void report(struct mk_config *c, enum mk_conf_severity severity, const void *section,
                                   const char *key, mk_str part, const char *fmt, va_list args)
{
    struct mk_conf_source_pos at = setting_part_pos(c, section, key, part);
    mk_conf_report_addv(c->report, severity, &at, fmt, args);
}

void mk_config_error(struct mk_config *c, const void *section, const char *key, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    report(c, MK_CONF_ERROR, section, key, MK_STR_NULL, fmt, args);
    va_end(args);
}

void mk_config_warn(struct mk_config *c, const void *section, const char *key, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    report(c, MK_CONF_WARNING, section, key, MK_STR_NULL, fmt, args);
    va_end(args);
}

void mk_config_report(struct mk_config *c, enum mk_log_level level, const void *section, const char *key,
                      mk_str part, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    report(c, level == MK_LOG_ERROR ? MK_CONF_ERROR : MK_CONF_WARNING, section, key, part, fmt, args);
    va_end(args);
}

/* If another plugin with that name is loaded, the file was replaced: the caller is linked with the old
 * file. */
void *mk_config_data(const struct mk_config *c, const struct mk_plugin *plugin)
{
    const struct mk_loaded_plugin *l = mk_plugin_list_find(c->generation, plugin);
    if (l)
        return l->started ? l->data : NULL;
    struct mk_conf_source_pos at = setting_pos(c, NULL, NULL);
    if (mk_plugin_list_find_name(c->generation, plugin->name))
        mk_conf_report_error(c->report, &at,
                             "the file of `%s` was replaced while `%s` uses it: restart the server",
                             plugin->name, c->plugin->object.plugin->name);
    return NULL;
}

void mk_config_hint(struct mk_config *c, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    mk_conf_report_hintv(c->report, fmt, args);
    va_end(args);
}

void mk_config_suggest(struct mk_config *c, mk_str word, const mk_str *words, size_t n)
{
    struct mk_conf_suggest near = mk_conf_suggest_for(word);
    for (size_t i = 0; i < n; i++)
        mk_conf_suggest_try(&near, words[i]);
    mk_conf_report_suggest(c->report, near.best);
}

mk_str mk_config_path(struct mk_config *c, const void *section, mk_str path)
{
    mk_str file = setting_pos(c, section, NULL).file;
    return mk_conf_path_resolve(&c->generation->arena, file, path);
}

/* Inserts an empty route at the index `at` of the host's routes. */
static struct mk_route *insert_route_at(struct mk_config *c, size_t at)
{
    struct mk_vhost *h = &c->site->host;
    struct mk_route *more = mk_config_alloc(c, (h->n_routes + 1) * sizeof *more);
    if (!more)
        return NULL;
    if (at)
        memcpy(more, h->routes, at * sizeof *more);
    if (at < h->n_routes)
        memcpy(more + at + 1, h->routes + at, (h->n_routes - at) * sizeof *more);
    h->routes = more;
    h->n_routes++;
    return &more[at];
}

static void add_plugin_route(struct mk_config *c, size_t at, mk_str pattern, const struct mk_handler *handler,
                             void *data)
{
    struct mk_pattern match;
    if (!mk_pattern_set(&match, pattern)) {
        mk_config_error(
            c, NULL, NULL,
            "the plugin `%s` adds a route for `%.*s`, which is not a pattern: it must begin with / or *",
            c->plugin->object.plugin->name, MK_CONF_REPORT_ARG(pattern));
        return;
    }
    struct mk_route *route = insert_route_at(c, at);
    if (route)
        *route = (struct mk_route){.pattern = match,
                                   .handler = handler,
                                   .data = data,
                                   .plugin = c->plugin->object.plugin,
                                   .written = mk_str_from_c(handler->name)};
}

/* Returns the index for a new route: the end of the list. Without [ROUTES], a route for particular paths goes
 * before the default route, which serves files for all other requests. */
static size_t plugin_route_index(const struct mk_vhost_config *s, mk_str pattern)
{
    struct mk_route route = {0};
    size_t i = s->host.n_routes;
    bool is_particular = mk_pattern_set(&route.pattern, pattern) && !mk_route_is_catch_all(&route);
    if (s->routes.n || !is_particular)
        return i;
    for (i = 0; i < s->host.n_routes; i++)
        if (s->host.routes[i].handler == &mk_static && mk_route_is_catch_all(&s->host.routes[i]))
            break;
    return i;
}

void mk_config_add_route(struct mk_config *c, mk_str pattern, const struct mk_handler *handler, void *data)
{
    MK_ASSERT(c->site);
    add_plugin_route(c, plugin_route_index(c->site, pattern), pattern, handler, data);
}

void mk_config_prepend_route(struct mk_config *c, mk_str pattern, const struct mk_handler *handler,
                             void *data)
{
    MK_ASSERT(c->site);
    add_plugin_route(c, c->site->settings.redirect.len > 0, pattern, handler, data);
}

void *mk_config_shared(struct mk_config *c, const char *name, size_t size)
{
    mk_str n = mk_str_from_c(name);
    void *p =
        n.len <= MK_SHARED_STATE_NAME_MAX ? mk_shared_state_get_memory(c->generation->shared, n, size) : NULL;
    if (n.len > MK_SHARED_STATE_NAME_MAX)
        mk_config_error(c, NULL, NULL, "the name of shared memory `%s` is longer than %d bytes", name,
                        MK_SHARED_STATE_NAME_MAX);
    else if (!p)
        mk_config_error(c, NULL, NULL, "cannot allocate %zu bytes of shared memory `%s`", size, name);
    return p;
}

struct mk_stat_registry *mk_config_statistics(struct mk_config *c)
{
    struct mk_stat_registry *r = mk_shared_state_get_statistics(c->generation->shared);
    if (!r)
        mk_config_error(c, NULL, NULL, "cannot allocate shared memory for statistics");
    return r;
}

int mk_config_add_statistics_sized(struct mk_config *c, const struct mk_stat_source *source,
                                   size_t source_size)
{
    struct mk_stat_source_entry *entry = mk_config_alloc(c, sizeof *entry), **end;
    struct mk_stat_source full;
    if (!entry)
        return -ENOMEM;
    source = mk_sized_in(&full, sizeof full, source, source_size);
    entry->source = *source;
    for (end = &c->generation->stat_sources; *end; end = &(*end)->next)
        ;
    *end = entry;
    return 0;
}

int mk_config_shared_fd(struct mk_config *c, const char *name, int (*make)(void))
{
    int fd = mk_shared_state_fd(c->generation->shared, mk_str_from_c(name), make);
    if (fd < 0)
        mk_config_error(c, NULL, NULL, "cannot open the shared descriptor `%s`: %s", name, mk_err_text(fd));
    return fd;
}

int mk_config_hash_key(struct mk_config *c, const char *purpose, struct mk_hash_key *out)
{
    if (mk_server_secret_derive_key(c->generation->shared, mk_str_from_c(purpose), out))
        return 0;
    mk_config_error(c, NULL, NULL, "cannot allocate shared memory for a secret");
    return -ENOMEM;
}

struct mk_logfile *mk_config_log(struct mk_config *c, const void *section, const char *key, mk_str where,
                                 uint64_t max_size, unsigned keep)
{
    mk_str path =
        mk_logfile_is_special_name(where) ? mk_config_copy(c, where) : mk_config_path(c, section, where);
    if (!path.p)
        return NULL;
    struct mk_conf_source_pos at = setting_pos(c, section, key);
    struct mk_logfile *file =
        mk_logset_open_or_report(&c->generation->logs, path, max_size, keep, &at, c->report);
    if (file)
        file->is_json = c->generation->server.error_log_format == MK_ERROR_LOG_JSON;
    return file;
}

void mk_config_replace_access_log(struct mk_config *c)
{
    MK_ASSERT(c->site);
    c->site->host.has_own_access_log = true;
}

void mk_config_record_attempts(struct mk_config *c)
{
    MK_ASSERT(c->site);
    c->site->host.records |= MK_VHOST_RECORDS_ATTEMPTS;
}

void mk_config_start_traces(struct mk_config *c, unsigned sampled_per_million)
{
    MK_ASSERT(c->site);
    c->site->host.tracing = &mk_trace_of_vhost;
    c->site->host.sampled_per_million = sampled_per_million;
}

void mk_config_record_traces(struct mk_config *c)
{
    MK_ASSERT(c->site);
    c->site->host.records |= MK_VHOST_RECORDS_TRACES;
    c->generation->records_traces = true;
}

void mk_config_enable_body_spool(struct mk_config *c)
{
    c->generation->wants_spool = true;
    if (c->site)
        c->site->spools = true;
}

mk_str mk_config_spool_folder(const struct mk_config *c)
{
    return c->generation->server.spool_folder;
}

uint64_t mk_config_spool_max(const struct mk_config *c)
{
    return c->generation->server.spool_max;
}

bool mk_config_user(const struct mk_config *c, uid_t *uid, gid_t *gid)
{
    const struct mk_config_generation *g = c->generation;
    if (!g->has_identity)
        return false;
    *uid = g->identity.uid;
    *gid = g->identity.gid;
    return true;
}

mk_str mk_config_error_log(const struct mk_config *c)
{
    return c->generation->server.error_log;
}

bool mk_config_error_log_has_priorities(const struct mk_config *c)
{
    return c->generation->error_log && c->generation->error_log->has_priorities;
}

bool mk_config_error_log_is_json(const struct mk_config *c)
{
    return c->generation->server.error_log_format == MK_ERROR_LOG_JSON;
}

bool mk_config_was_validated(const struct mk_config *c)
{
    return c->generation->tried;
}

bool mk_config_is_repeated(const struct mk_config *c)
{
    return c->generation->is_repeated;
}

static mk_err add_readiness_check(struct mk_config_generation *g, struct mk_readiness_check *check)
{
    struct mk_readiness_check **end = &g->awaits;
    if (g->ready_fd < 0)
        g->ready_fd = epoll_create1(EPOLL_CLOEXEC);
    if (g->ready_fd < 0 ||
        epoll_ctl(g->ready_fd, EPOLL_CTL_ADD, check->fd, &(struct epoll_event){.events = EPOLLIN}) < 0)
        return mk_err_last();
    while (*end)
        end = &(*end)->next;
    *end = check;
    return 0;
}

int mk_config_wait_ready(struct mk_config *c, int fd, uint32_t timeout_ms,
                         int (*ready)(struct mk_config *c, void *data), void *data)
{
    struct mk_readiness_check *check = mk_config_alloc(c, sizeof *check);
    if (!check)
        return -ENOMEM;
    *check = (struct mk_readiness_check){
        .by = c->plugin, .fd = fd, .end_ms = mk_clock_ms() + timeout_ms, .ready = ready, .data = data};
    return add_readiness_check(c->generation, check);
}

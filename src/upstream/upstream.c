/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: section [UPSTREAM] and the worker state. */
#include <monkey/sized.h>

#include "upstream/discovery.h"
#include "upstream/failover.h"
#include "upstream/pool.h"
#include "upstream/saved_servers.h"
#include "upstream/server_control.h"
#include "upstream/upstream_lookup.h"

static bool is_upstream_name(mk_str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!mk_char_is_alpha(name.p[i]) && !mk_char_is_digit(name.p[i]) && name.p[i] != '-' &&
            name.p[i] != '_' && name.p[i] != '.')
            return false;
    return name.len && name.len < MK_UPSTREAM_NAME;
}

static bool is_check_method(mk_str method)
{
    return mk_str_eq(method, MK_STR("GET")) || mk_str_eq(method, MK_STR("HEAD")) ||
           mk_str_eq(method, MK_STR("OPTIONS")) || mk_str_eq(method, MK_STR("POST"));
}

/* The length of the head of a check, at most: with the names of the protocol, and with up to 8 bytes per field that
 * HTTP/1 or HTTP/2 add. */
static size_t check_head_len(const struct mk_upstream_settings *s)
{
    enum { AROUND = 256, PER_FIELD = 8 };
    size_t len = AROUND + s->check.len + (s->check_host.len ? s->check_host.len : MK_SERVER_NAME_MAX);
    for (const struct mk_health_header *h = s->check_headers; h; h = h->next)
        len += h->text.len + PER_FIELD;
    return len;
}

/* Validates a section even if no route uses it. */
static void check_section(struct mk_config *config, const struct mk_upstream_settings_index *index,
                          const struct mk_upstream_settings *s)
{
    mk_discovery_check_section(config, s);
    if (!s->servers && !s->servers_file.len)
        mk_config_error(config, s, NULL, "[UPSTREAM] has no Server");
    if (!s->name.len)
        mk_config_error(config, s, NULL, "[UPSTREAM] has no Name, so no route can use it");
    else if (!is_upstream_name(s->name))
        mk_config_error(config, s, "Name", "expected letters, digits, `-`, `_` and `.`, at most %d",
                        MK_UPSTREAM_NAME - 1);
    else if (mk_upstream_settings_find(index, s->name) != s)
        mk_config_error(config, s, "Name", "there are two upstreams `%.*s`", MK_STR_ARG(s->name));
    if (!is_check_method(s->check_method))
        mk_config_error(config, s, "HealthMethod", "expected `GET`, `HEAD`, `OPTIONS` or `POST`");
    if (check_head_len(s) > MK_HEALTH_HEAD_MAX)
        mk_config_error(config, s, "HealthHeader",
                        "the request of a check has at most %d bytes, with its headers", MK_HEALTH_HEAD_MAX);
    if (s->check_text.len && mk_str_eq(s->check_method, MK_STR("HEAD")))
        mk_config_error(config, s, "HealthText", "a response to HEAD has no content");
    if (s->check_text.len > MK_HEALTH_TEXT_MAX)
        mk_config_error(config, s, "HealthText", "expected at most %d bytes", MK_HEALTH_TEXT_MAX);
    for (const struct mk_upstream_server_line *line = s->servers; line && s->check_port; line = line->next)
        if (mk_str_starts(line->address, MK_STR("unix:")))
            mk_config_error(config, s, "HealthPort", "the server %.*s has no port",
                            MK_STR_ARG(line->address));
    if (s->check.len && s->check.p[0] != '/' && !mk_str_eq(s->check, MK_STR("connect")))
        mk_config_error(config, s, "HealthCheck", "expected a path that begins with `/`, or `connect`");
    else if (s->check_host.len && !mk_is_header_value(s->check_host))
        mk_config_error(config, s, "HealthHost", "expected a host, such as `app.example.org`");
    else if (!mk_is_header_value(s->check) || mk_str_find(s->check, ' ') != MK_STR_NONE || s->check.len > 512)
        mk_config_error(config, s, "HealthCheck", "expected a path without blanks, at most 512 bytes long");
}

static void clear_worker(void *ctx, unsigned row)
{
    struct mk_upstreams *all = ctx;
    mk_upstream_stats_clear_worker(&all->stats, row);
    mk_server_control_clear_worker(all->control, row);
}

static bool init_conn_limit(struct mk_upstreams *all, struct mk_config *config)
{
    all->limit.on_empty = clear_worker;
    all->limit.ctx = all;
    return mk_conn_limit_init(&all->limit, config) &&
           mk_config_hash_key(config, "upstream: clients", &all->client_key) == 0;
}

static int load_upstreams(struct mk_config *config, void **data)
{
    struct mk_upstreams *all = mk_config_alloc(config, sizeof *all);
    *data = all;
    if (!all || !mk_upstream_stats_init(&all->stats, config) || !init_conn_limit(all, config) ||
        !mk_upstream_settings_index_init(&all->index, config))
        return -ENOMEM;
    all->plugin = &MK_PLUGIN_OF(upstream);
    for (const struct mk_upstream_settings *s = NULL;
         (s = mk_config_section(config, &mk_upstream_settings_table, s));)
        check_section(config, &all->index, s);
    return 0;
}

/* Not inlined: each file that calls mk_upstream_find() would contain a copy. */
MK_NOINLINE struct mk_upstream *mk_upstream_find_sized(const struct mk_conf_ctx *conf, mk_str name,
                                                       const struct mk_upstream_defaults *defaults,
                                                       size_t defaults_size)
{
    struct mk_upstream_defaults full;
    defaults = mk_sized_in(&full, sizeof full, defaults, defaults_size);
    struct mk_upstreams *all = mk_config_data(mk_conf_ctx_config(conf), &MK_PLUGIN_OF(upstream));
    return mk_upstream_lookup_for_route(all, conf, name, defaults);
}

struct mk_upstream *mk_upstream_open_sized(struct mk_config *config, const void *section, const char *key,
                                           mk_str name, const struct mk_upstream_defaults *defaults,
                                           size_t defaults_size)
{
    struct mk_upstream_defaults full;
    defaults = mk_sized_in(&full, sizeof full, defaults, defaults_size);
    return mk_upstream_lookup_for_key(mk_config_data(config, &MK_PLUGIN_OF(upstream)), config, section, key,
                                      name, defaults);
}

struct mk_upstream *mk_upstream_open_dynamic_sized(struct mk_config *config, const void *section,
                                                   const char *key, mk_str name,
                                                   const struct mk_upstream_dynamic_options *options,
                                                   size_t options_size)
{
    struct mk_upstream_dynamic_options full;
    options = mk_sized_in(&full, sizeof full, options, options_size);
    return mk_upstream_lookup_open_dynamic(mk_config_data(config, &MK_PLUGIN_OF(upstream)), config, section,
                                           key, name, options);
}

static bool has_server_in_slot(const struct mk_upstreams *all, unsigned place)
{
    for (const struct mk_upstream *u = all->first; u; u = u->next)
        for (unsigned i = 0; i < u->n; i++)
            if (u->servers[i].stats_slot == place)
                return true;
    return false;
}

static void publish_server(struct mk_upstreams *all, struct mk_upstream_server *s)
{
    if (s->is_spare) {
        mk_server_control_publish_spare(all, s);
        return;
    }
    bool is_new = mk_upstream_stats_assign_slot(&all->stats, s->stats_slot, s->upstream->name, s->name);
    if (is_new)
        mk_conn_limit_reset_backend(&all->limit, s->stats_slot);
    mk_upstream_stats_set_server(&all->stats, s->stats_slot, s->backup, s->weight, s->upstream->max);
    if (is_new || !all->former.is_repeated || all->former.of[s->stats_slot].is_hidden)
        mk_upstream_stats_set_mode(&all->stats, s->stats_slot, s->mode, 0);
    else
        mk_upstream_stats_keep_mode(&all->stats, s->stats_slot);
    s->shared = mk_upstream_stats_shared(&all->stats, s->stats_slot);
}

static void publish_servers(struct mk_upstreams *all, bool are_spare)
{
    for (const struct mk_upstream *u = all->first; u; u = u->next)
        for (unsigned i = 0; i < u->n; i++)
            if (u->servers[i].is_spare == are_spare)
                publish_server(all, &u->servers[i]);
}

/* Publishes the servers of an accepted configuration, and hides removed servers. */
static int master_start(struct mk_config *config, void *data)
{
    struct mk_upstreams *all = data;
    if (!mk_conn_limit_open_fds(&all->limit, config))
        return -EMFILE;
    mk_upstream_stats_save(&all->stats, &all->former, mk_config_is_repeated(config));
    mk_saved_servers_publish(all);
    publish_servers(all, true);
    publish_servers(all, false);
    for (unsigned i = 0; i < all->stats.memory->n; i++)
        if (!has_server_in_slot(all, i))
            mk_upstream_stats_hide_slot(&all->stats, i);
    mk_discovery_publish(all, config);
    return 0;
}

static void unload_upstreams(void *data)
{
    struct mk_upstreams *all = data;
    mk_upstream_stats_restore(&all->stats, &all->former);
}

static int worker_start(struct mk_worker *w, void *data)
{
    struct mk_pool *pool;
    int e = mk_pool_start(&pool, w, data);
    if (!e)
        mk_worker_set_data(w, &MK_PLUGIN_OF(upstream), pool);
    return e;
}

static void worker_stop(struct mk_worker *w, void *data)
{
    (void)data;
    mk_pool_stop(mk_worker_data(w, &MK_PLUGIN_OF(upstream)));
}

static void worker_drain(struct mk_worker *w, void *data)
{
    (void)data;
    mk_pool_drain(mk_worker_data(w, &MK_PLUGIN_OF(upstream)));
}

static void on_worker_message(struct mk_worker *w, mk_str message, void *data)
{
    struct mk_pool *p = mk_worker_data(w, &MK_PLUGIN_OF(upstream));
    (void)data;
    if (!mk_server_control_on_message(p, message))
        mk_failover_on_message(p, message);
}

static int on_command(struct mk_worker *w, mk_str words, struct mk_buf *out, const struct mk_command_end *end,
                      void *data)
{
    (void)data;
    return mk_server_control_run(mk_worker_data(w, &MK_PLUGIN_OF(upstream)), words, out, end);
}

static void on_release_memory(struct mk_worker *w, unsigned what, void *data)
{
    (void)data;
    mk_pool_release_memory(mk_worker_data(w, &MK_PLUGIN_OF(upstream)), what & MK_RELEASE_IDLE);
}

static void on_worker_exit(struct mk_worker *w, void *data)
{
    const struct mk_pool *p = mk_worker_data(w, &MK_PLUGIN_OF(upstream));
    (void)data;
    mk_conn_limit_free_dead_rows(&p->limit, p->row);
}

static const struct mk_conf_table *const sections[] = {&mk_upstream_settings_table, NULL};

MK_PLUGIN(upstream) = {
    MK_PLUGIN_HEAD,
    .name = "upstream",
    .version = MK_VERSION,
    .help = "Backend servers of proxy, fastcgi, scgi and uwsgi: load balancing, health checks, connection "
            "pools, limits.",
    .priority = MK_PRIORITY_ADDRESS,
    .sections = sections,
    .load = load_upstreams,
    .unload = unload_upstreams,
    .master_start = master_start,
    .worker_start = worker_start,
    .worker_stop = worker_stop,
    .worker_drain = worker_drain,
    .on_message = on_worker_message,
    .on_worker_exit = on_worker_exit,
    .on_command = on_command,
    .on_release_memory = on_release_memory,
};

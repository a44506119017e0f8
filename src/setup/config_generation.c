/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/config_generation.h"

#include <unistd.h>

#include "base/mem.h"
#include "conf/path.h"
#include "conf/table.h"
#include "http/header.h"
#include "os/fd.h"
#include "os/identity.h"
#include "os/proc.h"
#include "os/spool.h"
#include "setup/certificates.h"
#include "setup/config_loader.h"
#include "setup/config_reader.h"
#include "setup/embedding.h"
#include "setup/fd_limit_check.h"
#include "setup/http2_enable.h"
#include "setup/https_rules.h"
#include "setup/keys.h"
#include "setup/listen_addresses.h"
#include "setup/location.h"
#include "setup/plugin_load.h"
#include "setup/plugins.h"
#include "setup/sandbox_rules.h"
#include "setup/spool_check.h"
#include "setup/vhost_config.h"
#include "setup/worker_channels.h"

/* ---- Without a reader ---- */

static void load_plain_tree(struct mk_config_loader *l)
{
    struct mk_config_generation *g = l->g;
    g->folder = MK_STR("");
    (void)!l->origin->fill_tree(&g->tree, &g->arena, l->origin->ctx); /* the arena records a failure */
    mk_plugin_load_of_library(g, l->report);
    (void)mk_config_loader_bind_server(l);
    for (const struct mk_conf_section *s = g->tree.first; s; s = s->next)
        if (!s->table)
            (void)!mk_config_loader_add_host(l, s);
}

/* ---- Overrides and checks ---- */

static void apply_overrides(struct mk_config_loader *l)
{
    const struct mk_config_overrides *o = &l->origin->overrides;
    mk_listen_addresses_collect(l->g, o, l->report);
    if (o->workers)
        l->g->server.workers = o->workers;
    if (!l->g->server.workers)
        l->g->server.workers = mk_proc_cpus();
    if (o->pid_file)
        l->g->server.pid_file = mk_str_from_c(o->pid_file);
    else if (l->g->server.pid_file.len)
        l->g->server.pid_file = mk_conf_path_resolve_in(&l->g->arena, l->g->folder, l->g->server.pid_file);
}

/* ---- Building ---- */

static struct mk_conf_source_pos server_key_pos(const struct mk_config_loader *l, const char *key)
{
    const struct mk_conf_section *s = mk_conf_tree_find(&l->g->tree, MK_STR("SERVER"));
    const struct mk_conf_entry *e = mk_conf_table_find_entry(s, mk_str_from_c(key));
    if (e)
        return mk_conf_tree_value_pos(e, e->value);
    return s ? s->at : (struct mk_conf_source_pos){.file = MK_STR("command line")};
}

static void build_mime_types(struct mk_config_loader *l)
{
    struct mk_config_generation *g = l->g;
    struct mk_conf_source_pos at = server_key_pos(l, "DefaultMimeType");
    if (!mk_mime_is_type(g->server.default_type))
        mk_conf_report_error(l->report, &at, "`%.*s` is not a media type",
                             MK_STR_ARG(g->server.default_type));
    mk_mime_init(&g->mime, &g->arena, g->server.default_type);
    for (size_t i = 0; i < g->mime_types.n; i++) {
        const struct mk_conf_pair *pair = &g->mime_types.at[i];
        if (!mk_is_header_value(pair->value) || !mk_mime_is_type(pair->value))
            mk_conf_report_error(l->report, &pair->entry->at, "`%.*s` is not a media type",
                                 MK_STR_ARG(pair->value));
        else
            (void)!mk_mime_add(&g->mime, pair->key, pair->value);
    }
}

static void build_hosts(struct mk_config_loader *l)
{
    for (struct mk_vhost_config *s = l->g->sites; s; s = s->next) {
        mk_vhost_config_init(l->g, s);
        if (l->origin->reader)
            l->origin->reader->build_host(l->g, s, l->report);
    }
    mk_listen_addresses_assign_hosts(l->g, l->report);
    if (!l->g->sites && !l->unread) {
        struct mk_conf_source_pos at = {.file = l->origin->path ? mk_str_from_c(l->origin->path)
                                                                : MK_STR("command line")};
        mk_conf_report_error(l->report, &at, "there is no [HOST]: nothing to serve");
        mk_conf_report_hint(l->report, "add a [HOST] with a DocumentRoot, here or in sites/");
    }
}

static void index_routes(struct mk_config_loader *l)
{
    for (struct mk_vhost_config *s = l->g->sites; s; s = s->next) {
        s->host.route_index = mk_route_index_new(&l->g->arena, s->host.routes, s->host.n_routes);
        for (size_t i = 0; i < s->host.n_routes; i++)
            s->host.has_body_max |= s->host.routes[i].handler->body_max != NULL;
    }
}

/* Finds the first user in the list that exists. */
static mk_err find_worker_user(struct mk_config_loader *l, mk_str users, const char *group)
{
    mk_err e = -ENOENT;
    for (mk_str word = mk_str_word(&users); e == -ENOENT && word.len; word = mk_str_word(&users)) {
        mk_str user = mk_arena_copy(&l->g->arena, word);
        e = user.p ? mk_identity_find(user.p, group, &l->g->identity) : -ENOMEM;
    }
    return e;
}

static void use_worker_identity(struct mk_config_generation *g)
{
    g->has_identity = true;
    g->logs.workers = g->identity.uid ? &g->identity : NULL;
}

static void find_worker_identity(struct mk_config_loader *l)
{
    struct mk_server_settings *s = &l->g->server;
    struct mk_conf_source_pos at = server_key_pos(l, "User");
    if (l->g->embedding) /* the embedding program keeps its user */
        return;
    if (!s->user.len && s->group.len) {
        at = server_key_pos(l, "Group");
        mk_conf_report_error(l->report, &at, "Group needs a User, but there is none");
    }
    if (!s->user.len)
        return;
    mk_str group = mk_arena_copy(&l->g->arena, s->group.p ? s->group : MK_STR(""));
    mk_err e = group.p ? find_worker_user(l, s->user, group.p) : -ENOMEM;
    if (e == -ENOMEM)
        return;
    if (e)
        mk_conf_report_error(l->report, &at, "there is no user `%.*s`%s%s%s", MK_STR_ARG(s->user),
                             group.len ? ", or no group `" : "", group.p, group.len ? "`" : "");
    else if (geteuid() == 0)
        use_worker_identity(l->g);
    else if (l->g->identity.uid != geteuid())
        mk_conf_report_warn(l->report, &at,
                            "only root can switch to another user: workers keep the current one");
}

/* Resolves a path relative to the folder of the configuration; an empty path stays empty. */
static mk_str absolute_path(struct mk_config_loader *l, mk_str where)
{
    if (where.len == 0)
        return mk_arena_copy(&l->g->arena, MK_STR(""));
    return mk_conf_path_resolve_in(&l->g->arena, l->g->folder, where);
}

/* Returns a copy in the generation's arena, because the log keeps a pointer to its path. */
static mk_str resolve_log_path(struct mk_config_loader *l, mk_str where)
{
    mk_str word = mk_logfile_is_special_name(where) ? mk_arena_copy(&l->g->arena, where) : MK_STR_NULL;
    return word.p ? word : absolute_path(l, where);
}

static struct mk_logfile *open_logfile(struct mk_config_loader *l, mk_str where, struct mk_conf_source_pos at)
{
    mk_str path = resolve_log_path(l, where);
    return path.p ? mk_logset_open_or_report(&l->g->logs, path, 0, 0, &at, l->report) : NULL;
}

static void open_logs(struct mk_config_loader *l)
{
    struct mk_config_generation *g = l->g;
    struct mk_conf_source_pos error_log_at = server_key_pos(l, "ErrorLog");
    if (g->embedding)
        mk_embedding_default_logs(g);
    else if (mk_str_eq_nocase(g->server.error_log, MK_STR("off")))
        mk_conf_report_error(l->report, &error_log_at,
                             "the error log cannot be off: expected a file, `stderr` or `syslog`");
    g->error_log = open_logfile(l, g->server.error_log, error_log_at);
    struct mk_request_settings *request = &g->server.site.request;
    g->access_log = open_logfile(l, request->access_log, server_key_pos(l, "AccessLog"));
    /* The printed configuration has absolute paths, which are valid from any folder. */
    if (g->error_log) {
        g->server.error_log = g->error_log->where;
        g->error_log->is_json = g->server.error_log_format == MK_ERROR_LOG_JSON;
    }
    if (g->access_log)
        request->access_log = g->access_log->where;
    mk_location_set_limits(g, request, g->access_log, &g->limits);
}

/* Reports an explicit MaxURISize above MaxHeaderSize. The default MaxURISize may exceed a small
 * MaxHeaderSize, which then limits the target as well. */
static void check_head_sizes(struct mk_config_loader *l)
{
    const struct mk_server_settings *s = &l->g->server;
    const struct mk_conf_section *section = mk_conf_tree_find(&l->g->tree, MK_STR("SERVER"));
    struct mk_conf_source_pos at = server_key_pos(l, "MaxURISize");
    if (mk_conf_table_find_entry(section, MK_STR("MaxURISize")) && s->max_uri_size > s->max_head_size)
        mk_conf_report_error(l->report, &at, "MaxURISize exceeds MaxHeaderSize, which includes the target");
}

static void resolve_spool_folder(struct mk_config_loader *l)
{
    l->g->server.spool_folder = absolute_path(l, l->g->server.spool_folder);
}

static void check_spool_folder(struct mk_config_loader *l)
{
    struct mk_conf_source_pos at = server_key_pos(l, "SpoolFolder");
    mk_str folder = l->g->server.spool_folder;
    int fd = folder.p && l->g->wants_spool ? mk_spool_open_tmpfile(folder.p) : -1;
    if (!l->g->wants_spool || !folder.p || fd >= 0) {
        mk_fd_close(&fd);
        return;
    }
    mk_conf_report_error(l->report, &at, "cannot spool request bodies in `%s`: %s", folder.p,
                         mk_err_text(fd));
    mk_conf_report_hint(l->report, "%s",
                        fd == -EOPNOTSUPP
                            ? "its file system does not support O_TMPFILE: choose a folder on a local disk"
                            : "create it, or choose another folder with SpoolFolder in [SERVER]");
}

static void build_generation(struct mk_config_loader *l)
{
    check_head_sizes(l);
    apply_overrides(l);
    build_mime_types(l);
    find_worker_identity(l);
    open_logs(l);
    resolve_spool_folder(l);
    mk_plugins_call_load(l->g, l->report);
    build_hosts(l);
    if (l->origin->reader)
        l->origin->reader->check_hosts(l);
    mk_plugins_configure_hosts(l->g, l->report);
    index_routes(l);
    mk_location_check_access_logs(l->g, l->report);
    check_spool_folder(l);
    mk_sandbox_rules_check_required(l->g, l->report);
    mk_spool_check_body_limits(l->g, l->report);
    mk_http2_enable(l->g, l->report);
    if (mk_https_rules_setup(l->g, l->report) && !l->origin->skips_certificates)
        mk_certificates_setup_tls(l->g, l->report);
    mk_fd_limit_check(l->g, l->report);
}

bool mk_config_generation_has_tls(const struct mk_config_generation *g)
{
    for (size_t i = 0; i < g->listens.n; i++)
        if (g->listens.at[i].tls)
            return true;
    return false;
}

struct mk_config_generation *mk_config_generation_load(const struct mk_config_source *origin,
                                                       struct mk_arena *report_arena,
                                                       struct mk_conf_report *report)
{
    struct mk_config_generation *g = mk_mem_zalloc(1, sizeof *g);
    mk_conf_report_init(report, report_arena);
    if (!g) {
        report->no_memory = true;
        return NULL;
    }
    g->ready_fd = -1;
    mk_arena_init(&g->arena, NULL);
    mk_map_init(&g->sections_by_settings, &g->arena);
    mk_conf_report_watch_arena(report, &g->arena);
    g->shared = origin->shared ? origin->shared : &g->own_shared;
    g->embedding = origin->embedding;
    g->tried = origin->tried;
    g->is_repeated = origin->is_repeated;
    g->previous = origin->previous;
    struct mk_config_loader l = {.g = g, .origin = origin, .report = report, .end = &g->sites};
    if (origin->reader)
        origin->reader->load(&l);
    else
        load_plain_tree(&l);
    build_generation(&l);
    g->previous = NULL;
    mk_conf_report_watch_arena(report, NULL);
    if (mk_conf_report_result(report) == 0)
        return g;
    mk_config_generation_free(g);
    return NULL;
}

void mk_config_generation_free(struct mk_config_generation *g)
{
    struct mk_plugin_object objects[MK_PLUGINS_MAX];
    mk_plugins_unload(g);
    mk_certificates_free(g);
    for (struct mk_vhost_config *s = g->sites; s; s = s->next)
        mk_vhost_config_close(g, s);
    mk_logset_close(&g->logs);
    mk_worker_channels_close(g);
    mk_fd_close(&g->ready_fd);
    size_t n = mk_plugins_detach_objects(g, objects);
    mk_arena_fini(&g->arena);
    for (size_t i = 0; i < n; i++)
        mk_plugin_object_close(&objects[i]);
    mk_shared_state_fini(&g->own_shared);
    mk_mem_free(g);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Services in separate processes: the handler in the front server, and the plugin inside the group. */
#include <errno.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "group.h"
#include "group_processes.h"
#include "inner_server.h"
#include "routes.h"

MK_PLUGIN_DECLARE(isolate);

enum { LOOK_MS = 500 };

struct isolate {
    struct isolate_inner_server *inner; /* NULL: this is the front server */
    struct isolate_group *groups;
    pid_t master; /* the master that uses this configuration; 0: never used */
};

/* ---- Configuration ---- */

static bool is_group_known(const struct isolate *all, const char *name)
{
    for (const struct isolate_group *g = all->groups; g; g = g->next)
        if (strcmp(g->name, name) == 0)
            return true;
    return false;
}

static bool load_groups(struct mk_config *config, struct isolate *all)
{
    struct isolate_group **end = &all->groups;
    bool ok = true;
    for (const struct isolate_settings *s = NULL; (s = mk_config_section(config, &isolate_table, s));) {
        struct isolate_group *g = isolate_group_new(config, s);
        ok = ok && g;
        if (!g)
            continue;
        if (is_group_known(all, g->name)) {
            mk_config_error(config, s, "Service", "another [ISOLATE] already has a service named `%s`",
                            g->name);
            mk_config_hint(config, "set another `Name`");
            ok = false;
        }
        *end = g;
        end = &g->next;
    }
    return ok;
}

/* Returns the user of the group; *is_of_workers tells whether it is the public workers' user. */
static uid_t group_user(const struct mk_config *config, const struct isolate_group *g, bool *is_of_workers)
{
    uid_t workers = geteuid();
    gid_t gid;
    (void)mk_config_user(config, &workers, &gid);
    uid_t own = g->has_user ? g->uid : geteuid();
    *is_of_workers = own == workers;
    return own;
}

/* Warns of a shared user, because its services can read each other's files and, without a sandbox, memory. */
static void warn_of_shared_users(struct mk_config *config, const struct isolate *all)
{
    bool is_of_workers, other;
    for (const struct isolate_group *g = all->groups; g; g = g->next) {
        uid_t own = group_user(config, g, &is_of_workers);
        const struct isolate_group *with = all->groups;
        while (with != g && group_user(config, with, &other) != own)
            with = with->next;
        if (is_of_workers)
            mk_config_warn(
                config, g->settings, "User",
                "the service `%s` runs as the user of the public workers, so only the sandbox separates it "
                "from them",
                g->name);
        else if (with != g)
            mk_config_warn(config, g->settings, "User",
                           "the service `%s` runs as the same user as the service `%s`, so only the sandbox "
                           "separates them",
                           g->name, with->name);
        if (is_of_workers || with != g)
            mk_config_hint(config, geteuid() ? "start the server as root, and give each service a `User`"
                                             : "give each service its own `User`");
    }
}

static int load_plugin(struct mk_config *config, void **data)
{
    struct isolate *all = mk_config_alloc(config, sizeof *all);
    if (!all)
        return -ENOMEM;
    int e = isolate_inner_server_load(config, &all->inner);
    if (e)
        return e;
    *data = all;
    if (!all->inner && !load_groups(config, all))
        return -EINVAL;
    warn_of_shared_users(config, all);
    mk_config_declare_services(config);
    return 0;
}

static bool bind_group_handler(const struct mk_conf_ctx *conf, mk_str words, void **data)
{
    struct mk_config *config = mk_conf_ctx_config(conf);
    struct isolate *all = mk_config_data(config, &MK_PLUGIN_OF(isolate));
    mk_str name;
    if (!mk_conf_ctx_word(conf, &words, &name))
        return false;
    if (!all)
        return true; /* an [ISOLATE] section is invalid, which was reported */
    for (struct isolate_group *g = all->groups; g; g = g->next)
        if (mk_str_eq(mk_str_from_c(g->name), name)) {
            *data = g;
            return isolate_group_mount(config, g, mk_conf_ctx_key(conf));
        }
    mk_conf_ctx_error(conf, name, "no [ISOLATE] has a service with this name");
    return false;
}

/* ---- Requests ---- */

static void log_group_down(struct mk_request *request, const struct isolate_group *g)
{
    if (!atomic_exchange(&g->record->scoreboard->failure_logged, 1))
        mk_worker_log(mk_request_worker(request), MK_LOG_ERROR,
                      "the service `%s` does not serve: its processes crash or do not start; requests get "
                      "503 until it serves",
                      g->name);
}

static enum mk_verdict respond_503(struct mk_request *request, struct mk_response *response,
                                   const struct isolate_group *g)
{
    log_group_down(request, g);
    (void)mk_response_add_header_nocopy(response, MK_STR("Retry-After"), MK_STR("2"));
    (void)mk_response_set_status(response, 503);
    return MK_ERROR;
}

/* A request that has received no response head yet. Its connection may still be in the queue of the group's
 * listening socket, which stays open when all processes of the group have died: no event would then end the
 * wait. */
struct response_wait {
    struct mk_request *request;
    struct isolate_scoreboard *scoreboard;
    struct mk_timer timer;
    bool may_be_accepted; /* a worker has served since the request arrived */
};

static const char response_wait_key;

static void stop_response_wait(void *ctx)
{
    struct response_wait *w = ctx;
    mk_timer_stop(&w->timer);
}

/* Returns whether no worker will respond: the group is down, and no draining worker can have accepted the
 * request. */
static bool is_hopeless(struct response_wait *w)
{
    uint64_t now = mk_worker_now_ms(mk_request_worker(w->request));
    if (!w->may_be_accepted)
        w->may_be_accepted = isolate_scoreboard_is_serving(w->scoreboard);
    return isolate_scoreboard_update_down(w->scoreboard, now) &&
           !(w->may_be_accepted && isolate_scoreboard_is_draining(w->scoreboard));
}

static void on_check_timer(struct mk_timer *t)
{
    struct response_wait *w = MK_CONTAINER(t, struct response_wait, timer);
    if (is_hopeless(w))
        mk_request_resume(w->request);
    else
        mk_timer_set(t, mk_request_worker(w->request), LOOK_MS);
}

static struct response_wait *new_response_wait(struct mk_request *request, const struct isolate_group *g)
{
    struct response_wait *w = mk_request_alloc(request, sizeof *w);
    if (!w)
        return NULL;
    *w = (struct response_wait){.request = request, .scoreboard = g->record->scoreboard};
    mk_timer_init(&w->timer, on_check_timer);
    return mk_request_attach(request, &response_wait_key, w, stop_response_wait) ? NULL : w;
}

static enum mk_verdict forward_to_group(struct mk_request *request, struct mk_response *response, void *data)
{
    struct isolate_group *g = data;
    struct response_wait *w = mk_request_attached(request, &response_wait_key);
    if (!w && !(w = new_response_wait(request, g)))
        return mk_response_set_status(response, 503), MK_ERROR;
    if (is_hopeless(w))
        return respond_503(request, response, g);
    enum mk_verdict verdict = mk_local_backend_handle(request, response, g->part);
    if (verdict == MK_WAIT)
        mk_timer_set(&w->timer, mk_request_worker(request), LOOK_MS);
    else
        mk_timer_stop(&w->timer);
    return verdict;
}

/* Leaves the body limit to the group. The group knows this host's limit, and its routes may have limits of
 * their own. */
static uint64_t unlimited_body_max(struct mk_request *request, void *data)
{
    (void)request, (void)data;
    return UINT64_MAX;
}

static const struct mk_handler handler = {.name = "isolate",
                                          .syntax = "NAME",
                                          .handle = forward_to_group,
                                          .bind = bind_group_handler,
                                          .body_max = unlimited_body_max};

/* `data` is the data of the plugin, both inside the group and for those hosts of the front server that have a
 * service. */
static enum mk_verdict on_request(struct mk_request *request, struct mk_response *response, void *data)
{
    const struct isolate *all = data;
    return all->inner ? isolate_inner_server_check_sender(request, response, all->inner) : MK_NEXT;
}

static void on_response(struct mk_request *request, struct mk_response *response, void *data)
{
    const struct isolate *all = data;
    (void)request;
    if (all->inner)
        isolate_inner_server_finish_response(response);
}

static enum mk_verdict on_error(struct mk_request *request, struct mk_response *response, void *data)
{
    const struct isolate *all = data;
    return all->inner ? MK_NEXT : mk_local_backend_error(request, response);
}

static bool has_route_to_group(const struct mk_vhost *host)
{
    mk_str pattern, words;
    for (size_t i = 0; mk_vhost_route_at(host, i, &pattern, &words); i++)
        if (mk_str_eq_nocase(mk_str_word(&words), MK_STR("isolate")))
            return true;
    return false;
}

/* A service without a route handles requests first, as it would if the server had loaded it. */
static int bind_vhost(struct mk_config *config, struct mk_vhost *host, void *data, void **host_data)
{
    struct isolate *all = data;
    bool has_service = all->inner || has_route_to_group(host), ok = true;
    if (all->inner)
        isolate_inner_server_add_fallback(config, all->inner);
    for (struct isolate_group *g = all->groups; g; g = g->next) {
        if (g->mounts)
            continue;
        mk_config_prepend_route(config, MK_STR("/*"), &handler, g);
        ok = isolate_routes_declare(config, g) && ok;
        has_service = true;
    }
    *host_data = has_service ? all : NULL; /* other hosts need no hooks */
    return ok ? 0 : -EINVAL;
}

/* ---- Lifetime ---- */

static unsigned users; /* number of active configurations of this server */

/* Public workers know the secrets of the groups, so other programs of their user, such as CGI scripts, must
 * not be able to read their memory. Workers inherit the protection before they change their user. Without
 * root, the master, the workers and their subprocesses have the same user: then only the sandbox separates
 * them. */
static void disable_ptrace(const struct isolate *all)
{
#ifndef __SANITIZE_ADDRESS__ /* AddressSanitizer attaches to its own process */
    if (all->groups && geteuid() == 0)
        (void)prctl(PR_SET_DUMPABLE, 0);
#else
    (void)all;
#endif
}

static int master_start(struct mk_config *config, void *data)
{
    struct isolate *all = data;
    bool ok = true;
    disable_ptrace(all);
    all->master = getpid();
    users++;
    for (struct isolate_group *g = all->groups; g; g = g->next)
        ok = isolate_group_start(config, g) && ok;
    return ok ? 0 : -EINVAL;
}

/* When the last configuration is released, the server exits and leaves no processes behind. */
static void unload(void *data)
{
    struct isolate *all = data;
    bool is_master = all->master == getpid(), is_last = is_master && --users == 0;
    for (struct isolate_group *g = all->groups; is_master && g; g = g->next)
        g->is_over = isolate_group_release(g);
    for (struct isolate_group *g = all->groups; is_master && g; g = g->next)
        if (g->is_over)
            isolate_group_close(g, is_last);
}

static int worker_start(struct mk_worker *worker, void *data)
{
    struct isolate *all = data;
    for (const struct isolate_group *g = all->groups; g; g = g->next)
        isolate_group_hold_presence(g);
    return all->inner ? isolate_inner_server_start(worker, all->inner, &MK_PLUGIN_OF(isolate)) : 0;
}

static void worker_drain(struct mk_worker *worker, void *data)
{
    const struct isolate *all = data;
    if (all->inner)
        isolate_inner_server_drain(worker, &MK_PLUGIN_OF(isolate));
}

static void worker_stop(struct mk_worker *worker, void *data)
{
    const struct isolate *all = data;
    if (all->inner)
        isolate_inner_server_stop(worker, &MK_PLUGIN_OF(isolate));
}

static const struct mk_conf_table *const sections[] = {&isolate_table, NULL};
static const struct mk_handler *const handlers[] = {&handler, NULL};
static const char *const needs[] = {"proxy", NULL};

MK_PLUGIN(isolate) = {
    MK_PLUGIN_HEAD,
    .name = "isolate",
    .version = MK_VERSION,
    .help = "Runs services in separate processes, with their own users and limits.",
    .priority = MK_PRIORITY_ADDRESS,
    .sections = sections,
    .handlers = handlers,
    .needs = needs,
    .load = load_plugin,
    .unload = unload,
    .host = bind_vhost,
    .master_start = master_start,
    .worker_start = worker_start,
    .worker_drain = worker_drain,
    .worker_stop = worker_stop,
    .on_request = on_request,
    .on_response = on_response,
    .on_error = on_error,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "group.h"

#include <grp.h>
#include <monkey/spool.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "config_check.h"
#include "environment.h"
#include "group_record.h"
#include "process.h"

enum { ANSWER_SPARE_MS = 5000 };

static bool report_error(struct mk_config *c, const struct isolate_settings *s, const char *key,
                         const char *error)
{
    mk_config_error(c, s, key, "%s", error);
    return false;
}

/* ---- Names ---- */

/* Returns "shop" for "/srv/shop/monkey-shop.so". */
static mk_str default_group_name(mk_str service)
{
    mk_str name = service, rest = service;
    while (rest.p)
        name = mk_str_cut(&rest, '/');
    if (mk_str_starts(name, MK_STR("monkey-")))
        name = mk_str_skip(name, 7);
    return mk_str_ends(name, MK_STR(".so")) ? mk_str_first(name, name.len - 3) : name;
}

static bool set_group_name(struct mk_config *c, struct isolate_group *g)
{
    const struct isolate_settings *s = g->settings;
    mk_str name = s->name.len ? s->name : default_group_name(s->service);
    for (size_t i = 0; i < name.len; i++) {
        char one = name.p[i];
        bool fits = (one >= 'a' && one <= 'z') || (one >= '0' && one <= '9') || one == '-' || one == '_';
        if (!fits)
            return report_error(
                c, s, "Name",
                "the name of a service may contain only lower-case letters, digits, `-` and `_`");
    }
    if (!name.len || name.len > ISOLATE_NAME_MAX)
        return report_error(c, s, "Name", "the name of the service is empty or too long: set `Name`");
    mk_str copy = mk_config_copy(c, name);
    g->name = copy.p;
    return copy.p;
}

static bool set_group_spool(struct mk_config *c, struct isolate_group *g)
{
    const struct isolate_settings *s = g->settings;
    g->spool_folder = s->spool_folder.len ? mk_config_path(c, s, s->spool_folder) : mk_config_spool_folder(c);
    g->spool_max = mk_config_spool_max(c);
    return g->spool_folder.p;
}

static bool set_group_files(struct mk_config *c, struct isolate_group *g)
{
    const struct isolate_settings *s = g->settings;
    g->service = s->service;
    if (mk_str_find(s->service, '/') != MK_STR_NONE)
        g->service = mk_config_path(c, s, s->service);
    g->include = mk_config_alloc(c, (s->include.n + 1) * sizeof *g->include);
    bool ok = g->service.p && g->include;
    for (size_t i = 0; ok && i < s->include.n; i++) {
        g->include[i] = mk_config_path(c, s, s->include.v[i]);
        ok = g->include[i].p;
    }
    if (ok && s->document_root.len)
        ok = (g->document_root = mk_config_path(c, s, s->document_root)).p;
    return ok && set_group_spool(c, g);
}

static bool check_env_names(struct mk_config *c, const struct isolate_settings *s)
{
    for (size_t i = 0; i < s->env.n; i++) {
        if (!isolate_environment_may_inherit(s->env.v[i]))
            return report_error(
                c, s, "Env",
                "expected names of environment variables, except those that the server sets for the group");
        mk_str name = mk_config_copy(c, s->env.v[i]);
        if (name.p && !getenv(name.p))
            mk_config_warn(c, s, "Env", "the server has no environment variable `%s`", name.p);
    }
    return true;
}

/* ---- Users ---- */

static bool set_group_gid(struct mk_config *c, struct isolate_group *g)
{
    const struct isolate_settings *s = g->settings;
    struct group *found = s->group.len ? getgrnam(s->group.p) : NULL;
    if (s->group.len && !found)
        return report_error(c, s, "Group", "there is no such group");
    if (found)
        g->gid = found->gr_gid;
    return true;
}

static bool set_group_user(struct mk_config *c, struct isolate_group *g)
{
    const struct isolate_settings *s = g->settings;
    struct passwd *found = s->user.len ? getpwnam(s->user.p) : NULL;
    bool is_root = geteuid() == 0;
    if (s->user.len && !found)
        return report_error(c, s, "User", "there is no such user");
    if (!is_root && found && found->pw_uid != geteuid())
        return report_error(c, s, "User", "only root can start a service as another user");
    if (!is_root)
        return true;
    g->has_user = found ? true : mk_config_user(c, &g->uid, &g->gid);
    if (!found)
        found = g->has_user ? getpwuid(g->uid) : NULL;
    else
        g->gid = found->pw_gid;
    if (found) {
        mk_str name = mk_config_copy(c, mk_str_from_c(found->pw_name));
        g->uid = found->pw_uid;
        g->user_name = name.p;
    }
    return set_group_gid(c, g);
}

/* ---- The record ---- */

/* Ignores long paths, because socket paths must be short. */
static const char *runtime_base_folder(bool is_for_others)
{
    static const char *const names[] = {"RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"};
    for (size_t i = 0; !is_for_others && i < MK_LEN(names); i++) {
        const char *folder = getenv(names[i]);
        if (folder && folder[0] == '/' && strlen(folder) < 30 && !strchr(folder, ':') &&
            access(folder, W_OK | X_OK) == 0)
            return folder;
    }
    return access("/run", W_OK | X_OK) == 0 ? "/run" : "/tmp";
}

/* Chooses a random name, so that other users cannot create the folder first. */
static bool choose_folder_and_socket(struct mk_config *c, struct isolate_record *r, const char *name)
{
    uint64_t number;
    if (*r->socket)
        return true;
    r->uid = geteuid();
    r->gid = getegid();
    mk_random(r->secret, sizeof r->secret);
    bool is_for_others = geteuid() == 0 && mk_config_user(c, &r->uid, &r->gid) && r->uid != 0;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        return false;
    int n = snprintf(r->folder, sizeof r->folder, "%s/monkey-%016llx", runtime_base_folder(is_for_others),
                     (unsigned long long)number);
    int m = snprintf(r->socket, sizeof r->socket, "%s/%.*s", r->folder, 24, name);
    return n > 0 && (size_t)n < sizeof r->folder && m > 0 && (size_t)m < sizeof r->socket;
}

static bool open_group_record(struct mk_config *c, struct isolate_group *g)
{
    char address[160];
    g->record = isolate_record_acquire(c, g->name);
    if (!g->record)
        return false;
    if (!choose_folder_and_socket(c, g->record, g->name))
        return report_error(c, g->settings, "Service", "there is no folder for the socket");
    (void)snprintf(address, sizeof address, "unix:%s", g->record->socket);
    uint32_t wait = g->settings->handler_ms ? g->settings->handler_ms + ANSWER_SPARE_MS : 0;
    mk_str socket = mk_config_copy(c, mk_str_from_c(address));
    mk_str secret = mk_str_of((const char *)g->record->secret, sizeof g->record->secret);
    g->part = socket.p ? mk_local_backend_open(c, g->settings, "Service", socket, secret, wait) : NULL;
    return g->part;
}

/* Only warns, because the machine that checks a configuration may not be the one that will use it. */
static void warn_of_useless_limits(struct mk_config *c, const struct isolate_settings *s)
{
    struct isolate_cgroup_path place;
    char error[ISOLATE_CGROUP_ERROR_MAX] = "";
    const char *key = s->limits.cpu ? "CPUQuota" : "MemoryMax";
    if (isolate_cgroup_has_limits(&s->limits) && !(isolate_cgroup_find_own("/proc/self", &place, error) &&
                                                   isolate_cgroup_check_limits(&place, &s->limits, error)))
        mk_config_warn(c, s, key, "%s", error);
}

struct isolate_group *isolate_group_new(struct mk_config *config, const struct isolate_settings *settings)
{
    struct isolate_group *g = mk_config_alloc(config, sizeof *g);
    if (!g)
        return NULL;
    g->settings = settings;
    if (!isolate_process_is_monkey()) {
        (void)report_error(config, settings, "Service",
                           "only the program monkey can isolate services, not libmonkey");
        return NULL;
    }
    warn_of_useless_limits(config, settings);
    bool ok = set_group_name(config, g) && check_env_names(config, settings) && set_group_files(config, g) &&
              set_group_user(config, g) && open_group_record(config, g);
    return ok && isolate_config_check(config, g) ? g : NULL;
}

bool isolate_group_mount(struct mk_config *config, struct isolate_group *g, mk_str pattern)
{
    struct isolate_mount **end = &g->mounts;
    for (; *end; end = &(*end)->next)
        if (mk_str_eq((*end)->pattern, pattern))
            return true;
    *end = mk_config_alloc(config, sizeof **end);
    if (*end)
        (*end)->pattern = pattern;
    return *end;
}

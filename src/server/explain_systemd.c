/* SPDX-License-Identifier: Apache-2.0 */
#include "server/explain_systemd.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "conf/path.h"
#include "conf/table.h"
#include "os/state_dir.h"
#include "setup/keys.h"
#include "setup/plugin_object.h"
#include "setup/sandbox_rules.h"

enum { PATHS_MAX = 256, PRIVILEGED_PORTS = 1024 };

/* What the unit depends on, collected from the configuration. */
struct unit {
    struct mk_config_generation *g;
    mk_str writes[PATHS_MAX]; /* without duplicates */
    size_t n_writes;
    bool uses_home, uses_tmp, resolves_names;
    bool has_user, has_groups, runs_services, runs_programs;
};

/* ---- Paths ---- */

static bool is_below(mk_str path, const char *folder)
{
    size_t len = strlen(folder);
    return mk_str_starts(path, mk_str_from_c(folder)) && (path.len == len || path.p[len] == '/');
}

/* Does the text name a path below the folder? The text may contain other words. */
static bool mentions(mk_str text, const char *folder)
{
    for (size_t at = mk_str_find(text, '/'); at != MK_STR_NONE; at = mk_str_find(text, '/')) {
        text = mk_str_skip(text, at);
        if (is_below(text, folder))
            return true;
        text = mk_str_skip(text, 1);
    }
    return false;
}

static void note_text(struct unit *u, mk_str text)
{
    u->uses_home |= mentions(text, "/home") || mentions(text, "/root") || mentions(text, "/run/user");
    u->uses_tmp |= mentions(text, "/tmp") && !mk_str_eq(text, MK_STR("/var/tmp"));
}

static void add_write(struct unit *u, mk_str path)
{
    while (path.len > 1 && path.p[path.len - 1] == '/')
        path.len--;
    note_text(u, path);
    for (size_t i = 0; i < u->n_writes; i++)
        if (mk_str_eq(u->writes[i], path))
            return;
    if (path.len > 1 && u->n_writes < PATHS_MAX)
        u->writes[u->n_writes++] = path;
}

/* The server creates and replaces the file, so it writes to the folder. */
static void add_folder_of(struct unit *u, mk_str file)
{
    size_t slash = mk_str_find_last(file, '/');
    if (slash != MK_STR_NONE)
        add_write(u, mk_str_first(file, slash));
}

static void add_file_or_folder(struct unit *u, mk_str path)
{
    struct stat st;
    if (stat(path.p, &st) == 0 && S_ISDIR(st.st_mode))
        add_write(u, path);
    else
        add_folder_of(u, path);
}

/* ---- Sources of paths ---- */

static mk_err note_rule(const struct mk_sandbox_rule *rule, void *ctx)
{
    struct unit *u = ctx;
    note_text(u, rule->path);
    u->uses_home |= mk_str_eq(rule->path, MK_STR("/"));
    u->resolves_names |= rule->what == MK_SANDBOX_RESOLVE_NAMES;
    u->runs_services |= rule->what == MK_SANDBOX_BIND;
    if (rule->what == MK_SANDBOX_WRITE || rule->what == MK_SANDBOX_SPOOL)
        add_write(u, rule->path);
    return 0;
}

/* Has the plugin requested permission to write for this key? The permission has the path as its plugin resolves it, and
 * a relative path may start at another folder. */
static bool has_write_rule(const struct unit *u, const char *section, const char *key)
{
    for (const struct mk_sandbox_rule *a = u->g->allowed; a; a = a->next)
        if (a->what == MK_SANDBOX_WRITE && mk_str_eq_nocase(a->reason.section, mk_str_from_c(section)) &&
            mk_str_eq_nocase(a->reason.key, mk_str_from_c(key)))
            return true;
    return false;
}

static void add_value(struct unit *u, mk_str file, mk_str value)
{
    mk_str path = value.len ? mk_conf_path_resolve(&u->g->arena, file, value) : MK_STR_NULL;
    if (path.p)
        add_file_or_folder(u, path);
}

static void add_key(struct unit *u, const struct mk_conf_table *t, const struct mk_conf_key *k)
{
    bool uses_default = true;
    if (!(k->flags & MK_CONF_WRITES) || has_write_rule(u, t->section, k->name))
        return;
    for (const struct mk_conf_section *s = u->g->tree.first; s; s = s->next) {
        const struct mk_conf_entry *e = mk_str_eq_nocase(s->name, mk_str_from_c(t->section))
                                            ? mk_conf_table_entry(t, s, mk_str_from_c(k->name))
                                            : NULL;
        if (e)
            add_value(u, e->at.file, e->value);
        uses_default &= !e;
    }
    if (uses_default && k->default_value)
        add_value(u, MK_STR(""), mk_str_from_c(k->default_value));
}

static void add_table(struct unit *u, const struct mk_conf_table *t)
{
    for (size_t i = 0; i < t->n; i++)
        add_key(u, t, &t->keys[i]);
}

static void add_keys(struct unit *u)
{
    add_table(u, mk_keys_tables[MK_SECTION_SERVER]);
    for (const struct mk_loaded_plugin *l = u->g->plugins; l; l = l->next)
        for (const struct mk_conf_table *const *t = l->object.plugin->sections; t && *t; t++)
            add_table(u, *t);
}

static void add_sockets(struct unit *u)
{
    for (size_t i = 0; i < u->g->listens.n; i++) {
        const struct mk_sockaddr *a = &u->g->listens.at[i].addr;
        if (a->any.sa_family == AF_UNIX && a->un.sun_path[0])
            add_folder_of(u, mk_str_from_c(a->un.sun_path));
    }
}

/* The master keeps earlier configurations there. */
static void add_state_folder(struct unit *u)
{
    char path[PATH_MAX];
    mk_str copy = mk_state_dir_path(path) ? MK_STR_NULL : mk_arena_copy(&u->g->arena, mk_str_from_c(path));
    if (copy.p)
        add_write(u, copy);
}

static void collect_unit(struct unit *u)
{
    const struct mk_config_generation *g = u->g;
    u->has_user = g->server.user.len > 0;
    u->has_groups = g->has_services;
    u->runs_programs = g->program_rules;
    (void)!mk_sandbox_rules_each(g, note_rule, u);
    for (size_t i = 0; i < g->logs.n; i++)
        if (!mk_logfile_is_special_name(g->logs.at[i].where))
            add_folder_of(u, g->logs.at[i].where);
    add_keys(u);
    add_sockets(u);
    add_state_folder(u);
    note_text(u, g->folder);
    for (const struct mk_conf_section *s = g->tree.first; s; s = s->next)
        for (const struct mk_conf_entry *e = s->first; e; e = e->next)
            note_text(u, e->value);
}

/* ---- The drop-in ---- */

/* Empties a list of the unit that the drop-in extends; otherwise systemd would add to it. */
static void write_reset(struct mk_buf *out, const char *setting)
{
    mk_buf_addf(out, "%s=\n", setting);
}

static bool listens_below(const struct mk_config_generation *g, unsigned limit)
{
    for (size_t i = 0; i < g->listens.n; i++) {
        unsigned port = mk_sockaddr_port(&g->listens.at[i].addr);
        if (port && port < limit)
            return true;
    }
    return false;
}

static void write_capabilities(const struct unit *u, struct mk_buf *out)
{
    write_reset(out, "CapabilityBoundingSet");
    /* to read keys of TLS, and to give away the logs and folders of the workers' user */
    mk_buf_add(out, MK_STR("CapabilityBoundingSet=CAP_DAC_READ_SEARCH CAP_CHOWN"));
    if (listens_below(u->g, PRIVILEGED_PORTS))
        mk_buf_add(out, MK_STR(" CAP_NET_BIND_SERVICE"));
    if (u->has_user || u->has_groups)
        mk_buf_add(out, MK_STR(" CAP_SETUID CAP_SETGID CAP_KILL"));
    mk_buf_add_char(out, '\n');
}

/* The minus sign permits that the path does not exist. */
static void write_path(struct mk_buf *out, mk_str path)
{
    mk_buf_add(out, MK_STR("ReadWritePaths=\"-"));
    for (size_t i = 0; i < path.len; i++) {
        char c = path.p[i];
        if (c == '%')
            mk_buf_add(out, MK_STR("%%"));
        else if (c == '"' || c == '\\')
            mk_buf_addf(out, "\\%c", c);
        else if ((unsigned char)c < ' ')
            mk_buf_addf(out, "\\x%02x", (unsigned char)c);
        else
            mk_buf_add_char(out, c);
    }
    mk_buf_add(out, MK_STR("\"\n"));
}

static void write_files(const struct unit *u, struct mk_buf *out)
{
    bool needs_home = u->uses_home || u->runs_programs || u->runs_services;
    mk_buf_addf(out, "ProtectSystem=strict\nProtectHome=%s\nPrivateTmp=%s\n",
                needs_home ? "read-only" : "yes", u->uses_tmp ? "no" : "yes");
    write_reset(out, "ReadWritePaths");
    for (size_t i = 0; i < u->n_writes; i++)
        write_path(out, u->writes[i]);
}

/* Programs and services may bind to other ports. */
static void write_ports(const struct unit *u, struct mk_buf *out)
{
    write_reset(out, "SocketBindDeny");
    write_reset(out, "SocketBindAllow");
    if (u->runs_programs || u->runs_services || u->has_groups)
        return;
    for (size_t i = 0; i < u->g->listens.n; i++) {
        unsigned port = mk_sockaddr_port(&u->g->listens.at[i].addr);
        if (port)
            mk_buf_addf(out, "SocketBindAllow=tcp:%u\n", port);
    }
    mk_buf_add(out, MK_STR("SocketBindDeny=tcp\n"));
}

/* Code that is compiled while it runs needs memory that is writable and executable. */
static void write_other(const struct unit *u, struct mk_buf *out)
{
    bool runs_foreign_code = u->runs_programs || u->runs_services || u->has_groups;
    write_reset(out, "RestrictAddressFamilies");
    mk_buf_addf(out, "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6%s\n",
                u->resolves_names || runs_foreign_code ? " AF_NETLINK" : "");
    mk_buf_addf(out, "MemoryDenyWriteExecute=%s\n", runs_foreign_code ? "no" : "yes");
    if (u->has_groups) /* for MemoryMax and CPUQuota of [ISOLATE] */
        mk_buf_add(out, MK_STR("Delegate=cpu memory\n"));
    mk_buf_addf(out, "ProtectControlGroups=%s\n", u->has_groups ? "no" : "yes");
    mk_buf_add(out,
               MK_STR("PrivateDevices=yes\nProtectProc=invisible\nProtectClock=yes\nProtectHostname=yes\n"
                      "ProtectKernelLogs=yes\nProtectKernelModules=yes\nProtectKernelTunables=yes\n"
                      "RestrictNamespaces=yes\nRestrictRealtime=yes\nRestrictSUIDSGID=yes\n"
                      "LockPersonality=yes\nRemoveIPC=yes\nSystemCallArchitectures=native\n"));
    write_reset(out, "SystemCallFilter");
    mk_buf_add(out,
               MK_STR("SystemCallFilter=@system-service seccomp landlock_create_ruleset landlock_add_rule "
                      "landlock_restrict_self\n"));
    if (!runs_foreign_code)
        mk_buf_add(out,
                   MK_STR("SystemCallFilter=~@keyring io_uring_setup io_uring_enter io_uring_register\n"));
    mk_buf_add(out, MK_STR("SystemCallErrorNumber=EPERM\n"));
}

void mk_explain_systemd(struct mk_config_generation *g, struct mk_buf *out)
{
    struct unit u = {.g = g};
    collect_unit(&u);
    mk_buf_add(out,
               MK_STR("# Written by `monkey explain --systemd`. Write it again before you add a port, a "
                      "folder, a user or a\n# plugin to the configuration, and then restart the service.\n"
                      "[Service]\nNoNewPrivileges=yes\n"));
    write_capabilities(&u, out);
    write_files(&u, out);
    write_ports(&u, out);
    write_other(&u, out);
    if (u.n_writes == PATHS_MAX)
        mk_buf_add(out, MK_STR("# There are more folders: add a ReadWritePaths= for each of them.\n"));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/sandbox_rules.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/codec.h"
#include "conf/table.h"
#include "os/access_check.h"
#include "os/capabilities.h"
#include "os/port_rules.h"
#include "os/sandbox.h"
#include "setup/config.h"
#include "setup/plugin_sections.h"

/* ---- Text ---- */

static void describe_program(const struct mk_sandbox_rule *rule, struct mk_buf *out)
{
    if (mk_str_eq(rule->path, MK_STR("/"))) {
        mk_buf_add(out, MK_STR("all programs"));
        return;
    }
    if (mk_sandbox_rule_is_folder(rule))
        mk_buf_add(out, MK_STR("programs below "));
    mk_log_escape(out, rule->path);
}

void mk_sandbox_rules_describe(const struct mk_sandbox_rule *rule, struct mk_buf *out)
{
    static const char words[][40] = {
        [MK_SANDBOX_READ] = "read ",
        [MK_SANDBOX_WRITE] = "write below ",
        [MK_SANDBOX_SPOOL] = "spool below ",
        [MK_SANDBOX_RESOLVE_NAMES] = "resolve names",
        [MK_SANDBOX_READ_TRUST_STORE] = "read trust anchors",
        [MK_SANDBOX_CONNECT] = "connect to ",
        [MK_SANDBOX_BIND] = "bind to ",
        [MK_SANDBOX_START_PROGRAMS] = "have started outside the sandbox: ",
    };
    mk_buf_add(out, mk_str_from_c(words[rule->what]));
    if (rule->what == MK_SANDBOX_START_PROGRAMS)
        describe_program(rule, out);
    else
        mk_log_escape(out, rule->path);
    if (rule->port)
        mk_buf_addf(out, "port %u", rule->port);
    else if (rule->what == MK_SANDBOX_CONNECT || rule->what == MK_SANDBOX_BIND)
        mk_buf_add(out, MK_STR("all ports"));
}

void mk_sandbox_rules_describe_reason(const struct mk_sandbox_reason *reason, struct mk_buf *out)
{
    if (!reason->section.len) {
        mk_buf_add(out, MK_STR("every configuration"));
        return;
    }
    if (reason->key.len)
        mk_buf_addf(out, "%.*s in ", MK_STR_ARG(reason->key));
    mk_buf_addf(out, "[%.*s]", MK_STR_ARG(reason->section));
    if (reason->at.file.len)
        mk_buf_addf(out, ", %.*s", MK_STR_ARG(reason->at.file));
    if (reason->at.file.len && reason->at.line)
        mk_buf_addf(out, ":%u", reason->at.line);
}

void mk_sandbox_rules_print(const struct mk_config_generation *g, const struct mk_loaded_plugin *by,
                            const char *prefix, struct mk_buf *out)
{
    const char *before = prefix;
    for (const struct mk_sandbox_rule *a = g->server.sandbox ? g->allowed : NULL; a; a = a->next) {
        if (a->by != by)
            continue;
        mk_buf_add(out, mk_str_from_c(before));
        mk_sandbox_rules_describe(a, out);
        before = ", ";
    }
    if (before != prefix)
        mk_buf_add_char(out, '\n');
}

/* ---- Reasons ---- */

/* If the section does not contain the key, its default is the reason. */
static struct mk_sandbox_reason reason_in(const struct mk_conf_section *s, const struct mk_conf_table *t,
                                          const char *key)
{
    const struct mk_conf_entry *e = key && t ? mk_conf_table_entry(t, s, mk_str_from_c(key)) : NULL;
    return (struct mk_sandbox_reason){
        .section = s->name, .key = e ? e->key : mk_str_from_c(key ? key : ""), .at = e ? e->at : s->at};
}

/* The settings of a section that the configuration does not contain are unknown here. */
struct mk_sandbox_reason mk_sandbox_rules_find_reason(const struct mk_config *c, const void *settings,
                                                      const char *key)
{
    const struct mk_plugin_section *s =
        settings ? mk_plugin_sections_of_settings(c->generation, settings) : NULL;
    const struct mk_conf_entry *load = c->plugin ? c->plugin->entry : NULL;
    if (s)
        return reason_in(s->section, s->table, key);
    if (c->entry)
        return (struct mk_sandbox_reason){
            .section = MK_STR("ROUTES"), .key = c->entry->key, .at = c->entry->at};
    if (load)
        return (struct mk_sandbox_reason){.section = MK_STR("PLUGINS"), .key = load->key, .at = load->at};
    return (struct mk_sandbox_reason){.section = MK_STR("PLUGINS")};
}

/* ---- Permissions of the server ---- */

struct rule_visitor {
    mk_sandbox_rule_fn *each;
    void *ctx;
    mk_err error; /* the first */
};

static void visit_rule(struct rule_visitor *v, const struct mk_sandbox_rule *rule)
{
    if (!v->error)
        v->error = v->each(rule, v->ctx);
}

static void visit_root(struct rule_visitor *v, const struct mk_root *root, const struct mk_vhost_config *s,
                       const char *key)
{
    struct mk_sandbox_rule rule = {
        .what = MK_SANDBOX_READ, .path = mk_str_from_c(root->path), .fd = root->fd};
    if (root->fd < 0)
        return;
    rule.reason = reason_in(s->section, s->section->table, key);
    visit_rule(v, &rule);
    rule.what = MK_SANDBOX_START_PROGRAMS;
    for (const struct mk_script_permission *p = s->scripts; p; p = p->next) {
        rule.reason = p->reason;
        rule.variables = p->variables;
        visit_rule(v, &rule);
    }
}

static void visit_host_folders(struct rule_visitor *v, const struct mk_vhost_config *s)
{
    const struct mk_vhost *h = &s->host;
    visit_root(v, &h->root, s, "DocumentRoot");
    /* With symbolic links, a request may lead anywhere in the file system. */
    if (h->root.how.symlink != MK_SYMLINK_OFF)
        visit_rule(v, &(struct mk_sandbox_rule){
                          .what = MK_SANDBOX_READ,
                          .path = MK_STR("/"),
                          .fd = -1,
                          .reason = reason_in(s->section, s->section->table, "FollowSymlinks")});
    for (size_t i = 0; i < h->n_aliases; i++)
        visit_root(v, &h->aliases[i], s, "Alias");
    for (size_t i = 0; h->homes && i < h->homes->by_name.cap; i++) {
        const struct mk_user_home *home = h->homes->by_name.slots[i].value;
        if (home)
            visit_root(v, &home->root, s, "UserDir");
    }
}

static const struct mk_conf_section *server_section(const struct mk_config_generation *g)
{
    return mk_conf_tree_find(&g->tree, MK_STR("SERVER"));
}

static void visit_spool_folder(struct rule_visitor *v, const struct mk_config_generation *g)
{
    struct mk_sandbox_rule rule = {.what = MK_SANDBOX_SPOOL, .path = g->server.spool_folder, .fd = -1};
    const struct mk_conf_section *s = server_section(g);
    rule.reason = s ? reason_in(s, s->table, "SpoolFolder")
                    : (struct mk_sandbox_reason){.section = MK_STR("SERVER"), .key = MK_STR("SpoolFolder")};
    visit_rule(v, &rule);
}

mk_err mk_sandbox_rules_each(const struct mk_config_generation *g, mk_sandbox_rule_fn *each, void *ctx)
{
    static const struct mk_sandbox_rule always[] = {
        {.what = MK_SANDBOX_READ, .path = MK_STR("/dev/null"), .fd = -1}, /* libraries may open it */
        {.what = MK_SANDBOX_READ, .path = MK_STR("/etc/localtime"), .fd = -1},
    };
    struct rule_visitor v = {.each = each, .ctx = ctx};
    for (const struct mk_vhost_config *s = g->sites; s; s = s->next)
        visit_host_folders(&v, s);
    if (g->wants_spool)
        visit_spool_folder(&v, g);
    for (size_t i = 0; i < MK_LEN(always); i++)
        visit_rule(&v, &always[i]);
    for (const struct mk_sandbox_rule *a = g->allowed; a; a = a->next)
        visit_rule(&v, a);
    return v.error;
}

/* ---- Ports ---- */

unsigned mk_sandbox_rules_restricted_ports(const struct mk_config_generation *g)
{
    unsigned uses = MK_PORT_CONNECT | MK_PORT_BIND;
    for (const struct mk_sandbox_rule *a = g->allowed; a; a = a->next)
        if (!a->port && a->what == MK_SANDBOX_CONNECT)
            uses &= ~(unsigned)MK_PORT_CONNECT;
        else if (!a->port && a->what == MK_SANDBOX_BIND)
            uses &= ~(unsigned)MK_PORT_BIND;
    return uses;
}

/* ---- System calls and capabilities ---- */

struct mk_syscall_filter mk_sandbox_rules_syscall_filter(const struct mk_config_generation *g)
{
    struct mk_syscall_filter f = {.logs_denied = g->server.log_level >= MK_LOG_DEBUG};
    f.may_fast_open = !(mk_sandbox_rules_restricted_ports(g) & MK_PORT_CONNECT);
    for (const struct mk_sandbox_rule *a = g->allowed; a; a = a->next)
        f.may_listen |= a->what == MK_SANDBOX_BIND;
    return f;
}

bool mk_sandbox_rules_keeps_root(const struct mk_config_generation *g)
{
    return g->has_identity ? g->identity.uid == 0 : geteuid() == 0;
}

uint64_t mk_sandbox_rules_capabilities(const struct mk_config_generation *g)
{
    return mk_sandbox_rules_keeps_root(g)
               ? mk_capabilities_of_root_worker(mk_sandbox_rules_syscall_filter(g).may_listen)
               : 0;
}

/* ---- `Sandbox required` ---- */

void mk_sandbox_rules_check_required(const struct mk_config_generation *g, struct mk_conf_report *report)
{
    const struct mk_conf_section *s = server_section(g);
    const struct mk_conf_entry *e = mk_conf_table_find_entry(s, MK_STR("Sandbox"));
    int abi = mk_sandbox_abi();
    if (g->server.sandbox != MK_SANDBOX_REQUIRED || g->embedding || !e)
        return;
    if (!mk_port_rules_are_built())
        mk_conf_report_error(report, &e->at,
                             "the sandbox would be incomplete: Monkey was built without MK_FULL_SANDBOX");
    else if (abi < 1)
        mk_conf_report_error(report, &e->at, "there would be no sandbox: this kernel has no Landlock");
    else if (!mk_syscall_filter_is_supported())
        mk_conf_report_error(report, &e->at,
                             "the sandbox would be incomplete: this kernel has no filters for system calls "
                             "(seccomp)");
    else if (abi < MK_SANDBOX_COMPLETE_ABI)
        mk_conf_report_error(report, &e->at,
                             "the sandbox would be incomplete: this kernel has Landlock ABI %d, but %d is "
                             "needed (Linux 6.12)",
                             abi, MK_SANDBOX_COMPLETE_ABI);
}

/* ---- Permissions of plugins ---- */

static bool is_same_program(const struct mk_program *a, const struct mk_program *b)
{
    return a == b || (a && b && a->arguments == b->arguments && a->variables == b->variables &&
                      a->first_worker_only == b->first_worker_only && a->takes_script == b->takes_script);
}

static bool is_same_rule(const struct mk_sandbox_rule *a, const struct mk_sandbox_rule *b)
{
    return a->by == b->by && a->what == b->what && a->port == b->port && mk_str_eq(a->path, b->path) &&
           is_same_program(a->program, b->program);
}

/* The first of several settings that need the same permission is its reason. */
void mk_sandbox_rules_add(struct mk_config *c, const void *settings, const char *key,
                          struct mk_sandbox_rule rule)
{
    struct mk_sandbox_rule **end = &c->generation->allowed;
    rule.by = c->plugin;
    rule.fd = -1;
    for (; *end; end = &(*end)->next)
        if (is_same_rule(*end, &rule))
            return;
    struct mk_sandbox_rule *a = mk_config_alloc(c, sizeof *a);
    rule.path = mk_config_copy(c, rule.path); /* NUL-terminated */
    if (!a || !rule.path.p)
        return;
    rule.reason = mk_sandbox_rules_find_reason(c, settings, key);
    *a = rule;
    *end = a;
}

static void add_path(struct mk_config *c, const void *settings, const char *key,
                     enum mk_sandbox_permission what, mk_str path)
{
    mk_sandbox_rules_add(c, settings, key, (struct mk_sandbox_rule){.what = what, .path = path});
}

void mk_config_allow_path(struct mk_config *c, const void *section, const char *key, mk_str path)
{
    add_path(c, section, key, MK_SANDBOX_READ, path);
}

/* The master may write anywhere, but the workers run as another user. */
static void warn_if_denied(struct mk_config *c, const void *section, const char *key, mk_str folder)
{
    const struct mk_identity *id = &c->generation->identity;
    const char *path = mk_config_copy(c, folder).p;
    if (!c->generation->has_identity || !path)
        return;
    size_t closed = mk_access_check_find_denied(id, path, 1);
    if (closed)
        mk_config_warn(c, section, key, "the User %s may not enter `%.*s`, but writes below it", id->user,
                       (int)closed, path);
    else if (!mk_access_check_may_write(id, path))
        mk_config_warn(c, section, key, "the User %s may not write to the folder `%s`", id->user, path);
}

void mk_config_allow_writing(struct mk_config *c, const void *section, const char *key, mk_str folder)
{
    warn_if_denied(c, section, key, folder);
    add_path(c, section, key, MK_SANDBOX_WRITE, folder);
}

void mk_config_allow_connect(struct mk_config *c, const void *section, const char *key, uint16_t port)
{
    mk_sandbox_rules_add(
        c, section, key,
        (struct mk_sandbox_rule){.what = MK_SANDBOX_CONNECT, .path = MK_STR(""), .port = port});
}

void mk_config_allow_bind(struct mk_config *c, const void *section, const char *key, uint16_t port)
{
    mk_sandbox_rules_add(c, section, key,
                         (struct mk_sandbox_rule){.what = MK_SANDBOX_BIND, .path = MK_STR(""), .port = port});
}

/* ---- Watched files ---- */

void mk_config_declare_services(struct mk_config *c)
{
    c->generation->has_services = true;
}

/* The sandbox allows files, not names: workers cannot read a file that replaces an allowed file. A change
 * therefore reloads the configuration, which starts new workers. */
static void watch_file(struct mk_config *c, const char *path)
{
    struct stat st;
    if (c->generation->server.sandbox && lstat(path, &st) == 0 && S_ISREG(st.st_mode))
        (void)!mk_file_watch_add(&c->generation->watched, &c->generation->arena, path);
}

void mk_config_allow_resolver(struct mk_config *c, const void *section, const char *key)
{
    mk_sandbox_rules_add(c, section, key,
                         (struct mk_sandbox_rule){.what = MK_SANDBOX_RESOLVE_NAMES,
                                                  .path = MK_STR(""),
                                                  .allow_library_files = mk_sandbox_allow_resolver});
    watch_file(c, "/etc/hosts");
    watch_file(c, "/etc/resolv.conf");
    watch_file(c, "/etc/nsswitch.conf");
}

void mk_config_allow_trust_store(struct mk_config *c, const void *section, const char *key)
{
    mk_sandbox_rules_add(c, section, key,
                         (struct mk_sandbox_rule){.what = MK_SANDBOX_READ_TRUST_STORE,
                                                  .path = MK_STR(""),
                                                  .allow_library_files = mk_sandbox_allow_trust_store});
}

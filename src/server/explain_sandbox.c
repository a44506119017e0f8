/* SPDX-License-Identifier: Apache-2.0 */
#include "server/explain_sandbox.h"

#include <string.h>
#include <unistd.h>

#include "os/capabilities.h"
#include "os/port_rules.h"
#include "os/sandbox.h"
#include "server/explain_systemd.h"
#include "setup/sandbox_rules.h"

enum { REASON_COLUMN = 44, ROW_MAX = 4096 + 1024 };

bool mk_explain_sandbox_take_option(const char *word, struct mk_explain_request *out)
{
    if (strcmp(word, "--sandbox") == 0)
        out->sandbox = true;
    else if (strcmp(word, "--systemd") == 0)
        out->systemd = true;
    else
        return false;
    return true;
}

static void write_line(struct mk_buf *out, const char *text)
{
    mk_buf_addf(out, "  %s\n", text);
}

static mk_err write_rule(const struct mk_sandbox_rule *rule, void *ctx)
{
    struct mk_buf *out = ctx;
    char buf[ROW_MAX];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    mk_sandbox_rules_describe(rule, &text);
    mk_buf_addf(out, "  %.*s%*s  ", MK_STR_ARG(mk_buf_str(&text)),
                text.len < REASON_COLUMN ? (int)(REASON_COLUMN - text.len) : 0, "");
    mk_sandbox_rules_describe_reason(&rule->reason, out);
    mk_buf_add_char(out, '\n');
    return 0;
}

/* ---- What is enforced ---- */

static const char *find_gap(int abi)
{
    if (abi < 1)
        return "this kernel has no Landlock, so nothing below is enforced for files, ports and signals";
    if (!mk_port_rules_are_built())
        return "Monkey was built without MK_FULL_SANDBOX, so all ports are allowed";
    if (abi < MK_PORT_RULES_ABI)
        return "this kernel cannot restrict TCP ports and signals";
    if (!mk_syscall_filter_is_supported())
        return "this kernel cannot filter system calls";
    return abi < MK_SANDBOX_COMPLETE_ABI ? "this kernel cannot restrict signals and abstract sockets" : NULL;
}

static void explain_mode(const struct mk_config_generation *g, struct mk_buf *out)
{
    static const char *const words[] = {"off", "on", "required"}; /* enum mk_sandbox_mode */
    int abi = mk_sandbox_abi();
    const char *gap = find_gap(abi);
    mk_buf_addf(out, "Sandbox %s", words[g->server.sandbox]);
    if (g->server.sandbox == MK_SANDBOX_OFF)
        mk_buf_add(out, MK_STR(": nothing below is enforced"));
    else if (gap)
        mk_buf_addf(out, ": %s", gap);
    else
        mk_buf_addf(out, ": this kernel enforces all of it (Landlock ABI %d)", abi);
    mk_buf_add_char(out, '\n');
}

/* ---- Processes ---- */

static const char *user_of_workers(const struct mk_config_generation *g)
{
    return g->has_identity ? g->identity.user : "the user of the master";
}

static void explain_master(struct mk_buf *out)
{
    mk_buf_add(out, MK_STR("\nmaster\n"));
    write_line(out, "all files and ports that its user can access, because a reload may name others");
}

static bool has_rule(const struct mk_config_generation *g, enum mk_sandbox_permission what)
{
    for (const struct mk_sandbox_rule *a = g->allowed; a; a = a->next)
        if (a->what == what || (what == MK_SANDBOX_CONNECT && a->what == MK_SANDBOX_RESOLVE_NAMES))
            return true;
    return false;
}

/* Root may access the files of all users, even without changing the user. */
static void write_capabilities(const struct mk_config_generation *g, struct mk_buf *out)
{
    uint64_t set = mk_sandbox_rules_capabilities(g);
    mk_buf_add(out, set ? MK_STR("  capabilities ") : MK_STR("  no capabilities"));
    mk_capabilities_print(set, out);
    mk_buf_add(out, set ? MK_STR(": there is no User, so workers run as root\n") : MK_STR("\n"));
}

static void explain_workers(const struct mk_config_generation *g, struct mk_buf *out)
{
    mk_buf_addf(out, "\nworkers, as %s\n", user_of_workers(g));
    (void)!mk_sandbox_rules_each(g, write_rule, out);
    if (!has_rule(g, MK_SANDBOX_CONNECT))
        write_line(out, "connect to no TCP port");
    if (!has_rule(g, MK_SANDBOX_BIND))
        write_line(out, "bind to no TCP port: the master opens the listening sockets");
    write_line(out, "send signals, and connect to abstract sockets, only inside the sandbox");
    write_line(out, g->program_rules ? "start no other programs" : "start no programs");
    write_capabilities(g, out);
    mk_buf_add(out, MK_STR("\nsystem calls that fail in workers\n"));
    const struct mk_syscall_filter f = mk_sandbox_rules_syscall_filter(g);
    mk_syscall_filter_print(&f, out);
}

static void explain_programs(const struct mk_config_generation *g, struct mk_buf *out)
{
    if (!g->program_rules)
        return;
    mk_buf_addf(out, "\nprograms that workers start, as %s\n", user_of_workers(g));
    write_line(out, "all files and ports that this user can access");
    write_line(out, "send signals only to programs of the same worker");
}

static void explain_groups(const struct mk_config_generation *g, struct mk_buf *out)
{
    if (!g->has_services)
        return;
    mk_buf_add(out, MK_STR("\nisolated services\n"));
    write_line(out, "each group has a master and workers of its own, with a sandbox of its own");
}

void mk_explain_sandbox(struct mk_config_generation *g, const struct mk_explain_request *request,
                        struct mk_buf *out)
{
    if (request->systemd) {
        mk_explain_systemd(g, out);
        return;
    }
    explain_mode(g, out);
    explain_master(out);
    explain_workers(g, out);
    explain_programs(g, out);
    explain_groups(g, out);
}

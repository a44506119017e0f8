/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker_sandbox.h"

#include "os/capabilities.h"
#include "os/fd.h"
#include "os/port_rules.h"
#include "os/sandbox.h"
#include "setup/sandbox_rules.h"

/* ---- Files ---- */

struct file_rules {
    struct mk_sandbox box;
    struct mk_log *log;
};

static mk_err allow_files(struct mk_sandbox *box, const struct mk_sandbox_rule *a)
{
    switch (a->what) {
    case MK_SANDBOX_READ:
        return a->fd >= 0 ? mk_sandbox_allow_fd(box, a->fd) : mk_sandbox_allow(box, a->path.p);
    case MK_SANDBOX_WRITE:
        return mk_sandbox_allow_writing(box, a->path.p);
    case MK_SANDBOX_SPOOL:
        return mk_sandbox_allow_spooling(box, a->path.p);
    case MK_SANDBOX_RESOLVE_NAMES:
    case MK_SANDBOX_READ_TRUST_STORE:
        return a->allow_library_files(box);
    case MK_SANDBOX_CONNECT:
    case MK_SANDBOX_BIND:
    case MK_SANDBOX_START_PROGRAMS:
        break;
    }
    return 0;
}

/* A rule of a plugin that fails, for example because the worker's user cannot access the path, does not prevent
 * serving. */
static mk_err allow_files_of_rule(const struct mk_sandbox_rule *rule, void *ctx)
{
    struct file_rules *r = ctx;
    char texts[2][512];
    struct mk_buf text = mk_buf_fixed(texts[0], sizeof texts[0]);
    struct mk_buf reason = mk_buf_fixed(texts[1], sizeof texts[1]);
    mk_err e = allow_files(&r->box, rule);
    if (!e || !rule->by)
        return e;
    mk_sandbox_rules_describe(rule, &text);
    mk_sandbox_rules_describe_reason(&rule->reason, &reason);
    mk_log_warn(r->log, "workers cannot %.*s: %s (for %.*s)", MK_STR_ARG(mk_buf_str(&text)), mk_err_text(e),
                MK_STR_ARG(mk_buf_str(&reason)));
    return 0;
}

static mk_err restrict_files(const struct mk_config_generation *g, struct mk_log *log)
{
    struct file_rules r = {.log = log};
    mk_err e = mk_sandbox_open(&r.box);
    if (!e)
        e = mk_sandbox_rules_each(g, allow_files_of_rule, &r);
    if (!e)
        e = mk_sandbox_enforce(&r.box);
    mk_fd_close(&r.box.fd);
    return e;
}

/* ---- Ports ---- */

struct port_context {
    struct mk_port_rules rules;
    unsigned uses;
};

static mk_err allow_ports_of_rule(const struct mk_sandbox_rule *rule, void *ctx)
{
    enum { DNS_PORT = 53 }; /* getaddrinfo() asks again over TCP if an answer is large */
    struct port_context *p = ctx;
    unsigned use = rule->what == MK_SANDBOX_BIND ? MK_PORT_BIND
                   : rule->what == MK_SANDBOX_CONNECT || rule->what == MK_SANDBOX_RESOLVE_NAMES
                       ? MK_PORT_CONNECT
                       : 0;
    uint16_t port = rule->what == MK_SANDBOX_RESOLVE_NAMES ? DNS_PORT : rule->port;
    return p->uses & use ? mk_port_rules_allow(&p->rules, use, port) : 0;
}

static mk_err restrict_ports(const struct mk_config_generation *g)
{
    struct port_context p = {.uses = mk_sandbox_rules_restricted_ports(g)};
    mk_err e = mk_port_rules_open(&p.rules, p.uses);
    if (!e)
        e = mk_sandbox_rules_each(g, allow_ports_of_rule, &p);
    if (!e)
        e = mk_port_rules_enforce(&p.rules);
    mk_fd_close(&p.rules.fd);
    return e;
}

/* ---- The sandbox ---- */

/* Without MK_FULL_SANDBOX, the sandbox restricts only files: programs without the rest stay small. */
static bool has_all_parts(const struct mk_config_generation *g)
{
    return mk_port_rules_are_built() && g->server.sandbox != MK_SANDBOX_OFF;
}

void mk_worker_sandbox_prepare(const struct mk_config_generation *g)
{
    if (has_all_parts(g) && !mk_sandbox_rules_keeps_root(g))
        mk_capabilities_limit_gain(0);
}

/* Returns `e`, or 0 if the worker may start without this part because the kernel or the build lacks it. */
static mk_err check_part(const struct mk_config_generation *g, struct mk_log *log, mk_err e, const char *part)
{
    if (!e)
        return 0;
    if (e == -EOPNOTSUPP && g->server.sandbox != MK_SANDBOX_REQUIRED) {
        mk_log_debug(log, "the sandbox cannot restrict %s: %s", part, mk_err_text(e));
        return 0;
    }
    mk_log_error(log, "cannot enter the sandbox, which restricts %s: %s", part, mk_err_text(e));
    return e;
}

mk_err mk_worker_sandbox_enter(const struct mk_config_generation *g, struct mk_log *log)
{
    if (g->server.sandbox == MK_SANDBOX_OFF)
        return 0;
    mk_err e = check_part(g, log, restrict_files(g, log), "files");
    if (e || !has_all_parts(g))
        return e;
    e = check_part(g, log, restrict_ports(g), "TCP ports");
    return e ? e
             : check_part(g, log, mk_capabilities_limit(mk_sandbox_rules_capabilities(g)), "capabilities");
}

mk_err mk_worker_sandbox_filter_calls(const struct mk_config_generation *g, struct mk_log *log)
{
    if (!has_all_parts(g))
        return 0;
    const struct mk_syscall_filter f = mk_sandbox_rules_syscall_filter(g);
    return check_part(g, log, mk_syscall_filter_enforce(&f), "system calls");
}

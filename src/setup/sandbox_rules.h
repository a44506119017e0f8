/* SPDX-License-Identifier: Apache-2.0 */
/* Permissions of workers in their sandbox. They follow from the configuration, and each names its setting. */
#ifndef MK_SETUP_SANDBOX_RULES_H
#define MK_SETUP_SANDBOX_RULES_H

#include "os/syscall_filter.h"
#include "setup/config_generation_type.h"

/* Calls `each` for every permission of the workers: first for the permissions of the server, then for the permissions
 * of plugins. Stops at the first error, and returns it. */
typedef mk_err mk_sandbox_rule_fn(const struct mk_sandbox_rule *rule, void *ctx);
mk_err mk_sandbox_rules_each(const struct mk_config_generation *g, mk_sandbox_rule_fn *each,
                             void *ctx) MK_MUST_USE;

/* Adds a permission of the plugin that is being called. The first of several settings that need the same permission is its
 * reason. */
void mk_sandbox_rules_add(struct mk_config *c, const void *settings, const char *key,
                          struct mk_sandbox_rule rule);
/* Returns the reason that follows from these arguments of a function such as mk_config_allow_path(). */
struct mk_sandbox_reason mk_sandbox_rules_find_reason(const struct mk_config *c, const void *settings,
                                                      const char *key);
/* Does the rule, which is of MK_SANDBOX_START_PROGRAMS, allow all programs in a folder? */
static inline bool mk_sandbox_rule_is_folder(const struct mk_sandbox_rule *rule)
{
    return !rule->program || mk_str_ends(rule->path, MK_STR("/"));
}

/* Returns the restricted uses of TCP ports (enum mk_port_use). No rule allows a restricted use for all ports. */
unsigned mk_sandbox_rules_restricted_ports(const struct mk_config_generation *g);

/* Returns which system calls the rules allow. */
struct mk_syscall_filter mk_sandbox_rules_syscall_filter(const struct mk_config_generation *g);
/* Do workers run as root? */
bool mk_sandbox_rules_keeps_root(const struct mk_config_generation *g);
/* Returns the capabilities that workers keep, if they have them. */
uint64_t mk_sandbox_rules_capabilities(const struct mk_config_generation *g);

/* Reports an error if `Sandbox required` needs more than the kernel or this build supports. */
void mk_sandbox_rules_check_required(const struct mk_config_generation *g, struct mk_conf_report *report);

/* Appends the text of a permission: "read /a", "resolve names", "connect to port 80". */
void mk_sandbox_rules_describe(const struct mk_sandbox_rule *rule, struct mk_buf *out);
/* Appends the setting that a permission follows from: "Folder in [KV], /etc/monkey/monkey.conf:12". */
void mk_sandbox_rules_describe_reason(const struct mk_sandbox_reason *reason, struct mk_buf *out);

/* If this plugin extends the sandbox, prints a line with its permissions after `prefix`: "read /a, write
 * below /b, resolve names". */
void mk_sandbox_rules_print(const struct mk_config_generation *g, const struct mk_loaded_plugin *by,
                            const char *prefix, struct mk_buf *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/program_rules.h"

#include <errno.h>
#include <monkey/config.h>
#include <monkey/sized.h>
#include <string.h>

#include "base/assert.h"
#include "setup/config.h"
#include "setup/sandbox_rules.h"

/* ---- The policy ---- */

struct program_query {
    const struct mk_config_generation *generation;
    unsigned worker;
    char *const *argv; /* NULL: any program */
    char *const *envp;
    bool is_allowed;
};

static bool has_parent_segment(mk_str path)
{
    while (path.p)
        if (mk_str_eq(mk_str_cut(&path, '/'), MK_STR("..")))
            return true;
    return false;
}

/* The path must not leave the folder. Links below it are not checked, because the administrator has placed them. */
static bool is_path_allowed(const struct mk_sandbox_rule *rule, mk_str path)
{
    mk_str folder = rule->path;
    if (!mk_sandbox_rule_is_folder(rule))
        return mk_str_eq(path, folder);
    while (mk_str_ends(folder, MK_STR("/")))
        folder.len--;
    return path.len > folder.len + 1 && mk_str_starts(path, folder) && path.p[folder.len] == '/' &&
           !has_parent_segment(path);
}

/* Fails if the file is a script, to end the search. */
static mk_err match_script_folder(const struct mk_sandbox_rule *rule, void *file)
{
    bool is_folder = rule->what == MK_SANDBOX_START_PROGRAMS && !rule->program;
    return is_folder && is_path_allowed(rule, mk_str_from_c(file)) ? -EEXIST : 0;
}

static bool are_arguments_allowed(const struct program_query *q, const struct mk_program *p)
{
    const char *const *allowed = p->arguments;
    char *const *arguments = q->argv + 1;
    for (; allowed && *allowed && *arguments; allowed++, arguments++)
        if (strcmp(*allowed, *arguments) != 0)
            return false;
    if (allowed && *allowed)
        return false;
    if (p->takes_script)
        return *arguments && !arguments[1] &&
               mk_sandbox_rules_each(q->generation, match_script_folder, *arguments) != 0;
    return !allowed || !*arguments;
}

/* Would the variable make HTTP clients in the program use a proxy? No header becomes this variable. */
static bool is_proxy_setting(const char *variable)
{
    return strncmp(variable, "HTTP_PROXY=", strlen("HTTP_PROXY=")) == 0;
}

static bool is_variable_allowed(const char *const *allowed, const char *variable)
{
    for (; *allowed; allowed++) {
        size_t len = strlen(*allowed);
        bool is_fixed = strchr(*allowed, '=');
        if (!is_fixed && len && (*allowed)[len - 1] == '*' && strncmp(variable, *allowed, len - 1) == 0 &&
            !is_proxy_setting(variable))
            return true;
        if (strncmp(variable, *allowed, len) == 0 && variable[len] == (is_fixed ? '\0' : '='))
            return true;
    }
    return false;
}

static bool are_variables_allowed(const char *const *allowed, char *const *envp)
{
    for (; allowed && *envp; envp++)
        if (!is_variable_allowed(allowed, *envp))
            return false;
    return true;
}

/* Is the path below a host's folder? A path that ends in a slash, such as that of the folder, names no script. */
static bool is_translated_path_allowed(const struct program_query *q, mk_str path)
{
    return mk_str_ends(path, MK_STR("/")) ||
           mk_sandbox_rules_each(q->generation, match_script_folder, (void *)(uintptr_t)path.p) != 0;
}

static bool is_fixed_variable(const char *const *allowed, const char *variable)
{
    while (allowed && *allowed && strcmp(*allowed, variable) != 0)
        allowed++;
    return allowed && *allowed && strchr(variable, '=');
}

/* An interpreter such as php-cgi takes the script from SCRIPT_FILENAME, or else from PATH_TRANSLATED, and ignores its
 * arguments, even when the `#!` line of a script names it. The administrator may have set the variables. */
static bool are_script_variables_allowed(const struct program_query *q, const char *const *allowed,
                                         const char *script)
{
    const mk_str script_filename = MK_STR("SCRIPT_FILENAME="), path_translated = MK_STR("PATH_TRANSLATED=");
    bool has_script = false, ok = true;
    for (char *const *v = q->envp; *v; v++) {
        mk_str variable = mk_str_from_c(*v), value;
        bool is_fixed = is_fixed_variable(allowed, *v);
        if (mk_str_starts(variable, script_filename)) {
            value = mk_str_skip(variable, script_filename.len);
            has_script = true;
            ok = ok && (is_fixed || mk_str_eq(value, mk_str_from_c(script)));
        } else if (mk_str_starts(variable, path_translated)) {
            value = mk_str_skip(variable, path_translated.len);
            ok = ok && (is_fixed || is_translated_path_allowed(q, value));
        }
    }
    return has_script && ok;
}

static const char *last_argument(char *const *argv)
{
    while (argv[1])
        argv++;
    return *argv;
}

static bool is_program_allowed(const struct program_query *q, const struct mk_program *p)
{
    return are_arguments_allowed(q, p) && are_variables_allowed(p->variables, q->envp) &&
           (!p->takes_script || are_script_variables_allowed(q, p->variables, last_argument(q->argv)));
}

/* A file in a folder of scripts may have any arguments. */
static bool is_script_allowed(const struct program_query *q, const char *const *variables)
{
    return !variables || (are_variables_allowed(variables, q->envp) &&
                          are_script_variables_allowed(q, variables, q->argv[0]));
}

static mk_err match_rule(const struct mk_sandbox_rule *rule, void *ctx)
{
    struct program_query *q = ctx;
    const struct mk_program *p = rule->program;
    if (q->is_allowed || rule->what != MK_SANDBOX_START_PROGRAMS ||
        (p && p->first_worker_only && q->worker != 0))
        return 0;
    q->is_allowed = !q->argv || (is_path_allowed(rule, mk_str_from_c(q->argv[0])) &&
                                 (p ? is_program_allowed(q, p) : is_script_allowed(q, rule->variables)));
    return 0;
}

static bool need_spawner(const struct mk_config_generation *g, unsigned worker)
{
    struct program_query q = {.generation = g, .worker = worker};
    return mk_sandbox_rules_each(g, match_rule, &q) == 0 && q.is_allowed;
}

static bool allow(const struct mk_config_generation *g, unsigned worker, char *const *argv, char *const *envp)
{
    struct program_query q = {.generation = g, .worker = worker, .argv = argv, .envp = envp};
    return mk_sandbox_rules_each(g, match_rule, &q) == 0 && q.is_allowed;
}

const struct mk_program_rules mk_program_rules = {.need_spawner = need_spawner, .allow = allow};

/* ---- Declarations ---- */

static void want_spawner(struct mk_config *c)
{
    struct mk_config_generation *g = c->generation;
    g->program_rules = &mk_program_rules;
    for (const struct mk_sandbox_rule *a = g->allowed; a; a = a->next)
        if (a->what == MK_SANDBOX_START_PROGRAMS && a->by == c->plugin)
            return;
    if (g->embedding)
        mk_config_warn(
            c, NULL, NULL,
            "the plugin `%s` starts subprocesses, which libmonkey does not support: each start will fail",
            c->plugin->object.plugin->name);
}

void mk_config_allow_program_sized(struct mk_config *c, const void *section, const char *key,
                                   const struct mk_program *program, size_t program_size)
{
    struct mk_program *copy = mk_config_alloc(c, sizeof *copy);
    if (!copy)
        return;
    mk_sized_out(copy, sizeof *copy, program, program_size);
    want_spawner(c);
    mk_sandbox_rules_add(c, section, key,
                         (struct mk_sandbox_rule){.what = MK_SANDBOX_START_PROGRAMS,
                                                  .path = mk_str_from_c(copy->path),
                                                  .program = copy});
}

static bool are_lists_equal(const char *const *a, const char *const *b)
{
    if (!a || !b)
        return a == b;
    for (; *a && *b && strcmp(*a, *b) == 0; a++)
        b++;
    return *a == *b;
}

void mk_config_allow_scripts(struct mk_config *c, const char *const *variables)
{
    MK_ASSERT(c->site);
    struct mk_script_permission **at = &c->site->scripts;
    for (; *at; at = &(*at)->next)
        if (are_lists_equal((*at)->variables, variables)) /* each route may have settings of its own */
            return;
    struct mk_script_permission *p = mk_config_alloc(c, sizeof *p);
    if (!p)
        return;
    want_spawner(c);
    p->reason = mk_sandbox_rules_find_reason(c, NULL, NULL);
    p->variables = variables;
    *at = p;
}

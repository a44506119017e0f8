/* SPDX-License-Identifier: Apache-2.0 */
#include "server/cli_plugins.h"

#include "server/options.h"
#include "setup/builtin.h"
#include "setup/plugin_object.h"

bool mk_cli_plugins_can_load(const char *name)
{
    struct mk_plugin_object o;
    char error[MK_PLUGIN_OBJECT_ERROR_MAX];
    bool ok = mk_plugin_object_open(&o, mk_str_from_c(name), error);
    if (ok)
        mk_plugin_object_close(&o);
    return ok;
}

static bool write_plugin_commands(const struct mk_plugin_object *o, void *ctx)
{
    for (const struct mk_command *const *v = o->plugin->commands; v && *v; v++)
        mk_options_write_command(ctx, (*v)->name, (*v)->args, (*v)->help);
    return true;
}

void mk_cli_plugins_write_commands(struct mk_buf *out)
{
    mk_plugin_object_for_each(write_plugin_commands, out);
}

struct suggest_search {
    struct mk_conf_suggest *near;
    char *room; /* buffer for a copy of the best name, because the object that holds that name is closed */
};

static bool suggest_plugin_command(const struct mk_plugin_object *o, void *ctx)
{
    struct suggest_search *t = ctx;
    for (const struct mk_command *const *v = o->plugin->commands; v && *v; v++) {
        mk_str name = mk_str_first(mk_str_from_c((*v)->name), MK_CLI_PLUGINS_COMMAND_MAX);
        mk_conf_suggest_try(t->near, name);
        if (t->near->best.p == name.p)
            t->near->best = mk_str_of(memcpy(t->room, name.p, name.len), name.len);
    }
    return true;
}

void mk_cli_plugins_suggest_command(struct mk_conf_suggest *near, char buf[MK_CLI_PLUGINS_COMMAND_MAX])
{
    mk_plugin_object_for_each(suggest_plugin_command, &(struct suggest_search){.near = near, .room = buf});
}

struct command_search {
    const char *word;
    bool found;
};

static bool find_plugin_command(const struct mk_plugin_object *o, void *ctx)
{
    struct command_search *s = ctx;
    for (const struct mk_command *const *v = o->plugin->commands; v && *v && !s->found; v++)
        s->found = strcmp((*v)->name, s->word) == 0;
    return !s->found;
}

bool mk_cli_plugins_has_command(const char *word)
{
    struct command_search s = {.word = word};
    mk_plugin_object_for_each(find_plugin_command, &s);
    return s.found;
}

struct command_call {
    int argc, *code;
    char **argv;
    bool found;
};

static bool run_plugin_command(const struct mk_plugin_object *o, void *ctx)
{
    struct command_call *c = ctx;
    for (const struct mk_command *const *v = o->plugin->commands; v && *v && !c->found; v++) {
        if (strcmp((*v)->name, c->argv[0]) != 0)
            continue;
        c->found = true;
        *c->code = (*v)->run(c->argc, c->argv);
    }
    return !c->found;
}

bool mk_cli_plugins_run_command(int argc, char **argv, int *code)
{
    struct command_call c = {.argc = argc, .argv = argv, .code = code};
    mk_plugin_object_for_each(run_plugin_command, &c);
    return c.found;
}

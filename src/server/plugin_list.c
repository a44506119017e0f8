/* SPDX-License-Identifier: Apache-2.0 */
#include "server/plugin_list.h"

#include "os/module_path.h"
#include "setup/plugins.h"

/* Writes the list item `name`, after the heading `what` if it is the first one (n is 0). */
static void write_list_item(struct mk_buf *out, const char *what, size_t n, const char *name)
{
    if (n == 0)
        mk_buf_addf(out, "    %-9s", what);
    mk_buf_addf(out, " %s", name);
}

static void end_list_line(struct mk_buf *out, size_t n)
{
    if (n)
        mk_buf_add_char(out, '\n');
}

/* Writes the names of the sections, handlers and commands of a plugin. */
static void write_plugin_contents(struct mk_buf *out, const struct mk_plugin *p)
{
    size_t n = 0;
    for (const struct mk_conf_table *const *t = p->sections; t && *t; t++)
        write_list_item(out, "sections", n++, (*t)->section);
    end_list_line(out, n);
    n = 0;
    for (const struct mk_handler *const *h = p->handlers; h && *h; h++)
        write_list_item(out, "handlers", n++, (*h)->name);
    end_list_line(out, n);
    n = 0;
    for (const struct mk_command *const *v = p->commands; v && *v; v++)
        write_list_item(out, "commands", n++, (*v)->name);
    end_list_line(out, n);
}

static void write_plugin(struct mk_buf *out, const struct mk_plugin *p, const char *path)
{
    mk_buf_addf(out, "%s %s  %s\n    %-9s %s\n", p->name, p->version ? p->version : "",
                p->help ? p->help : "", "from", *path ? path : "this program");
    write_plugin_contents(out, p);
}

static bool write_loadable_plugin(const struct mk_plugin_object *o, void *ctx)
{
    write_plugin(ctx, o->plugin, o->path);
    return true;
}

static void write_no_plugins(struct mk_buf *out)
{
    mk_buf_add(out, MK_STR("No plugin is built into this program or installed in "));
    mk_module_path_list_folders(out);
    mk_buf_add(out, MK_STR(".\n"));
}

void mk_plugin_list_write_all(struct mk_buf *out)
{
    mk_plugin_object_for_each(write_loadable_plugin, out);
    if (out->len == 0)
        write_no_plugins(out);
}

/* ---- Configured plugins ---- */

static bool vhost_has_plugin(const struct mk_vhost *h, const struct mk_plugin *p)
{
    for (size_t i = 0; i < h->n_plugins; i++)
        if (h->plugins[i].plugin == p)
            return true;
    return false;
}

static void write_plugin_vhosts(struct mk_buf *out, const struct mk_config_generation *g,
                                const struct mk_plugin *p)
{
    size_t n = 0;
    for (const struct mk_vhost_config *s = g->sites; s; s = s->next) {
        mk_str name = s->host.n_names ? s->host.names[0] : s->host.written_at;
        if (!vhost_has_plugin(&s->host, p))
            continue;
        if (n++ == 0)
            mk_buf_add(out, MK_STR("    hosts    "));
        mk_buf_addf(out, " %.*s", MK_STR_ARG(name));
    }
    mk_buf_add(out, n ? MK_STR("\n") : MK_STR("    hosts     none: unused\n"));
}

struct hook_stage {
    const char *name;
    size_t offset;
    bool backwards;
};

/* clang-format off */
#define STAGE(hook) {#hook, offsetof(struct mk_plugin, hook), false}
/* clang-format on */

static const struct hook_stage stages[] = {
    STAGE(on_accept), STAGE(on_request), {"on_response", offsetof(struct mk_plugin, on_response), true},
    STAGE(on_error),  STAGE(on_abort),   STAGE(on_done),
    STAGE(on_log),
};

static bool has_hook(const struct mk_plugin *p, size_t offset)
{
    void (*fn)(void);
    memcpy(&fn, (const char *)p + offset, sizeof fn);
    return fn != NULL;
}

static void write_hook_order(struct mk_buf *out, const struct mk_config_generation *g,
                             const struct hook_stage *s)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_plugins; i++) {
        const struct mk_loaded_plugin *l = mk_plugins_at(g, s->backwards ? g->n_plugins - 1 - i : i);
        if (has_hook(l->object.plugin, s->offset))
            write_list_item(out, s->name, n++, l->object.plugin->name);
    }
    end_list_line(out, n);
}

void mk_plugin_list_write_loaded(const struct mk_config_generation *g, struct mk_buf *out)
{
    for (size_t i = 0; i < g->n_plugins; i++) {
        const struct mk_loaded_plugin *l = mk_plugins_at(g, i);
        write_plugin(out, l->object.plugin, l->object.path);
        write_plugin_vhosts(out, g, l->object.plugin);
    }
    if (g->n_plugins == 0)
        mk_buf_add(
            out, MK_STR("This configuration loads no plugins. To list those available: `monkey plugins`.\n"));
    else
        mk_buf_add(out, MK_STR("\nIn the order in which they are called:\n"));
    for (size_t i = 0; i < MK_LEN(stages); i++)
        write_hook_order(out, g, &stages[i]);
}

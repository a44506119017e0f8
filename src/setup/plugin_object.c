/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/plugin_object.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "conf/field.h"
#include "os/crash_probe.h"
#include "os/module_path.h"
#include "os/proc.h"
#include "setup/builtin.h"
#include "setup/config_generation_type.h"
#include "web/hooks.h"

/* Weak: the build of the program defines the list of built-in plugins; unit tests link without it. */
#pragma weak mk_builtin_plugins

static const struct mk_plugin *const *builtin_plugins(void)
{
    static const struct mk_plugin *const none[] = {NULL};
    const struct mk_plugin *const *all = mk_builtin_plugins;
    return all ? all : none;
}

static bool set_error(char message[MK_PLUGIN_OBJECT_ERROR_MAX], const char *fmt, ...) MK_PRINTF(2, 3);

static bool set_error(char message[MK_PLUGIN_OBJECT_ERROR_MAX], const char *fmt, ...)
{
    struct mk_buf text = mk_buf_fixed(message, MK_PLUGIN_OBJECT_ERROR_MAX - 1);
    va_list args;
    va_start(args, fmt);
    mk_buf_addv(&text, fmt, args);
    va_end(args);
    message[text.len] = '\0';
    return false;
}

/* ---- Validation ---- */

static bool is_plugin_name(const char *name)
{
    size_t n = 0;
    while (name[n] && (mk_char_is_digit(name[n]) || (name[n] >= 'a' && name[n] <= 'z') || name[n] == '-'))
        n++;
    return n > 0 && n < 64 && !name[n];
}

/* Is the key invalid? Such a key would make the parser write outside the settings, or use a missing alias or
 * choice. */
static bool is_invalid_key(const struct mk_conf_table *t, const struct mk_conf_key *k)
{
    if (!k->name)
        return true;
    if (k->flags & MK_CONF_IGNORED)
        return false;
    const struct mk_conf_key *real =
        k->alias_of ? mk_conf_table_find(t, mk_str_from_c(k->alias_of), false) : k;
    return !real || real->alias_of || !mk_conf_field_has_valid_size(real) || real->size > t->size ||
           real->offset > t->size - real->size || (real->type == MK_CONF_ENUM && !real->choices);
}

/* Appended to errors about an incompatible object. */
static const char *other_build_hint(void)
{
    return mk_proc_executable_is_replaced()
               ? "; the program on disk is another build than this one: restart the server"
               : "";
}

static bool check_key_table(const struct mk_conf_table *t, char message[MK_PLUGIN_OBJECT_ERROR_MAX])
{
    if (!t->section)
        return set_error(message, "one of its sections has no name");
    for (size_t i = 0; i < t->n; i++)
        if (is_invalid_key(t, &t->keys[i]))
            return set_error(
                message,
                "the key `%s` of its section [%s] is invalid: check its type and MK_CONF_AT, and "
                "the size of the section's struct",
                t->keys[i].name ? t->keys[i].name : "", t->section);
    return true;
}

/* Validates everything here: the rest of the server trusts the contents. */
static bool check_plugin_contents(const struct mk_plugin *p, char message[MK_PLUGIN_OBJECT_ERROR_MAX])
{
    for (const struct mk_conf_table *const *t = p->sections; t && *t; t++)
        if (!check_key_table(*t, message))
            return false;
    for (const struct mk_handler *const *h = p->handlers; h && *h; h++)
        if (!(*h)->name || !(*h)->handle)
            return set_error(message, "one of its handlers lacks its name or its handle()");
    for (const struct mk_command *const *v = p->commands; v && *v; v++)
        if (!(*v)->name || !(*v)->run)
            return set_error(message, "one of its verbs lacks its name or its run()");
    return true;
}

/* Members that every plugin has; later ones were added over time. */
enum { SMALLEST = offsetof(struct mk_plugin, load) };

static bool check_plugin(const struct mk_plugin *p, char message[MK_PLUGIN_OBJECT_ERROR_MAX])
{
    if (p->abi != MK_ABI)
        return set_error(message, "it was built for ABI %u, this server has %u: rebuild it%s", p->abi, MK_ABI,
                         other_build_hint());
    if (p->size > sizeof *p)
        return set_error(
            message, "it was built for a newer server: its struct mk_plugin has %zu bytes, this server's %zu",
            p->size, sizeof *p);
    if (p->size < SMALLEST)
        return set_error(message, "its struct mk_plugin has only %zu bytes: begin it with MK_PLUGIN_HEAD",
                         p->size);
    if (!p->name || !is_plugin_name(p->name))
        return set_error(message, "its name `%s` must consist of lower-case letters, digits and `-`",
                         p->name ? p->name : "");
    return check_plugin_contents(p, message);
}

/* Zero-fills missing members: the rest of the server reads every member. */
static bool copy_to_full_size(struct mk_plugin_object *o, char message[MK_PLUGIN_OBJECT_ERROR_MAX])
{
    if (o->plugin->size == sizeof *o->plugin)
        return true;
    o->widened = mk_mem_zalloc(1, sizeof *o->widened);
    if (!o->widened)
        return set_error(message, "%s", mk_err_text(-ENOMEM));
    memcpy(o->widened, o->plugin, o->plugin->size);
    o->plugin = o->widened;
    return true;
}

/* ---- Files ---- */

static const struct mk_plugin *find_plugin_symbol(void *handle)
{
    return dlsym(handle, "mk_plugin");
}

/* dlopen() returns the object that was loaded under the same name, even if the file was replaced since: it
 * opens only unknown names. This function therefore adds slashes and dots that encode the inode of the file,
 * which yields a unique name for the same file. */
static bool unique_path_by_inode(const char *path, char name[PATH_MAX])
{
    struct stat st;
    const char *base = strrchr(path, '/');
    struct mk_buf text = mk_buf_fixed(name, PATH_MAX - 1);
    if (!base || stat(path, &st) < 0)
        return false;
    mk_buf_add(&text, mk_str_of(path, (size_t)(base - path)));
    for (uint64_t bits = st.st_ino; bits; bits >>= 1)
        mk_buf_add(&text, bits & 1 ? MK_STR("/.") : MK_STR("/"));
    mk_buf_add(&text, mk_str_from_c(base));
    name[text.len] = '\0';
    return !text.failed;
}

static void *dlopen_fresh(const char *path)
{
    char name[PATH_MAX];
    void *loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (!loaded)
        return dlopen(path, RTLD_NOW | RTLD_LOCAL);
    dlclose(loaded);
    return dlopen(unique_path_by_inode(path, name) ? name : path, RTLD_NOW | RTLD_LOCAL);
}

enum { TRIAL_S = 10 };

static void probe_object(void *ctx)
{
    char message[MK_PLUGIN_OBJECT_ERROR_MAX];
    void *handle = dlopen_fresh(ctx);
    const struct mk_plugin *p = handle ? find_plugin_symbol(handle) : NULL;
    if (p)
        (void)!check_plugin(p, message); /* only a crash matters here: the caller reports errors */
}

/* Loading a badly broken object can crash the process, so a child process loads it first. */
static bool survives_probe(char *path, char message[MK_PLUGIN_OBJECT_ERROR_MAX])
{
    int e = mk_crash_probe_run(probe_object, path, TRIAL_S);
    if (e == SIGALRM)
        return set_error(message, "it is broken: loading it takes longer than %d seconds", TRIAL_S);
    if (e > 0)
        return set_error(message, "it is broken: loading it crashes with signal %d%s", e, other_build_hint());
    if (e == -ECANCELED)
        return set_error(message, "it is broken: loading it exits the program");
    return e ? set_error(message, "cannot start a process to try it out: %s", mk_err_text(e)) : true;
}

/* Programs that link libmonkey.a export its functions to plugins only with -rdynamic, static programs
 * never. */
static bool fail_to_load(char message[MK_PLUGIN_OBJECT_ERROR_MAX], const char *error)
{
    const char *symbol = error ? strstr(error, "undefined symbol: mk_") : NULL;
    if (!symbol)
        return set_error(message, "%s", error ? error : "loading it failed");
    symbol += strlen("undefined symbol: ");
    return set_error(
        message,
        "this program has no %.*s() for plugins: it is another build of Monkey than the plugin, or "
        "it is static "
        "and needs the plugin built in (MK_PLUGINS_STATIC)",
        (int)strcspn(symbol, " ,()"), symbol);
}

static bool open_object_file(struct mk_plugin_object *o, char message[MK_PLUGIN_OBJECT_ERROR_MAX])
{
    struct stat st;
    if (stat(o->path, &st) < 0)
        return set_error(message, "%s", mk_err_text(mk_err_last()));
    if (!S_ISREG(st.st_mode))
        return set_error(message, "it is not a file");
    if (!survives_probe(o->path, message))
        return false;
    o->handle = dlopen_fresh(o->path);
    if (!o->handle)
        return fail_to_load(message, dlerror());
    o->plugin = find_plugin_symbol(o->handle);
    bool ok = o->plugin ? check_plugin(o->plugin, message) && copy_to_full_size(o, message)
                        : set_error(message, "it has no symbol `mk_plugin`: not a plugin of Monkey 2");
    if (!ok)
        mk_plugin_object_close(o);
    return ok;
}

/* A built-in plugin takes precedence over a file of that name. */
static const struct mk_plugin *find_builtin_plugin(mk_str name)
{
    const struct mk_plugin *const *p = builtin_plugins();
    while (*p && !mk_str_eq(mk_str_from_c((*p)->name), name))
        p++;
    return *p;
}

bool mk_plugin_object_open(struct mk_plugin_object *o, mk_str name, char message[MK_PLUGIN_OBJECT_ERROR_MAX])
{
    *o = (struct mk_plugin_object){0};
    if (mk_str_find(name, '/') != MK_STR_NONE) {
        if (!mk_module_path_format(o->path, "%.*s", MK_STR_ARG(name)))
            return set_error(message, "its name is too long");
        return open_object_file(o, message);
    }
    o->plugin = find_builtin_plugin(name);
    if (o->plugin)
        return true;
    if (mk_module_path_find(name, o->path))
        return open_object_file(o, message);
    char buf[MK_PLUGIN_OBJECT_ERROR_MAX / 2];
    struct mk_buf folders = mk_buf_fixed(buf, sizeof buf);
    mk_module_path_list_folders(&folders);
    return set_error(message,
                     "it is not built in, and " MK_MODULE_PATH_PREFIX "%.*s" MK_MODULE_PATH_SUFFIX
                     " is not in %.*s",
                     MK_STR_ARG(name), MK_STR_ARG(mk_buf_str(&folders)));
}

bool mk_plugin_object_open_needed(struct mk_plugin_object *o, const struct mk_plugin_object *by, mk_str name,
                                  char message[MK_PLUGIN_OBJECT_ERROR_MAX])
{
    char beside[PATH_MAX];
    const char *base = strrchr(by->path, '/');
    if (base && !find_builtin_plugin(name) &&
        mk_module_path_format(beside, "%.*s/" MK_MODULE_PATH_PREFIX "%.*s" MK_MODULE_PATH_SUFFIX,
                              (int)(base - by->path), by->path, MK_STR_ARG(name)) &&
        access(beside, F_OK) == 0)
        name = mk_str_from_c(beside);
    return mk_plugin_object_open(o, name, message);
}

bool mk_plugin_object_from_program(struct mk_plugin_object *o, const struct mk_plugin *plugin,
                                   char message[MK_PLUGIN_OBJECT_ERROR_MAX])
{
    *o = (struct mk_plugin_object){.plugin = plugin};
    return check_plugin(plugin, message) && copy_to_full_size(o, message);
}

void mk_plugin_object_close(struct mk_plugin_object *o)
{
    mk_mem_free(o->widened);
    if (o->handle)
        dlclose(o->handle);
    *o = (struct mk_plugin_object){0};
}

/* ---- All available plugins ---- */

static bool for_each_in_folder(const char *folder, bool (*each)(const struct mk_plugin_object *o, void *ctx),
                               void *ctx)
{
    char pattern[PATH_MAX], message[MK_PLUGIN_OBJECT_ERROR_MAX];
    glob_t found;
    bool goes_on = true;
    if (!mk_module_path_format(pattern, "%s/" MK_MODULE_PATH_PREFIX "*" MK_MODULE_PATH_SUFFIX, folder) ||
        glob(pattern, 0, NULL, &found) != 0)
        return true;
    for (size_t i = 0; goes_on && i < found.gl_pathc; i++) {
        struct mk_plugin_object o;
        if (mk_plugin_object_open(&o, mk_str_from_c(found.gl_pathv[i]), message)) {
            goes_on = find_builtin_plugin(mk_str_from_c(o.plugin->name)) || each(&o, ctx);
            mk_plugin_object_close(&o);
        }
    }
    globfree(&found);
    return goes_on;
}

void mk_plugin_object_for_each(bool (*each)(const struct mk_plugin_object *o, void *ctx), void *ctx)
{
    char folder[PATH_MAX];
    for (const struct mk_plugin *const *p = builtin_plugins(); *p; p++)
        if (!each(&(struct mk_plugin_object){.plugin = *p}, ctx))
            return;
    /* Only the first readable folder counts: a program in its build tree does not list installed plugins. */
    for (unsigned i = 0; i < MK_MODULE_PATH_FOLDERS; i++)
        if (mk_module_path_folder(i, folder) && access(folder, R_OK) == 0) {
            for_each_in_folder(folder, each, ctx);
            return;
        }
}

/* ---- Plugins of a generation ---- */

const struct mk_loaded_plugin *mk_plugin_list_find(const struct mk_config_generation *g,
                                                   const struct mk_plugin *plugin)
{
    const struct mk_loaded_plugin *l = g->plugins;
    while (l && !mk_hook_is_of_plugin(l->object.plugin, plugin))
        l = l->next;
    return l;
}

const struct mk_loaded_plugin *mk_plugin_list_find_name(const struct mk_config_generation *g,
                                                        const char *name)
{
    const struct mk_loaded_plugin *l = g->plugins;
    while (l && strcmp(l->object.plugin->name, name) != 0)
        l = l->next;
    return l;
}

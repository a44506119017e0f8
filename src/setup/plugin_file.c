/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/plugin_file.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "os/crash_probe.h"
#include "os/module_path.h"

static const struct mk_plugin *find_plugin_symbol(void *handle)
{
    return dlsym(handle, "mk_plugin");
}

/* dlopen() returns the object that was loaded under the same name, even if the file has been replaced since.
 * This function therefore encodes the inode of the file in extra slashes and dots in the path: a replaced
 * file gets a different name. */
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
        (void)!mk_plugin_check(p, message); /* only a crash matters here: the caller reports errors */
}

/* Loading a badly broken object can crash the process, so a child process loads it first. */
static bool survives_probe(char *path, char message[MK_PLUGIN_OBJECT_ERROR_MAX])
{
    int e = mk_crash_probe_run(probe_object, path, TRIAL_S);
    if (e == SIGALRM)
        return mk_plugin_check_set_error(message, "it is broken: loading it takes longer than %d seconds",
                                         TRIAL_S);
    if (e > 0)
        return mk_plugin_check_set_error(message, "it is broken: loading it crashes with signal %d%s", e,
                                         mk_plugin_check_build_hint());
    if (e == -ECANCELED)
        return mk_plugin_check_set_error(message, "it is broken: loading it exits the program");
    return e ? mk_plugin_check_set_error(message, "cannot start a process that tests it: %s", mk_err_text(e))
             : true;
}

/* Packages of Duda have no soname: Duda checks DUDA_ABI instead. But if a package lacks a function, dlopen()
 * fails before Duda can check DUDA_ABI. */
static bool fail_without_duda_function(char message[MK_PLUGIN_OBJECT_ERROR_MAX], const char *symbol)
{
    return mk_plugin_check_set_error(
        message,
        "none of the packages that it links has %.*s(): link the package of this "
        "function, or build it again for this release of Duda",
        (int)strcspn(symbol, " ,()"), symbol);
}

/* Programs that link libmonkey.a export its functions to plugins only if they are linked with -rdynamic;
 * static programs never export any. */
static bool fail_to_load(char message[MK_PLUGIN_OBJECT_ERROR_MAX], const char *error)
{
    const char *symbol = error ? strstr(error, "undefined symbol: duda_") : NULL;
    if (symbol)
        return fail_without_duda_function(message, symbol + strlen("undefined symbol: "));
    symbol = error ? strstr(error, "undefined symbol: mk_") : NULL;
    if (!symbol)
        return mk_plugin_check_set_error(message, "%s", error ? error : "loading it failed");
    symbol += strlen("undefined symbol: ");
    return mk_plugin_check_set_error(
        message,
        "this program has no %.*s() for plugins: it and the plugin are from different builds of Monkey, "
        "or it is static and needs the plugin built in (MK_PLUGINS_STATIC)",
        (int)strcspn(symbol, " ,()"), symbol);
}

void mk_plugin_file_close(struct mk_plugin_object *o)
{
    dlclose(o->handle);
    mk_mem_free(o->widened);
    *o = (struct mk_plugin_object){0};
}

static bool open_object_file(struct mk_plugin_object *o, char message[MK_PLUGIN_OBJECT_ERROR_MAX])
{
    struct stat st;
    if (stat(o->path, &st) < 0)
        return mk_plugin_check_set_error(message, "%s", mk_err_text(mk_err_last()));
    if (!S_ISREG(st.st_mode))
        return mk_plugin_check_set_error(message, "it is not a file");
    if (!survives_probe(o->path, message))
        return false;
    o->handle = dlopen_fresh(o->path);
    if (!o->handle)
        return fail_to_load(message, dlerror());
    o->plugin = find_plugin_symbol(o->handle);
    bool ok = o->plugin ? mk_plugin_check(o->plugin, message) && mk_plugin_check_copy_to_full_size(o, message)
                        : mk_plugin_check_set_error(
                              message,
                              "it has no symbol `mk_plugin`: it is a library, or not a plugin of Monkey 2");
    if (!ok)
        mk_plugin_file_close(o);
    return ok;
}

bool mk_plugin_file_open(struct mk_plugin_object *o, mk_str path, char message[MK_PLUGIN_OBJECT_ERROR_MAX])
{
    if (!mk_module_path_format(o->path, "%.*s", MK_STR_ARG(path)))
        return mk_plugin_check_set_error(message, "its name is too long");
    return open_object_file(o, message);
}

bool mk_plugin_file_open_by_name(struct mk_plugin_object *o, mk_str name,
                                 char message[MK_PLUGIN_OBJECT_ERROR_MAX])
{
    char buf[MK_PLUGIN_OBJECT_ERROR_MAX / 2];
    struct mk_buf folders = mk_buf_fixed(buf, sizeof buf);
    if (mk_module_path_find(name, o->path))
        return open_object_file(o, message);
    mk_module_path_list_folders(&folders);
    return mk_plugin_check_set_error(message,
                                     "it is not built in, and " MK_MODULE_PATH_PREFIX
                                     "%.*s" MK_MODULE_PATH_SUFFIX " is not in %.*s",
                                     MK_STR_ARG(name), MK_STR_ARG(mk_buf_str(&folders)));
}

bool mk_plugin_file_is_beside(const struct mk_plugin_object *by, mk_str name, char path[PATH_MAX])
{
    const char *base = strrchr(by->path, '/');
    return base &&
           mk_module_path_format(path, "%.*s/" MK_MODULE_PATH_PREFIX "%.*s" MK_MODULE_PATH_SUFFIX,
                                 (int)(base - by->path), by->path, MK_STR_ARG(name)) &&
           access(path, F_OK) == 0;
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
        struct mk_plugin_object o = {0};
        if (mk_plugin_file_open(&o, mk_str_from_c(found.gl_pathv[i]), message)) {
            goes_on = each(&o, ctx);
            mk_plugin_file_close(&o);
        }
    }
    globfree(&found);
    return goes_on;
}

void mk_plugin_file_for_each(bool (*each)(const struct mk_plugin_object *o, void *ctx), void *ctx)
{
    char folder[PATH_MAX];
    /* Only the first readable folder counts: a program in its build tree does not list installed plugins. */
    for (unsigned i = 0; i < MK_MODULE_PATH_FOLDERS; i++)
        if (mk_module_path_folder(i, folder) && access(folder, R_OK) == 0) {
            for_each_in_folder(folder, each, ctx);
            return;
        }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "os/module_path.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/platform.h"

/* Protects `chosen`: the servers of one program may start in different threads. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char chosen[PATH_MAX]; /* empty: none */

bool mk_module_path_format(char path[PATH_MAX], const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(path, PATH_MAX, fmt, args);
    va_end(args);
    return len > 0 && len < PATH_MAX;
}

/* Finds the file that contains our code. */
static bool own_code_path(char path[PATH_MAX])
{
    Dl_info own;
    if (!mk_platform.owns_process) /* the library, or the program that it is linked into */
        return dladdr((void *)(uintptr_t)own_code_path, &own) && own.dli_fname &&
               realpath(own.dli_fname, path);
    ssize_t len = readlink("/proc/self/exe", path, PATH_MAX - 1);
    path[len > 0 ? len : 0] = '\0';
    return len > 0;
}

bool mk_module_path_set_folder(const char *folder)
{
    pthread_mutex_lock(&lock);
    chosen[0] = '\0';
    bool ok = !folder || mk_module_path_format(chosen, "%s", folder);
    pthread_mutex_unlock(&lock);
    return ok;
}

static bool get_chosen_folder(char path[PATH_MAX])
{
    pthread_mutex_lock(&lock);
    memcpy(path, chosen, sizeof chosen);
    pthread_mutex_unlock(&lock);
    return *path != '\0';
}

/* Finds the folder of the file that contains our code, and appends `below`. */
static bool folder_beside_own_code(const char *below, char path[PATH_MAX])
{
    char file[PATH_MAX];
    if (!own_code_path(file))
        return false;
    mk_str rest = mk_str_from_c(file);
    mk_str folder = mk_str_first(rest, mk_str_find_last(rest, '/'));
    return mk_module_path_format(path, "%.*s/%s", MK_STR_ARG(folder), below);
}

bool mk_module_path_folder(unsigned i, char path[PATH_MAX])
{
    char moved[PATH_MAX];
    if (get_chosen_folder(path))
        return i == 0;
    if (i == 0) /* the mark proves that the folder is ours, not that of another program */
        return folder_beside_own_code("plugins/" MK_MODULE_PATH_BUILD_MARK, moved) &&
               access(moved, F_OK) == 0 && folder_beside_own_code("plugins", path);
    if (i == 1) /* realpath() removes `..`, because messages contain the path */
        return folder_beside_own_code(mk_platform.owns_process ? MK_PLUGIN_DIR_FROM_PROGRAM : "monkey",
                                      moved) &&
               realpath(moved, path) && strcmp(path, MK_PLUGIN_DIR) != 0;
    return mk_module_path_format(path, "%s", MK_PLUGIN_DIR);
}

void mk_module_path_list_folders(struct mk_buf *out)
{
    char folder[PATH_MAX];
    unsigned found[MK_MODULE_PATH_FOLDERS], n = 0;
    for (unsigned i = 0; i < MK_MODULE_PATH_FOLDERS; i++)
        if (mk_module_path_folder(i, folder))
            found[n++] = i;
    for (unsigned i = 0; i < n && mk_module_path_folder(found[i], folder); i++)
        mk_buf_addf(out, "%s%s", i == 0 ? "" : i + 1 < n ? ", " : " or ", folder);
}

bool mk_module_path_find(mk_str name, char path[PATH_MAX])
{
    char folder[PATH_MAX];
    for (unsigned i = 0; i < MK_MODULE_PATH_FOLDERS; i++)
        if (mk_module_path_folder(i, folder) &&
            mk_module_path_format(path, "%s/" MK_MODULE_PATH_PREFIX "%.*s" MK_MODULE_PATH_SUFFIX, folder,
                                  MK_STR_ARG(name)) &&
            access(path, F_OK) == 0)
            return true;
    return false;
}

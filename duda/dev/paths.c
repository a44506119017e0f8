/* SPDX-License-Identifier: Apache-2.0 */
#include "paths.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PARENTS = 4 };

bool dev_paths_format(char path[PATH_MAX], const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(path, PATH_MAX, fmt, args);
    va_end(args);
    return len > 0 && len < PATH_MAX;
}

static bool find_own_program(struct dev_paths *p)
{
    ssize_t len = readlink("/proc/self/exe", p->program, sizeof p->program - 1);
    if (len <= 0)
        return false;
    p->program[len] = '\0';
    return true;
}

static bool file_exists(const char *folder, const char *name)
{
    char path[PATH_MAX];
    return dev_paths_format(path, "%s/%s", folder, name) && access(path, R_OK) == 0;
}

/* The headers are in include/ of the build tree or the installation prefix, a few levels above the objects,
 * which are in PREFIX/lib/monkey, PREFIX/lib/MACHINE/monkey or build/PRESET/plugins. */
static bool find_include_dirs(struct dev_paths *p, const char *from)
{
    char folder[PATH_MAX];
    if (!realpath(from, folder))
        return false;
    for (unsigned i = 0; i < PARENTS; i++) {
        char *slash = strrchr(folder, '/');
        if (!slash || slash == folder)
            return false;
        *slash = '\0';
        if (!file_exists(folder, "include/monkey/plugin.h"))
            continue;
        bool ok = dev_paths_format(p->headers[p->n_headers++], "%s/include", folder);
        if (ok && file_exists(folder, "duda/include/duda.h"))
            ok = dev_paths_format(p->headers[p->n_headers++], "%s/duda/include", folder);
        return ok;
    }
    return false;
}

static bool find_plugin_objects(struct dev_paths *p)
{
    static const char here = 0; /* its address is in our shared object */
    Dl_info info;
    char own[PATH_MAX];
    if (!dladdr(&here, &info) || !info.dli_fname || !realpath(info.dli_fname, own))
        return false;
    *strrchr(own, '/') = '\0';
    bool found = find_include_dirs(p, info.dli_fname);
    /* If this code is linked into the program, the objects are in the plugin folder of the program. */
    bool is_there = dev_paths_format(p->objects, "%s", own) && file_exists(p->objects, "monkey-duda.so");
    if (!is_there)
        is_there =
            dev_paths_format(p->objects, "%s/plugins", own) && file_exists(p->objects, "monkey-duda.so");
    if (!is_there)
        is_there =
            dev_paths_format(p->objects, "%s", MK_PLUGIN_DIR) && file_exists(p->objects, "monkey-duda.so");
    if (!is_there)
        p->objects[0] = '\0';
    return found;
}

/* ---- The cache ---- */

static bool is_private_dir(const struct stat *st)
{
    return S_ISDIR(st->st_mode) && st->st_uid == geteuid() && (st->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* Creates a folder that only its owner may write to, because objects in the cache are loaded and executed. */
static bool make_owned_dir(const char *folder)
{
    struct stat st;
    if (mkdir(folder, 0700) < 0 && errno != EEXIST)
        return false;
    return stat(folder, &st) == 0 && is_private_dir(&st);
}

bool dev_paths_make_private_dir(const char *folder)
{
    struct stat st;
    if (mkdir(folder, 0700) < 0 && errno != EEXIST)
        return false;
    return lstat(folder, &st) == 0 && is_private_dir(&st);
}

static bool find_cache_dir(struct dev_paths *p)
{
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char top[PATH_MAX], middle[PATH_MAX];
    bool in_home = (base && *base == '/') || (home && *home == '/');
    bool ok = base && *base == '/'   ? dev_paths_format(top, "%s", base)
              : home && *home == '/' ? dev_paths_format(top, "%s/.cache", home)
                                     : dev_paths_format(top, "/tmp/monkey-%u", (unsigned)geteuid());
    if (ok && in_home)
        (void)mkdir(top, 0700);
    else
        ok = ok && dev_paths_make_private_dir(top);
    return ok && dev_paths_format(middle, "%s/monkey", top) && make_owned_dir(middle) &&
           dev_paths_format(p->cache, "%s/duda", middle) && make_owned_dir(p->cache) &&
           access(p->cache, W_OK) == 0;
}

static bool report_path_error(const char *problem, const char *about)
{
    fprintf(stderr, "monkey: %s%s\n", problem, about);
    return false;
}

bool dev_paths_find(struct dev_paths *p)
{
    *p = (struct dev_paths){0};
    if (!find_own_program(p))
        return report_path_error("cannot find the folder of the program:  ", "/proc is not readable");
    if (!find_plugin_objects(p))
        return report_path_error("there is no include/monkey/plugin.h near ",
                                 "the program: services need the headers that `make install` installs");
    if (!find_cache_dir(p))
        return report_path_error(
            "cannot use the cache folder, monkey/duda in XDG_CACHE_HOME, ~/.cache or /tmp/monkey-UID: ",
            "you must own it, and only you may have write permission");
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "places.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PARENTS = 4 };

bool dev_places_print(char path[PATH_MAX], const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(path, PATH_MAX, fmt, args);
    va_end(args);
    return len > 0 && len < PATH_MAX;
}

static bool find_program(struct dev_places *p)
{
    ssize_t len = readlink("/proc/self/exe", p->program, sizeof p->program - 1);
    if (len <= 0)
        return false;
    p->program[len] = '\0';
    return true;
}

static bool exists(const char *folder, const char *name)
{
    char path[PATH_MAX];
    return dev_places_print(path, "%s/%s", folder, name) && access(path, R_OK) == 0;
}

/* The headers are in include/ of the folder that the build or the installation is in: some folders above the
 * objects, PREFIX/lib/monkey or PREFIX/lib/MACHINE/monkey, build/PRESET/plugins. */
static bool find_headers(struct dev_places *p, const char *from)
{
    char folder[PATH_MAX];
    if (!realpath(from, folder))
        return false;
    for (unsigned i = 0; i < PARENTS; i++) {
        char *slash = strrchr(folder, '/');
        if (!slash || slash == folder)
            return false;
        *slash = '\0';
        if (!exists(folder, "include/monkey/plugin.h"))
            continue;
        bool ok = dev_places_print(p->headers[p->n_headers++], "%s/include", folder);
        if (ok && exists(folder, "duda/include/duda.h"))
            ok = dev_places_print(p->headers[p->n_headers++], "%s/duda/include", folder);
        return ok;
    }
    return false;
}

static bool find_objects(struct dev_places *p)
{
    static const char here = 0; /* an address in the object that this is a part of */
    Dl_info info;
    char own[PATH_MAX];
    if (!dladdr(&here, &info) || !info.dli_fname || !realpath(info.dli_fname, own))
        return false;
    *strrchr(own, '/') = '\0';
    bool found = find_headers(p, info.dli_fname);
    /* Where this is built into the program, they are where the program looks for objects. */
    bool is_there = dev_places_print(p->objects, "%s", own) && exists(p->objects, "monkey-duda.so");
    if (!is_there)
        is_there = dev_places_print(p->objects, "%s/plugins", own) && exists(p->objects, "monkey-duda.so");
    if (!is_there)
        is_there = dev_places_print(p->objects, "%s", MK_PLUGIN_DIR) && exists(p->objects, "monkey-duda.so");
    if (!is_there)
        p->objects[0] = '\0';
    return found;
}

/* ---- The cache ---- */

static bool is_private(const struct stat *st)
{
    return S_ISDIR(st->st_mode) && st->st_uid == geteuid() && (st->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* What is in the cache is loaded and run: only its owner may write there. */
static bool make(const char *folder)
{
    struct stat st;
    if (mkdir(folder, 0700) < 0 && errno != EEXIST)
        return false;
    return stat(folder, &st) == 0 && is_private(&st);
}

bool dev_places_make_private(const char *folder)
{
    struct stat st;
    if (mkdir(folder, 0700) < 0 && errno != EEXIST)
        return false;
    return lstat(folder, &st) == 0 && is_private(&st);
}

static bool find_cache(struct dev_places *p)
{
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char top[PATH_MAX], middle[PATH_MAX];
    bool in_home = (base && *base == '/') || (home && *home == '/');
    bool ok = base && *base == '/'   ? dev_places_print(top, "%s", base)
              : home && *home == '/' ? dev_places_print(top, "%s/.cache", home)
                                     : dev_places_print(top, "/tmp/monkey-%u", (unsigned)geteuid());
    if (ok && in_home)
        (void)mkdir(top, 0700);
    else
        ok = ok && dev_places_make_private(top);
    return ok && dev_places_print(middle, "%s/monkey", top) && make(middle) &&
           dev_places_print(p->cache, "%s/duda", middle) && make(p->cache) && access(p->cache, W_OK) == 0;
}

static bool complain(const char *what, const char *about)
{
    fprintf(stderr, "monkey: %s%s\n", what, about);
    return false;
}

bool dev_places_find(struct dev_places *p)
{
    *p = (struct dev_places){0};
    if (!find_program(p))
        return complain("cannot tell where the program is: ", "/proc is not readable");
    if (!find_objects(p))
        return complain("there is no include/monkey/plugin.h near ",
                        "the program: services need the headers that `make install` installs");
    if (!find_cache(p))
        return complain("cannot use the folder for what is compiled, monkey/duda in XDG_CACHE_HOME, ~/.cache "
                        "or /tmp/monkey-UID: ",
                        "it must be yours, and only you may write there");
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "os/module.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "os/place.h"

static void say_other_build(const char *path, char *why)
{
    (void)snprintf(why, MK_MODULE_WHY, "%.400s: it belongs to another build of Monkey", path);
}

static const void *check(const struct mk_module *m, const void *table, const char *path, char *why)
{
    if (table && *(const unsigned *)table == m->abi)
        return table;
    if (table)
        say_other_build(path, why);
    else
        (void)snprintf(why, MK_MODULE_WHY, "%.400s: it is not a part of Monkey: it has no %s", path,
                       m->symbol);
    return NULL;
}

/* Never closed: exit handlers of libraries point into it. */
const void *mk_module_load(const struct mk_module *m, char why[MK_MODULE_WHY])
{
    char path[PATH_MAX];
    if (m->built_in)
        return check(m, m->built_in, "the one built in", why);
    if (!mk_place_find(mk_str_from_c(m->name), path)) {
        (void)snprintf(why, MK_MODULE_WHY,
                       "there is no monkey-%s.so, neither beside the program nor in " MK_PLUGIN_DIR
                       ": Monkey was built without %s, or this part is not installed",
                       m->name, m->needs);
        return NULL;
    }
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (object)
        return check(m, dlsym(object, m->symbol), path, why);
    const char *text = dlerror(); /* includes the file name */
    if (text && strstr(text, "undefined symbol: mk_"))
        say_other_build(path, why);
    else
        (void)snprintf(why, MK_MODULE_WHY, "%.500s", text ? text : path);
    return NULL;
}

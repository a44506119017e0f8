/* SPDX-License-Identifier: Apache-2.0 */
#include "os/module.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "os/module_path.h"

static void explain_other_build(const char *path, char *error)
{
    (void)snprintf(error, MK_MODULE_WHY, "%.400s: it belongs to another build of Monkey", path);
}

static void explain_missing(const struct mk_module *m, char *error)
{
    char buf[MK_MODULE_WHY / 2];
    struct mk_buf folders = mk_buf_fixed(buf, sizeof buf);
    mk_module_path_list_folders(&folders);
    (void)snprintf(error, MK_MODULE_WHY,
                   "monkey-%s.so is not in %.*s: Monkey was built without %s, or this part is not installed",
                   m->name, MK_STR_ARG(mk_buf_str(&folders)), m->needs);
}

static const void *check_module_abi(const struct mk_module *m, const void *table, const char *path,
                                    char *error)
{
    if (table && *(const unsigned *)table == m->abi)
        return table;
    if (table)
        explain_other_build(path, error);
    else
        (void)snprintf(error, MK_MODULE_WHY, "%.400s: it is not a part of Monkey: it has no %s", path,
                       m->symbol);
    return NULL;
}

/* Never closed: exit handlers of libraries point into it. */
const void *mk_module_load(const struct mk_module *m, char error[MK_MODULE_WHY])
{
    char path[PATH_MAX];
    if (m->built_in)
        return check_module_abi(m, m->built_in, "the one built in", error);
    if (!mk_module_path_find(mk_str_from_c(m->name), path)) {
        explain_missing(m, error);
        return NULL;
    }
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (object)
        return check_module_abi(m, dlsym(object, m->symbol), path, error);
    const char *text = dlerror(); /* the text includes the file name */
    if (text && strstr(text, "undefined symbol: mk_"))
        explain_other_build(path, error);
    else
        (void)snprintf(error, MK_MODULE_WHY, "%.500s", text ? text : path);
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "os/module.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "os/module_path.h"

static void format_wrong_build_error(const char *path, char *error)
{
    (void)snprintf(error, MK_MODULE_ERROR_MAX, "%.400s was built for another version of Monkey", path);
}

static void format_missing_module_error(const struct mk_module *m, char *error)
{
    char buf[MK_MODULE_ERROR_MAX / 2];
    struct mk_buf folders = mk_buf_fixed(buf, sizeof buf);
    mk_module_path_list_folders(&folders);
    (void)snprintf(
        error, MK_MODULE_ERROR_MAX,
        "monkey-%s.so is not in %.*s: Monkey was built without %s, or this module is not installed", m->name,
        MK_STR_ARG(mk_buf_str(&folders)), m->needs);
}

static const void *check_module_abi(const struct mk_module *m, const void *table, const char *path,
                                    char *error)
{
    if (table && *(const unsigned *)table == m->abi)
        return table;
    if (table)
        format_wrong_build_error(path, error);
    else
        (void)snprintf(error, MK_MODULE_ERROR_MAX, "%.400s is not a module of Monkey: it has no symbol %s",
                       path, m->symbol);
    return NULL;
}

/* The object is never closed, because exit handlers of its libraries point into it. */
const void *mk_module_load(const struct mk_module *m, char error[MK_MODULE_ERROR_MAX])
{
    char path[PATH_MAX];
    if (m->built_in)
        return check_module_abi(m, m->built_in, "the built-in module", error);
    if (!mk_module_path_find(mk_str_from_c(m->name), path)) {
        format_missing_module_error(m, error);
        return NULL;
    }
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (object)
        return check_module_abi(m, dlsym(object, m->symbol), path, error);
    const char *text = dlerror(); /* the text includes the file name */
    if (text && strstr(text, "undefined symbol: mk_"))
        format_wrong_build_error(path, error);
    else
        (void)snprintf(error, MK_MODULE_ERROR_MAX, "%.500s", text ? text : path);
    return NULL;
}

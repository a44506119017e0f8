/* SPDX-License-Identifier: Apache-2.0 */
/* Stubs for a program that loads no objects (MK_EXPORTS=OFF). */
#include "os/module_path.h"

bool mk_module_path_set_folder(const char *folder)
{
    (void)folder;
    return true;
}

bool mk_module_path_format(char path[PATH_MAX], const char *fmt, ...)
{
    (void)path, (void)fmt;
    return false;
}

bool mk_module_path_folder(unsigned i, char path[PATH_MAX])
{
    (void)i, (void)path;
    return false;
}

void mk_module_path_list_folders(struct mk_buf *out)
{
    mk_buf_add(out, MK_STR("no folder (MK_EXPORTS=OFF)"));
}

bool mk_module_path_find(mk_str name, char path[PATH_MAX])
{
    (void)name, (void)path;
    return false;
}

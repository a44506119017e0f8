/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces plugin_file.c in a program that exports no functions. */
#include "setup/plugin_file.h"

bool mk_plugin_file_open(struct mk_plugin_object *o, mk_str path, char message[MK_PLUGIN_OBJECT_ERROR_MAX])
{
    (void)o, (void)path;
    return mk_plugin_check_set_error(message, "this server was built without loadable plugins (MK_EXPORTS)");
}

bool mk_plugin_file_open_by_name(struct mk_plugin_object *o, mk_str name,
                                 char message[MK_PLUGIN_OBJECT_ERROR_MAX])
{
    (void)o, (void)name;
    return mk_plugin_check_set_error(message, "it is not built in, and this server was built without "
                                              "loadable plugins (MK_EXPORTS)");
}

bool mk_plugin_file_is_beside(const struct mk_plugin_object *by, mk_str name, char path[PATH_MAX])
{
    (void)by, (void)name, (void)path;
    return false;
}

void mk_plugin_file_close(struct mk_plugin_object *o)
{
    (void)o;
}

void mk_plugin_file_for_each(bool (*each)(const struct mk_plugin_object *o, void *ctx), void *ctx)
{
    (void)each, (void)ctx;
}

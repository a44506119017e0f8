/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins in object files; used only by plugin_object.c. A program that exports no functions (MK_EXPORTS=OFF)
 * cannot load any. */
#ifndef MK_SETUP_PLUGIN_FILE_H
#define MK_SETUP_PLUGIN_FILE_H

#include "setup/plugin_check.h"

/* Opens and validates the file. False: it failed; `message` holds the reason. */
bool mk_plugin_file_open(struct mk_plugin_object *o, mk_str path,
                         char message[MK_PLUGIN_OBJECT_ERROR_MAX]) MK_MUST_USE;
/* Like mk_plugin_file_open(), but for monkey-NAME.so in the plugin folders. */
bool mk_plugin_file_open_by_name(struct mk_plugin_object *o, mk_str name,
                                 char message[MK_PLUGIN_OBJECT_ERROR_MAX]) MK_MUST_USE;
/* Is monkey-NAME.so in the folder of `by`? Stores its path in `path`. */
bool mk_plugin_file_is_beside(const struct mk_plugin_object *by, mk_str name,
                              char path[PATH_MAX]) MK_MUST_USE;
void mk_plugin_file_close(struct mk_plugin_object *o);
/* Calls each() for the valid plugins in the first readable plugin folder, until each() returns false. */
void mk_plugin_file_for_each(bool (*each)(const struct mk_plugin_object *o, void *ctx), void *ctx);

#endif

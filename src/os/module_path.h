/* SPDX-License-Identifier: Apache-2.0 */
/* Finds loadable objects, monkey-NAME.so: in the folder that the embedding program specifies; otherwise in
 * the build folder, in the plugin folder relative to the program or the library, which may have been moved,
 * and in the configured installation folder. */
#ifndef MK_OS_MODULE_PATH_H
#define MK_OS_MODULE_PATH_H

#include <limits.h>

#include "base/buf.h"

#define MK_MODULE_PATH_PREFIX "monkey-"
#define MK_MODULE_PATH_SUFFIX ".so"

/* A file that CMake writes to the build folder and does not install. */
#define MK_MODULE_PATH_BUILD_MARK "build-tree"

enum { MK_MODULE_PATH_FOLDERS = 3 };

/* Restricts the search to one folder; NULL: searches the default folders. False if the path is empty or too
 * long. */
bool mk_module_path_set_folder(const char *folder) MK_MUST_USE;

/* Formats a path. False: it is empty or too long. */
bool mk_module_path_format(char path[PATH_MAX], const char *fmt, ...) MK_PRINTF(2, 3) MK_MUST_USE;
/* Returns the i-th folder to search. False: skip this index, because there is no such folder, or a later
 * index has the same folder. */
bool mk_module_path_folder(unsigned i, char path[PATH_MAX]) MK_MUST_USE;
/* Lists all folders to search, for messages: `A, B or C`. */
void mk_module_path_list_folders(struct mk_buf *out);
/* Finds the object with that name. False: no such file exists. */
bool mk_module_path_find(mk_str name, char path[PATH_MAX]) MK_MUST_USE;

#endif

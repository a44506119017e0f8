/* SPDX-License-Identifier: Apache-2.0 */
/* Finds loadable objects, monkey-NAME.so: in the build folder, in the installation around the program or the library,
 * wherever it was moved to, and in the installation folder that was configured. */
#ifndef MK_OS_PLACE_H
#define MK_OS_PLACE_H

#include <limits.h>

#include "base/buf.h"

#define MK_PLACE_PREFIX "monkey-"
#define MK_PLACE_SUFFIX ".so"

enum { MK_PLACE_FOLDERS = 3 };

/* False if the path is empty or too long. */
bool mk_place_print(char path[PATH_MAX], const char *fmt, ...) MK_PRINTF(2, 3) MK_MUST_USE;
/* The i-th folder to search; false if it does not exist around this program, or is the same as a later one. */
bool mk_place_folder(unsigned i, char path[PATH_MAX]) MK_MUST_USE;
/* `A, B or C`: all folders to search, for messages. */
void mk_place_print_folders(struct mk_buf *out);
/* False if no such file exists. */
bool mk_place_find(mk_str name, char path[PATH_MAX]) MK_MUST_USE;

#endif

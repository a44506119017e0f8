/* SPDX-License-Identifier: Apache-2.0 */
/* Finds loadable objects, monkey-NAME.so: beside the program, as in a build, or where they are installed. */
#ifndef MK_OS_PLACE_H
#define MK_OS_PLACE_H

#include <limits.h>

#include "base/str.h"

#define MK_PLACE_PREFIX "monkey-"
#define MK_PLACE_SUFFIX ".so"

enum { MK_PLACE_FOLDERS = 2 };

/* False if the path is empty or too long. */
bool mk_place_print(char path[PATH_MAX], const char *fmt, ...) MK_PRINTF(2, 3) MK_MUST_USE;
/* The file that our code is in: the program. */
bool mk_place_own(char path[PATH_MAX]) MK_MUST_USE;
/* The i-th folder to search; false if its path is unknown. */
bool mk_place_folder(unsigned i, char path[PATH_MAX]) MK_MUST_USE;
/* False if no such file exists. */
bool mk_place_find(mk_str name, char path[PATH_MAX]) MK_MUST_USE;

#endif

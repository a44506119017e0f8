/* SPDX-License-Identifier: Apache-2.0 */
/* The names in a folder. */
#ifndef MK_OS_FOLDER_H
#define MK_OS_FOLDER_H

#include "base/err.h"
#include "base/str.h"

/* Reads an open folder from its beginning, in no order, and calls on_name for each name but `.` and `..`; the
 * name is gone after that. -E2BIG after `most` names, when there are more. */
mk_err mk_folder_read(int fd, unsigned most, void (*on_name)(mk_str name, void *data),
                      void *data) MK_MUST_USE;

#endif

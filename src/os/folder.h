/* SPDX-License-Identifier: Apache-2.0 */
/* Folder listings. */
#ifndef MK_OS_FOLDER_H
#define MK_OS_FOLDER_H

#include "base/err.h"
#include "base/str.h"

/* Reads an open folder from its beginning, unsorted, and calls on_name for each name except `.` and `..`. The
 * name is valid during the call only. -E2BIG if there are more than `most` names. */
mk_err mk_folder_list(int fd, unsigned most, void (*on_name)(mk_str name, void *data),
                      void *data) MK_MUST_USE;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DUDA_SERVICE_DENIED_PATH_H
#define DUDA_SERVICE_DENIED_PATH_H

#include <errno.h>
#include <stdbool.h>

/* Returns the end of a message about a path that cannot be read or written: for errors that the sandbox may have
 * caused, it names the key of [DUDA] that permits the path. */
static inline const char *duda_denied_path_hint(int error, bool is_write)
{
    if (error != -EACCES && error != -EPERM)
        return "";
    return is_write
               ? ": the folder must be in `WritablePaths` of [DUDA], and the user of the workers must be "
                 "permitted to write to it"
               : ": the folder must be in `ReadablePaths` or `WritablePaths` of [DUDA], and the user of the "
                 "workers must be permitted to read it";
}

#endif

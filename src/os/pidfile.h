/* SPDX-License-Identifier: Apache-2.0 */
/* The file with the process ID, locked while the process runs. */
#ifndef MK_OS_PIDFILE_H
#define MK_OS_PIDFILE_H

#include "base/err.h"

/* Writes our pid into the file and keeps it locked while *fd is open. -EBUSY: a running process holds the
 * lock. */
mk_err mk_pidfile_acquire(const char *path, int *fd) MK_MUST_USE;
/* Removes the file if it still contains our pid, and unlocks it. */
void mk_pidfile_release(const char *path, int *fd);

#endif

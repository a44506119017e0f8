/* SPDX-License-Identifier: Apache-2.0 */
/* The private folder for persistent data such as keys. Anyone able to write there could impersonate us, so we
 * reject folders and files that belong to a user other than us or root, or to which other users can write. */
#ifndef MK_OS_STATE_DIR_H
#define MK_OS_STATE_DIR_H

#include <limits.h>

#include "base/buf.h"
#include "base/err.h"

/* Finds the folder: $MONKEY_STATE, or else the first folder of $STATE_DIRECTORY, or else /var/lib/monkey for
 * root, and $XDG_STATE_HOME/monkey or ~/.local/state/monkey for other users. -EINVAL: the chosen path is not
 * absolute. -ENOENT: no home folder. */
mk_err mk_state_dir_path(char buf[PATH_MAX]) MK_MUST_USE;

/* Opens the folder; creates it and its parents if missing. *error is static text. */
mk_err mk_state_dir_open(const char *path, int *dir, const char **error) MK_MUST_USE;

/* Locks the folder against other processes until `dir` is closed. -EBUSY: another process held the lock for
 * longer than `wait_ms`. */
mk_err mk_state_dir_lock(int dir, unsigned wait_ms) MK_MUST_USE;

/* Appends the content of the file to `out`. -ENOENT: missing; -EPERM: rejected, as described above, or not a
 * regular file. If `secret` is true, only the owner may have access to the file. *error is static text. */
mk_err mk_state_dir_read(int dir, const char *name, bool secret, struct mk_buf *out,
                         const char **error) MK_MUST_USE;

/* Replaces the file atomically; it is on disk when this returns 0. Only one process may write at a time: see
 * mk_state_dir_lock. */
mk_err mk_state_dir_write(int dir, const char *name, mode_t mode, mk_str text) MK_MUST_USE;

#endif

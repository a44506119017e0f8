/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of what must outlive the program and is nobody else's business, such as keys. Whoever could put
 * something there could speak in our name: a folder or file that is not ours alone is refused. */
#ifndef MK_OS_STATE_H
#define MK_OS_STATE_H

#include <limits.h>

#include "base/buf.h"
#include "base/err.h"

/* $MONKEY_STATE, the first of $STATE_DIRECTORY, /var/lib/monkey for root, else $XDG_STATE_HOME/monkey or
 * ~/.local/state/monkey. -EINVAL: one that was named is not an absolute path. -ENOENT: there is no home. */
mk_err mk_state_path(char room[PATH_MAX]) MK_MUST_USE;

/* Opens the folder, and makes it with those above it if it is not there. *why is static text. */
mk_err mk_state_open(const char *path, int *dir, const char **why) MK_MUST_USE;

/* Keeps others who do the same waiting until `dir` is closed; -EBUSY when one of them takes longer. */
mk_err mk_state_lock(int dir, unsigned wait_ms) MK_MUST_USE;

/* Appends the file to `out`. -ENOENT: it is not there; -EPERM: it is not ours alone, or no plain file. A
 * `secret` is one that nobody else may read. */
mk_err mk_state_read(int dir, const char *name, bool secret, struct mk_buf *out,
                     const char **why) MK_MUST_USE;

/* Writes it whole or not at all, in the place of what is there; on the disk when this answers 0. For one
 * writer at a time: see mk_state_lock. */
mk_err mk_state_write(int dir, const char *name, mode_t mode, mk_str text) MK_MUST_USE;

#endif

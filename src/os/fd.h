/* SPDX-License-Identifier: Apache-2.0 */
/* File descriptors: flags, limits, closing and writing. */
#ifndef MK_OS_FD_H
#define MK_OS_FD_H

#include "base/err.h"

enum { MK_FD_MAX = 1024 * 1024 };

/* Closes *fd if it is open and sets it to -1. */
void mk_fd_close(int *fd);
mk_err mk_fd_set_nonblock(int fd) MK_MUST_USE;
mk_err mk_fd_set_block(int fd) MK_MUST_USE;
/* Sets whether an exec closes the descriptor. */
mk_err mk_fd_set_cloexec(int fd, bool on) MK_MUST_USE;
/* Closes `first` and all descriptors above it. */
void mk_fd_close_from(int first);
/* Raises the soft RLIMIT_NOFILE to the hard limit, but to at most MK_FD_MAX. */
void mk_fd_raise_limit(void);
/* Restores the original limit before another program runs: select() fails beyond 1024 descriptors. Allowed
 * after vfork(). */
void mk_fd_restore_limit(void);
/* Raises or lowers RLIMIT_NOFILE; 0 leaves it unchanged. Stores the effective limit in *limit. */
mk_err mk_fd_set_limit(uint64_t expected, uint64_t *limit) MK_MUST_USE;
/* Counts the open descriptors below the limit, but stops after 4096 consecutive closed ones. */
unsigned mk_fd_count_open(void);
/* Writes all `len` bytes; may block if the descriptor is in blocking mode. */
mk_err mk_fd_write_all(int fd, const char *p, size_t len) MK_MUST_USE;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Daemon mode: a process in the background, and its standard streams. */
#ifndef MK_OS_DAEMON_H
#define MK_OS_DAEMON_H

#include "base/err.h"

/* Forks into the background. Only the child returns; the parent waits until the child calls
 * mk_daemon_notify_parent() with `ready_fd`, or ends, and exits. */
mk_err mk_daemon_start(int *ready_fd) MK_MUST_USE;
/* Makes the waiting parent exit with `exit_code`, and redirects our standard output and error to
 * /dev/null. */
void mk_daemon_notify_parent(int *ready_fd, int exit_code);
/* Does `fd` refer to a file, so that mk_daemon_redirect_to_null() keeps it? */
bool mk_daemon_keeps(int fd);
/* Redirects `fd` to `null` unless `fd` refers to a file. The terminal may already be closed, and a program
 * that reads a pipe until EOF must not wait for the daemon to exit. */
void mk_daemon_redirect_to_null(int fd, int null);
/* Opens /dev/null for mk_daemon_redirect_to_null(). Call it before a sandbox forbids it. The result is
 * negative on failure; mk_daemon_redirect_to_null() then does nothing. */
int mk_daemon_open_null(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Daemon mode: a process in the background, and its standard streams. */
#ifndef MK_OS_DAEMON_H
#define MK_OS_DAEMON_H

#include "base/err.h"

/* Forks into the background. The parent exits once the other end of `ready_fd` reports (see
 * mk_daemon_notify_parent); only the child returns. */
mk_err mk_daemon_start(int *ready_fd) MK_MUST_USE;
/* Makes the waiting parent exit with that code, and redirects our standard output and error to /dev/null. */
void mk_daemon_notify_parent(int *ready_fd, int exit_code);
/* Redirects `fd` to `null` unless `fd` refers to a file. The terminal may already be closed, and a program
 * that reads a pipe until EOF must not wait for the daemon to exit. */
void mk_daemon_redirect_to_null(int fd, int null);
/* Opens the descriptor for mk_daemon_redirect_to_null early, because a sandbox may forbid it later. With a
 * negative result, mk_daemon_redirect_to_null does nothing. */
int mk_daemon_open_null(void);

#endif

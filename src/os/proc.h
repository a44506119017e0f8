/* SPDX-License-Identifier: Apache-2.0 */
/* Processes: who we are, leaving the terminal, the file that holds our number. */
#ifndef MK_OS_PROC_H
#define MK_OS_PROC_H

#include "base/err.h"
#include "base/str.h"

/* Processors that this process may run on; at least 1. */
unsigned mk_proc_cpus(void);

/* User and group as numbers and names, looked up once, before any privilege is dropped. */
struct mk_identity {
    char user[64];
    uid_t uid;
    gid_t gid;
};

/* -ENOENT when there is no such user. An empty group means the user's own. */
mk_err mk_identity_find(const char *user, const char *group, struct mk_identity *out) MK_MUST_USE;
/* Becomes that user for good: all supplementary groups, all three group ids, all three user ids; then makes
 * sure that there is no way back. */
mk_err mk_identity_become(const struct mk_identity *id) MK_MUST_USE;

/* Other processes of our user can no longer look into our memory. Not where a sanitizer has to. */
void mk_proc_hide(void);

/* Goes into the background: the caller's copy exits when `ready_fd`'s other end says so (see
 * mk_daemon_ready). Answers in the child only. */
mk_err mk_daemon_start(int *ready_fd) MK_MUST_USE;
/* Lets the process that the user started exit with that code, and silences our standard output and error. */
void mk_daemon_ready(int *ready_fd, int exit_code);
/* Nobody reads what we print to `fd` any more, and nobody shall have to wait for us to end it: it leads to
 * nowhere, which `null` is, from now on. Only a file that it leads to stays. */
void mk_daemon_silence(int fd, int null);
/* For the above; a sandbox may not allow it any more. A negative number is passed over there. */
int mk_daemon_open_null(void);

/* Writes our number into the file and keeps it locked as long as *fd is open. -EBUSY: a living process holds
 * it. */
mk_err mk_pidfile_take(const char *path, int *fd) MK_MUST_USE;
/* Removes the file, if it still holds our number, and lets go of it. */
void mk_pidfile_drop(const char *path, int *fd);

/* The name in `ps` and `top`, at most 15 characters. */
void mk_proc_set_name(const char *name);

/* Asks the kernel to send the signal when the parent dies; -ESRCH when it is dead already. */
mk_err mk_proc_die_with_parent(pid_t parent, int signal) MK_MUST_USE;

#endif

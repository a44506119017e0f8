/* SPDX-License-Identifier: Apache-2.0 */
/* The configured pid file, if any. */
#ifndef MK_SERVER_MASTER_PID_FILE_H
#define MK_SERVER_MASTER_PID_FILE_H

#include "base/arena.h"
#include "base/log.h"

struct mk_master_pid_file {
    struct mk_arena arena; /* holds the path, which outlives the configuration */
    mk_str path;           /* absent: no pid file */
    int fd;
};

void mk_master_pid_file_init(struct mk_master_pid_file *p);
void mk_master_pid_file_fini(struct mk_master_pid_file *p);
/* Locks and writes the pid file; does nothing if `path` is empty. Returns an error text, or NULL on
 * success. */
const char *mk_master_pid_file_acquire(struct mk_master_pid_file *p, mk_str path);
void mk_master_pid_file_release(struct mk_master_pid_file *p);
/* Acquires the same file again after mk_master_pid_file_release(). */
void mk_master_pid_file_reacquire(struct mk_master_pid_file *p);
/* Replaces the pid file with another one. On failure, which is logged, the old file stays. */
void mk_master_pid_file_change(struct mk_master_pid_file *p, struct mk_log *log, mk_str path);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The pid file that the configuration names, if it names one. */
#ifndef MK_SERVER_PID_H
#define MK_SERVER_PID_H

#include "base/arena.h"
#include "base/log.h"

struct mk_pid {
    struct mk_arena arena; /* for paths, which outlive the configuration */
    mk_str path;           /* absent: no pid file */
    int fd;
};

void mk_pid_init(struct mk_pid *p);
void mk_pid_fini(struct mk_pid *p);
/* Writes it; `path` is empty: none is wanted. Returns an error text or NULL. */
const char *mk_pid_take(struct mk_pid *p, mk_str path);
void mk_pid_drop(struct mk_pid *p);
/* After mk_pid_drop(). */
void mk_pid_take_again(struct mk_pid *p);
/* Writes another one in its place. If that cannot be done, which is logged, the old one stays. */
void mk_pid_change(struct mk_pid *p, struct mk_log *log, mk_str path);

#endif

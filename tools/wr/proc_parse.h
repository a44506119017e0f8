/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel writes into files of /proc and /sys, as numbers. Opens no file. */
#ifndef WR_PROC_PARSE_H
#define WR_PROC_PARSE_H

#include <sched.h>

#include "base/buf.h"
#include "os/sockaddr.h"

/* /proc/PID/stat: what of it is needed. Times are in ticks of the clock. */
struct wr_stat {
    pid_t pid, parent;
    char name[64];
    char state;
    uint64_t user, system;               /* of the process, with threads that ended */
    uint64_t waited_user, waited_system; /* of children that ended and were waited for, and of theirs */
    uint64_t start;                      /* since boot: tells two processes with one number apart */
};

/* A name may hold anything, blanks and brackets too. */
bool wr_stat_parse(mk_str text, struct wr_stat *out) MK_MUST_USE;
/* A zombie: ended, and its parent has not waited for it yet? */
bool wr_stat_is_dead(const struct wr_stat *s);

/* The number in the line "NAME: 123 kB" or "NAME:\t123", as in status and smaps_rollup. */
bool wr_proc_parse_number(mk_str text, mk_str name, uint64_t *out) MK_MUST_USE;

/* /proc/PID/task/TID/schedstat, in nanoseconds. */
struct wr_schedstat {
    uint64_t ran, waited; /* on a processor; ready to run, but others did */
};
bool wr_schedstat_parse(mk_str text, struct wr_schedstat *out) MK_MUST_USE;

/* The path in the hierarchy of version 2: the line "0::/path" of /proc/PID/cgroup. Absent when there is none.
 */
mk_str wr_proc_parse_cgroup(mk_str text);

/* cpu.stat of such a cgroup, in microseconds. */
struct wr_cpu_stat {
    uint64_t usage, user, system;
};
bool wr_cpu_stat_parse(mk_str text, struct wr_cpu_stat *out) MK_MUST_USE;

struct wr_listener {
    struct mk_sockaddr at;
    uint64_t inode;
    size_t server; /* see listeners.h */
};
/* A line of /proc/net/tcp or tcp6: does it listen on that port? */
bool wr_proc_parse_listener(mk_str line, unsigned port, struct wr_listener *out) MK_MUST_USE;

/* Where the first file system of that type is mounted, by /proc/self/mounts; false when nowhere. */
bool wr_proc_parse_mount(mk_str mounts, mk_str type, struct mk_buf *out) MK_MUST_USE;

/* "0-2,5"; false when it is no such list, or names no core. */
bool wr_proc_parse_cores(mk_str list, cpu_set_t *out) MK_MUST_USE;

#endif

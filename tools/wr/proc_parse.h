/* SPDX-License-Identifier: Apache-2.0 */
/* Parsers for files in /proc and /sys. Opens no files. */
#ifndef WR_PROC_PARSE_H
#define WR_PROC_PARSE_H

#include <sched.h>

#include "base/buf.h"
#include "os/sockaddr.h"

/* The fields of /proc/PID/stat that we need. Times are in clock ticks. */
struct wr_stat {
    pid_t pid, parent;
    char name[64];
    char state;
    uint64_t user, system;               /* CPU time, including that of exited threads */
    uint64_t waited_user, waited_system; /* CPU time of reaped descendants */
    uint64_t start;                      /* time since boot; distinguishes processes that reuse a pid */
};

/* Parses names with any characters, such as spaces and parentheses. */
bool wr_stat_parse(mk_str text, struct wr_stat *out) MK_MUST_USE;
/* Returns whether the process is a zombie. */
bool wr_stat_is_dead(const struct wr_stat *s);

/* Reads the number in "NAME: 123 kB" or "NAME:\t123", as in status and smaps_rollup. */
bool wr_proc_parse_named_number(mk_str text, mk_str name, uint64_t *out) MK_MUST_USE;

/* /proc/PID/task/TID/schedstat, in ns. */
struct wr_schedstat {
    uint64_t ran, waited; /* on a CPU; runnable, but waiting for a CPU */
};
bool wr_schedstat_parse(mk_str text, struct wr_schedstat *out) MK_MUST_USE;

/* Returns the version 2 path: of the line "0::/path" in /proc/PID/cgroup, or MK_STR_NULL. */
mk_str wr_proc_parse_cgroup(mk_str text);

/* cpu.stat of a version 2 cgroup, in microseconds. */
struct wr_cpu_stat {
    uint64_t usage, user, system;
};
bool wr_cpu_stat_parse(mk_str text, struct wr_cpu_stat *out) MK_MUST_USE;

struct wr_listener {
    struct mk_sockaddr at;
    uint64_t inode;
    size_t server; /* number of the server that holds the socket; set by listeners.c */
};
/* Parses a line of /proc/net/tcp or tcp6; returns whether it is a socket that listens on that port. */
bool wr_proc_parse_listener(mk_str line, unsigned port, struct wr_listener *out) MK_MUST_USE;

/* Finds the first mount point of that file system type in /proc/self/mounts; false if there is none. */
bool wr_proc_parse_mount(mk_str mounts, mk_str type, struct mk_buf *out) MK_MUST_USE;

/* Parses a CPU list such as "0-2,5"; false if it is invalid or empty. */
bool wr_proc_parse_cpu_list(mk_str list, cpu_set_t *out) MK_MUST_USE;

#endif

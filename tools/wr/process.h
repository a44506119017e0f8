/* SPDX-License-Identifier: Apache-2.0 */
/* One process of the server and its resource usage as of the last sample. */
#ifndef WR_PROCESS_H
#define WR_PROCESS_H

#include "wr/procfile.h"

struct wr_cpu { /* times in ns; `total` is exact, but user + system has tick resolution */
    uint64_t total, user, system;
};

void wr_cpu_add(struct wr_cpu *to, const struct wr_cpu *what);
/* Returns now - base for each member; 0 where it would be negative. */
struct wr_cpu wr_cpu_diff(const struct wr_cpu *now, const struct wr_cpu *base);
/* Splits the total in proportion to user and system ticks, as the kernel does. */
void wr_cpu_split(const struct wr_cpu *cpu, double *user_us, double *system_us);

struct wr_switches {
    uint64_t voluntary, involuntary;
};

struct wr_thread {
    pid_t tid;
    bool seen;
    struct wr_schedstat run, run_at_start; /* run_at_start: at the start of the shot */
    struct wr_switches switches;
};

struct wr_process {
    pid_t pid, parent;
    uint64_t start;
    char name[64];
    bool is_root; /* selected by pid, port or name, not found as a descendant */
    bool is_gone, is_dead;
    bool is_new; /* found since the last read: its CPU time is not in a sum yet */
    bool pss_is_known;

    struct wr_cpu self, waited, waited_at_first;
    struct wr_cpu vanished; /* last known CPU time of exited children */

    struct wr_thread *threads;
    size_t n_threads, cap_threads;
    struct wr_switches switches_ended; /* context switches of exited threads */
    uint64_t pss_kb, hwm_kb;
};

/* Returns false if the process does not exist. */
bool wr_process_init(struct wr_process *p, pid_t pid) MK_MUST_USE;
void wr_process_fini(struct wr_process *p);

/* Reads CPU time, or notes that the process exited. Cheap. */
void wr_process_read_cpu(struct wr_process *p);
/* Reads run time and context switches of each thread. Returns false if out of memory. */
bool wr_process_read_threads(struct wr_process *p) MK_MUST_USE;
/* Reads memory usage. Expensive: the kernel walks all page tables. */
void wr_process_read_memory(struct wr_process *p);
/* Returns the CPU time of children that exited without being reaped by this process. */
struct wr_cpu wr_process_unreaped_child_cpu(const struct wr_process *p);
struct wr_switches wr_process_switches(const struct wr_process *p);

#endif

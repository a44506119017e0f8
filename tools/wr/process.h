/* SPDX-License-Identifier: Apache-2.0 */
/* One process of the server, and what it used up to the last look at it. */
#ifndef WR_PROCESS_H
#define WR_PROCESS_H

#include "wr/procfile.h"

struct wr_cpu { /* nanoseconds; `total` is exact where user + system count ticks */
    uint64_t total, user, system;
};

void wr_cpu_add(struct wr_cpu *to, const struct wr_cpu *what);
/* What is more than in `base`; 0 where it is less. */
struct wr_cpu wr_cpu_diff(const struct wr_cpu *now, const struct wr_cpu *base);
/* The total split as user and system are, as the kernel does it. */
void wr_cpu_split(const struct wr_cpu *cpu, double *user_us, double *system_us);

struct wr_switches {
    uint64_t voluntary, involuntary;
};

struct wr_thread {
    pid_t tid;
    bool seen;
    struct wr_schedstat run, run_at_start; /* at_start: when the shot began */
    struct wr_switches switches;
};

struct wr_process {
    pid_t pid, parent;
    uint64_t start;
    char name[64];
    bool is_root; /* found by itself, not as a child */
    bool is_gone, is_dead;
    bool is_new; /* the family's time has not been read since it came */
    bool pss_is_known;

    struct wr_cpu self, waited, waited_at_first;
    struct wr_cpu vanished; /* children that ended: what they had used when they were last seen */

    struct wr_thread *threads;
    size_t n_threads, cap_threads;
    struct wr_switches switches_ended; /* of threads that are gone */
    uint64_t pss_kb, hwm_kb;
};

/* False when there is no such process. */
bool wr_process_init(struct wr_process *p, pid_t pid) MK_MUST_USE;
void wr_process_fini(struct wr_process *p);

/* Reads the processor time, or notes that the process is gone. Cheap. */
void wr_process_read_cpu(struct wr_process *p);
/* Reads threads: what ran, and switches. False when memory is out. */
bool wr_process_read_threads(struct wr_process *p) MK_MUST_USE;
/* Reads memory: this makes the kernel walk through all of it. */
void wr_process_read_memory(struct wr_process *p);
/* Time that children used which ended without being waited for. */
struct wr_cpu wr_process_unreaped_cpu(const struct wr_process *p);
struct wr_switches wr_process_switches(const struct wr_process *p);

#endif

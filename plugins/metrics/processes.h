/* SPDX-License-Identifier: Apache-2.0 */
/* The memory, CPU time and file cache of each worker process. Each process reports them itself, because the
 * sandbox prevents workers from inspecting each other. */
#ifndef METRICS_PROCESSES_H
#define METRICS_PROCESSES_H

#include <monkey/plugin.h>
#include <stdatomic.h>

enum { PROCESS_SLOTS = 1024 };

/* The report of the process `pid`. Processes with equal ids modulo PROCESS_SLOTS overwrite each other. */
struct process {
    _Atomic int64_t pid;
    _Atomic uint64_t rss, pss; /* bytes; 0: unknown */
    _Atomic uint64_t cpu_us;   /* CPU time in user and system mode */
    _Atomic uint64_t cache_files, cache_bytes;
};

struct processes {
    struct process at[PROCESS_SLOTS];
};

/* The descriptors of a worker, opened early, before connections use up all descriptors. */
struct process_reporter {
    struct processes *shared;
    int statm_fd, smaps_fd; /* -1: not available */
    int64_t pid;
    uint64_t page;
};

/* Returns NULL if out of memory, which is reported. */
struct processes *metrics_processes_new(struct mk_config *config);

void metrics_process_reporter_open(struct process_reporter *m, struct processes *shared);
void metrics_process_reporter_close(struct process_reporter *m);
void metrics_process_reporter_run(struct process_reporter *m, const struct mk_worker *w);

struct process_info {
    uint64_t rss, pss, cpu_us, cache_files, cache_bytes;
};
/* Returns false if the process has not reported yet. */
bool metrics_processes_find(const struct processes *p, int64_t pid, struct process_info *out);

#endif

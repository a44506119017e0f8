/* SPDX-License-Identifier: Apache-2.0 */
/* What each worker process tells of itself, since the sandbox lets nobody look at the others: its memory and
 * its cache of files. And how often the configuration was loaded. */
#ifndef METRICS_PROCESSES_H
#define METRICS_PROCESSES_H

#include <monkey/plugin.h>
#include <stdatomic.h>

enum { PROCESS_SLOTS = 1024 };

/* Of the process whose id is in it; two whose ids are the same modulo PROCESS_SLOTS take turns. */
struct process {
    _Atomic int64_t pid;
    _Atomic uint64_t rss, pss; /* bytes; 0: not known */
    _Atomic uint64_t cache_files, cache_bytes;
};

struct processes {
    _Atomic uint32_t loads;   /* configurations that were read, taken or not */
    _Atomic uint32_t serving; /* the latest of them that workers began with */
    _Atomic uint64_t reloads; /* how many were taken after the first one */
    _Atomic int64_t reloaded; /* when: seconds since 1970 */
    struct process at[PROCESS_SLOTS];
};

/* The own descriptors of a worker, opened before anybody else could need them. */
struct meter {
    struct processes *shared;
    int statm_fd, smaps_fd; /* -1: not to be had */
    int64_t pid;
    uint64_t page;
};

/* NULL when memory is out (reported). */
struct processes *metrics_processes_of(struct mk_config *config);
/* Says that workers with configuration number `load` serve. */
void metrics_processes_serve(struct processes *p, uint32_t load, int64_t now);

void metrics_meter_open(struct meter *m, struct processes *shared);
void metrics_meter_close(struct meter *m);
void metrics_meter_measure(struct meter *m, const struct mk_worker *w);

struct process_info {
    uint64_t rss, pss, cache_files, cache_bytes;
};
/* False: that process has not told yet. */
bool metrics_processes_find(const struct processes *p, int64_t pid, struct process_info *out);

#endif

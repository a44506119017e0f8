/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of a server with all descendants, as they start and exit, and their total resource usage. */
#ifndef WR_PROCESS_TREE_H
#define WR_PROCESS_TREE_H

#include "wr/process.h"

struct wr_process_tree {
    struct wr_process *all; /* oldest first: parents come before their children */
    size_t n, cap;
    struct wr_cpu lost; /* CPU time of exited processes without a parent in the tree */
    struct wr_switches ended;
    char *cgroup; /* cgroup that contains only the tree and counts its CPU time; NULL: none */
    struct wr_cpu cgroup_cpu;
};

void wr_process_tree_init(struct wr_process_tree *f);
void wr_process_tree_fini(struct wr_process_tree *f);

/* Adds a process unless it is already in the tree or has exited. Returns false if out of memory. */
bool wr_process_tree_add(struct wr_process_tree *f, pid_t pid) MK_MUST_USE;
struct wr_process *wr_process_tree_find(struct wr_process_tree *f, pid_t pid);
/* Adds all descendants of the processes in the tree or, if the tree has a cgroup, all processes of the cgroup;
 * never wr itself. Returns false if out of memory. */
bool wr_process_tree_add_descendants(struct wr_process_tree *f) MK_MUST_USE;
/* Marks as roots the processes without a parent in the tree. */
void wr_process_tree_mark_roots(struct wr_process_tree *f);
/* Returns a root that has exited; NULL if all are alive. */
const struct wr_process *wr_process_tree_find_dead_root(const struct wr_process_tree *f);
/* Makes the tree read CPU time from its cgroup, if it has one of its own. Returns false if out of memory. */
bool wr_process_tree_use_own_cgroup(struct wr_process_tree *f) MK_MUST_USE;
/* Makes the tree read CPU time from this cgroup, and adds all its processes. Returns NULL, or an error if the
 * cgroup contains other processes or lacks some. */
const char *wr_process_tree_use_cgroup(struct wr_process_tree *f, const char *folder) MK_MUST_USE;

/* These functions read current values. Exited processes are removed, but their usage stays in the sums. */
void wr_process_tree_read_cpu(struct wr_process_tree *f, struct wr_cpu *sum);
/* Adds up the CPU time of the processes even if there is a cgroup. */
void wr_process_tree_read_process_cpu(struct wr_process_tree *f, struct wr_cpu *sum);
bool wr_process_tree_read_threads(struct wr_process_tree *f) MK_MUST_USE;
void wr_process_tree_read_memory(struct wr_process_tree *f);

/* The following functions return values of the last sample. */
struct wr_switches wr_process_tree_context_switches(const struct wr_process_tree *f);
/* Returns false unless the memory of every live process is known. */
bool wr_process_tree_pss_kb(const struct wr_process_tree *f, uint64_t *kb) MK_MUST_USE;
uint64_t wr_process_tree_hwm_kb(const struct wr_process_tree *f);
/* Returns the union of the threads' affinity masks. */
void wr_process_tree_affinity(const struct wr_process_tree *f, cpu_set_t *out);
/* Starts the interval that wr_process_tree_count_threads() covers. */
void wr_process_tree_start_interval(struct wr_process_tree *f);
/* Returns the number of threads that ran for at least `least_ns`; also their total run-queue wait and the run
 * time of the busiest thread. */
unsigned wr_process_tree_count_threads(const struct wr_process_tree *f, uint64_t least_ns,
                                       uint64_t *waited_ns, uint64_t *longest_ns);
/* Adds up the CPU time of processes found since the last read. */
void wr_process_tree_sum_cpu_of_new(const struct wr_process_tree *f, struct wr_cpu *sum);

#endif

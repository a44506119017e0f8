/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of a server, with all that they started, as they come and go; and what they used together. */
#ifndef WR_PROCESS_TREE_H
#define WR_PROCESS_TREE_H

#include "wr/process.h"

struct wr_process_tree {
    struct wr_process *all; /* the older first: parents come before their children */
    size_t n, cap;
    struct wr_cpu lost; /* of those that are gone, and that no process of the family waited for */
    struct wr_switches ended;
    char *cgroup; /* not NULL: the family is alone in this group, which counts its processor time */
    struct wr_cpu cgroup_cpu;
};

void wr_process_tree_init(struct wr_process_tree *f);
void wr_process_tree_fini(struct wr_process_tree *f);

/* True also when it is in already, or gone; false when memory is out. */
bool wr_process_tree_add(struct wr_process_tree *f, pid_t pid) MK_MUST_USE;
struct wr_process *wr_process_tree_find(struct wr_process_tree *f, pid_t pid);
/* Adds children, their children and so on, but not wr itself; in a group of its own, all that is in there.
 * False when memory is out. */
bool wr_process_tree_add_descendants(struct wr_process_tree *f) MK_MUST_USE;
/* The roots are those whose parent is not of the family. */
void wr_process_tree_mark_roots(struct wr_process_tree *f);
/* A root that ended; NULL when all are there. */
const struct wr_process *wr_process_tree_find_dead_root(const struct wr_process_tree *f);
/* Takes the cgroup for counting when the family is alone in one. False when memory is out. */
bool wr_process_tree_use_own_cgroup(struct wr_process_tree *f) MK_MUST_USE;
/* Takes this one, and all that is in there. NULL, or why it cannot be: it would count others, or not all. */
const char *wr_process_tree_use_cgroup(struct wr_process_tree *f, const char *folder) MK_MUST_USE;

/* Each call reads the current numbers. Ended processes are removed; what they used stays in the sums. */
void wr_process_tree_read_cpu(struct wr_process_tree *f, struct wr_cpu *sum);
/* From the processes alone, even with a group. */
void wr_process_tree_read_process_cpu(struct wr_process_tree *f, struct wr_cpu *sum);
bool wr_process_tree_read_threads(struct wr_process_tree *f) MK_MUST_USE;
void wr_process_tree_read_memory(struct wr_process_tree *f);

/* Of what was read last. */
struct wr_switches wr_process_tree_context_switches(const struct wr_process_tree *f);
/* False unless the memory of every process that lives may be read: a part is no total. */
bool wr_process_tree_pss_kb(const struct wr_process_tree *f, uint64_t *kb) MK_MUST_USE;
uint64_t wr_process_tree_hwm_kb(const struct wr_process_tree *f);
/* The cores that its threads may run on. */
void wr_process_tree_cores(const struct wr_process_tree *f, cpu_set_t *out);
/* From here on wr_process_tree_count_threads() counts. */
void wr_process_tree_start_interval(struct wr_process_tree *f);
/* How many threads ran for that long; how long all waited for a processor, and how long the busiest ran. */
unsigned wr_process_tree_count_threads(const struct wr_process_tree *f, uint64_t least_ns,
                                       uint64_t *waited_ns, uint64_t *longest_ns);
/* What was used by those that no look at the time has seen yet. */
void wr_process_tree_read_new_cpu(const struct wr_process_tree *f, struct wr_cpu *sum);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of a server, with all that they started, as they come and go; and what they used together. */
#ifndef WR_FAMILY_H
#define WR_FAMILY_H

#include "wr/process.h"

struct wr_family {
    struct wr_process *all; /* the older first: parents come before their children */
    size_t n, cap;
    struct wr_cpu lost; /* of those that are gone, and that no process of the family waited for */
    struct wr_switches ended;
    char *cgroup; /* not NULL: the family is alone in this group, which counts its processor time */
    struct wr_cpu cgroup_cpu;
};

void wr_family_init(struct wr_family *f);
void wr_family_fini(struct wr_family *f);

/* True also when it is in already, or gone; false when memory is out. */
bool wr_family_add(struct wr_family *f, pid_t pid) MK_MUST_USE;
struct wr_process *wr_family_find(struct wr_family *f, pid_t pid);
/* Adds children, their children and so on, but not wr itself; in a group of its own, all that is in there.
 * False when memory is out. */
bool wr_family_grow(struct wr_family *f) MK_MUST_USE;
/* The roots are those whose parent is not of the family. */
void wr_family_mark_roots(struct wr_family *f);
/* A root that ended; NULL when all are there. */
const struct wr_process *wr_family_dead_root(const struct wr_family *f);
/* Takes the cgroup for counting when the family is alone in one. False when memory is out. */
bool wr_family_find_cgroup(struct wr_family *f) MK_MUST_USE;
/* Takes this one, and all that is in there. NULL, or why it cannot be: it would count others, or not all. */
const char *wr_family_use_cgroup(struct wr_family *f, const char *folder) MK_MUST_USE;

/* Each call reads the current numbers. Ended processes are removed; what they used stays in the sums. */
void wr_family_read_cpu(struct wr_family *f, struct wr_cpu *sum);
/* From the processes alone, even with a group. */
void wr_family_read_cpu_of_processes(struct wr_family *f, struct wr_cpu *sum);
bool wr_family_read_threads(struct wr_family *f) MK_MUST_USE;
void wr_family_read_memory(struct wr_family *f);

/* Of what was read last. */
struct wr_switches wr_family_switches(const struct wr_family *f);
/* False unless the memory of every process that lives may be read: a part is no total. */
bool wr_family_pss_kb(const struct wr_family *f, uint64_t *kb) MK_MUST_USE;
uint64_t wr_family_hwm_kb(const struct wr_family *f);
/* The cores that its threads may run on. */
void wr_family_cores(const struct wr_family *f, cpu_set_t *out);
/* From here on wr_family_threads() counts. */
void wr_family_start(struct wr_family *f);
/* How many threads ran for that long; how long all waited for a processor, and how long the busiest ran. */
unsigned wr_family_threads(const struct wr_family *f, uint64_t least_ns, uint64_t *waited_ns,
                           uint64_t *longest_ns);
/* What was used by those that no look at the time has seen yet. */
void wr_family_read_cpu_of_new(const struct wr_family *f, struct wr_cpu *sum);

#endif

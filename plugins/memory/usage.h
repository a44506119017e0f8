/* SPDX-License-Identifier: Apache-2.0 */
/* Reads from the kernel how much memory this process uses, and how much it may use. */
#ifndef MEMORY_USAGE_H
#define MEMORY_USAGE_H

#include <monkey/str.h>

#define MEMORY_STATM "/proc/self/statm"

/* Parses /proc/PID/statm. Returns the memory in bytes that the process occupies, without files and shared memory,
 * or 0 if the text is malformed. */
uint64_t memory_usage_parse(mk_str statm, uint64_t page_size);

/* Returns the memory limit of this process's control group (version 2) and those above it: the lowest `memory.max`.
 * UINT64_MAX: none. `proc` is the folder /proc/self. */
uint64_t memory_usage_cgroup_max(const char *proc);
/* The physical memory of the machine. */
uint64_t memory_usage_machine(void);
/* Returns a worker's share if all `workers` together get 80 % of `available`, but at least `min`. */
uint64_t memory_usage_share(uint64_t available, unsigned workers, uint64_t min);

#endif

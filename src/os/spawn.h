/* SPDX-License-Identifier: Apache-2.0 */
/* Another program, started without a copy of us, in a process group of its own. */
#ifndef MK_OS_SPAWN_H
#define MK_OS_SPAWN_H

#include "base/err.h"

enum mk_spawn_limit {
    MK_SPAWN_CPU_S,
    MK_SPAWN_MEMORY,
    MK_SPAWN_PROCESSES,
    MK_SPAWN_FILE_SIZE,
    MK_SPAWN_LIMITS
};

struct mk_spawn {
    char *const *argv, *const *envp; /* argv[0] is the file; both end with NULL */
    const char *cwd;
    int fds[3]; /* its standard streams: numbers above 2, -1 for what we have there ourselves */
    uint64_t limits[MK_SPAWN_LIMITS]; /* 0: as ours; never more than ours */
};

/* Answers the number of the process, or a negated errno value when it, or the program, could not be started.
 * The program gets no other descriptors, no blocked and no ignored signals; it is killed when we die. We wait
 * until it is loaded; no other thread of ours may change signals meanwhile. */
pid_t mk_spawn(const struct mk_spawn *s) MK_MUST_USE;

#endif

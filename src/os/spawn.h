/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a program in its own process group without copying our memory. */
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
    char *const *argv, *const *envp; /* argv[0] is the file; both are NULL-terminated */
    const char *cwd;
    int fds[3];                       /* standard streams: descriptors above 2, or -1 to inherit ours */
    uint64_t limits[MK_SPAWN_LIMITS]; /* 0: inherit our limit, which is also the maximum */
};

/* Returns the pid, or a negated errno value if the process or program could not be started. The program
 * inherits no other descriptors and no blocked or ignored signals, and is killed when this process dies.
 * Blocks until the program is loaded; no other thread may change signal handlers during the call. */
pid_t mk_spawn(const struct mk_spawn *s) MK_MUST_USE;

#endif

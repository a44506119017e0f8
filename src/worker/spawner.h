/* SPDX-License-Identifier: Apache-2.0 */
/* A small process beside a worker that starts other programs for it, so that the worker, which is large and
 * in a sandbox, never forks. It ends with the socket between them, and kills what it has started. */
#ifndef MK_WORKER_SPAWNER_H
#define MK_WORKER_SPAWNER_H

#include "os/spawn.h"

/* The worker's side. */
struct mk_spawner {
    pid_t pid;
    int fd; /* the worker's end, non-blocking */
};

/* `is_confined`: its programs may send signals to each other alone. */
mk_err mk_spawner_start(struct mk_spawner *s, bool is_confined) MK_MUST_USE;

enum mk_spawner_kind { MK_SPAWNER_START, MK_SPAWNER_SIGNAL };

enum { MK_SPAWNER_TEXT = 128 * 1024 };

/* A request of the worker. To start a program, it is followed by the folder, all of argv and all of envp,
 * each with a NUL, and by the descriptors that have a bit in `fds`, in order. */
struct mk_spawner_request {
    enum mk_spawner_kind kind;
    uint32_t id; /* the worker's number for the child */
    int signal;
    unsigned fds;
    uint32_t argc, envc;
    uint64_t limits[MK_SPAWN_LIMITS];
};

/* The child has ended: a status of waitpid(2), or a negated errno value if it could not be started. */
struct mk_spawner_answer {
    uint32_t id;
    int status;
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Spawner: a small process next to a worker that starts programs for it, so that the large, sandboxed worker
 * never forks. It exits when its socket is closed, and kills the programs that it has started. */
#ifndef MK_WORKER_SPAWNER_H
#define MK_WORKER_SPAWNER_H

#include "os/spawn.h"

/* The spawner, as seen by its worker. */
struct mk_spawner {
    pid_t pid;
    int fd; /* the worker's end of the socket, non-blocking */
};

/* Which programs the spawner starts. Requests for others fail with -EPERM: a worker that an attacker controls can send
 * any request. */
struct mk_spawner_policy {
    bool (*allows)(const void *ctx, char *const *argv, char *const *envp);
    const void *ctx;  /* the spawner has a copy of the memory that it points to */
    bool is_confined; /* programs can send signals only to each other */
};

mk_err mk_spawner_start(struct mk_spawner *s, const struct mk_spawner_policy *policy) MK_MUST_USE;

enum mk_spawner_kind { MK_SPAWNER_START, MK_SPAWNER_SIGNAL };

enum { MK_SPAWNER_TEXT = 128 * 1024 };

/* A request of the worker. If it starts a program, the working folder, argv and envp follow as NUL-terminated
 * strings, and the descriptors set in the bitmap `fds` are attached in order. */
struct mk_spawner_request {
    enum mk_spawner_kind kind;
    uint32_t id; /* ID that the worker has assigned to the process */
    int signal;
    unsigned fds;
    bool keeps_nonblocking; /* leave the mode of the descriptors */
    uint32_t argc, envc;
    uint64_t limits[MK_SPAWN_LIMITS];
};

/* Sent when a process has exited or could not be started. `status` is that of waitpid(2), or a negated errno
 * value. */
struct mk_spawner_answer {
    uint32_t id;
    int status;
};

#endif

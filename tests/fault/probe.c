/* SPDX-License-Identifier: Apache-2.0 */
/* Tries the possible actions of a compromised worker from inside the worker, at every accepted connection. */
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "fault/fault.h"

enum {
    DONE,   /* number of completed probes */
    READ,   /* errors, 0 for success: opening MONKEY_PROBE_READ for reading, */
    WRITE,  /* MONKEY_PROBE_WRITE for writing, */
    CREATE, /* creating MONKEY_PROBE_CREATE, */
    LIST,   /* opening the root directory, */
    RUN,    /* executing MONKEY_PROBE_RUN, */
    ROOT,   /* and becoming root */
};

static int64_t try_open(const char *variable, int flags)
{
    const char *path = getenv(variable);
    int fd = path ? open(path, flags | O_CLOEXEC, 0600) : -1;
    int64_t error = fd < 0 ? (path ? errno : -1) : 0;
    if (fd >= 0)
        close(fd);
    return error;
}

static int64_t try_run(const char *path)
{
    char *const nothing[] = {NULL};
    pid_t pid = path ? vfork() : -1;
    if (pid == 0) {
        execve(path, nothing, nothing);
        atomic_store(&fault[RUN], errno);
        _exit(0);
    }
    return 0;
}

int accept4(int fd, struct sockaddr *restrict from, socklen_t *restrict len, int flags)
{
    int got = (int)syscall(SYS_accept4, fd, from, len, flags);
    if (got < 0 || !fault || !in_worker)
        return got;
    atomic_store(&fault[RUN], 0);
    try_run(getenv("MONKEY_PROBE_RUN"));
    atomic_store(&fault[READ], try_open("MONKEY_PROBE_READ", O_RDONLY));
    atomic_store(&fault[WRITE], try_open("MONKEY_PROBE_WRITE", O_WRONLY));
    atomic_store(&fault[CREATE], try_open("MONKEY_PROBE_CREATE", O_WRONLY | O_CREAT));
    int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    atomic_store(&fault[LIST], root < 0 ? errno : 0);
    if (root >= 0)
        close(root);
    atomic_store(&fault[ROOT], setuid(0) == 0 ? 0 : errno);
    atomic_fetch_add(&fault[DONE], 1);
    return got;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "os/spawn.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/fd.h"
#include "os/proc.h"

static void set_rlimit(enum mk_spawn_limit which, uint64_t expected)
{
    static const uint8_t resources[MK_SPAWN_LIMITS] = {
        [MK_SPAWN_CPU_S] = RLIMIT_CPU,
        [MK_SPAWN_MEMORY] = RLIMIT_AS,
        [MK_SPAWN_PROCESSES] = RLIMIT_NPROC,
        [MK_SPAWN_FILE_SIZE] = RLIMIT_FSIZE,
    };
    struct rlimit r;
    if (expected == 0 || getrlimit(resources[which], &r) < 0)
        return;
    r.rlim_cur = expected < r.rlim_max ? expected : r.rlim_max;
    /* The hard CPU limit is one second above the soft one: the kernel kills a process that ignores
     * SIGXCPU. */
    uint64_t most = r.rlim_cur + (which == MK_SPAWN_CPU_S);
    r.rlim_max = most < r.rlim_max ? most : r.rlim_max;
    (void)setrlimit(resources[which], &r); /* lowering a limit is always allowed */
}

static void reset_signals(void)
{
    sigset_t none;
    for (int i = 1; i < _NSIG; i++)
        (void)signal(i, SIG_DFL);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static mk_err set_standard_streams(const int fds[3])
{
    for (int i = 0; i < 3; i++)
        if (fds[i] >= 0 && dup2(fds[i], i) < 0)
            return mk_err_last();
    mk_fd_close_from(STDERR_FILENO + 1);
    return 0;
}

/* Runs in the new process, which shares our memory until the exec: use system calls only. */
static mk_err exec_child(const struct mk_spawn *s, pid_t parent)
{
    mk_err e = setpgid(0, 0) < 0 ? mk_err_last() : 0;
    if (!e)
        e = mk_proc_die_with_parent(parent, SIGKILL);
    if (!e && chdir(s->cwd) < 0)
        e = mk_err_last();
    if (!e)
        e = set_standard_streams(s->fds);
    if (e)
        return e;
    mk_fd_restore_limit();
    for (enum mk_spawn_limit i = 0; i < MK_SPAWN_LIMITS; i++)
        set_rlimit(i, s->limits[i]);
    reset_signals();
    execve(s->argv[0], s->argv, s->envp);
    return mk_err_last();
}

pid_t mk_spawn(const struct mk_spawn *s)
{
    volatile mk_err e = 0;
    pid_t us = getpid(), pid = vfork();
    if (pid == 0) {
        e = exec_child(s, us);
        _exit(127);
    }
    if (pid < 0)
        return mk_err_last();
    while (e && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return e ? e : pid;
}

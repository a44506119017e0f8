/* SPDX-License-Identifier: Apache-2.0 */
#include "os/crash_probe.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/platform.h"

enum { FN_RETURNED = 86 /* an exit code that other code is unlikely to use */ };

static void reset_crash_signals(unsigned seconds)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGALRM};
    for (size_t i = 0; i < MK_LEN(crashes); i++)
        signal(crashes[i], SIG_DFL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0});
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* otherwise a hung child would outlive us */
    alarm(seconds);
}

pid_t mk_crash_probe_start(void (*fn)(void *ctx), void *ctx, unsigned seconds)
{
    pid_t pid = fork();
    if (pid < 0)
        return mk_err_last();
    if (pid == 0) {
        reset_crash_signals(seconds);
        fn(ctx);
        _exit(FN_RETURNED);
    }
    return pid;
}

int mk_crash_probe_result(int status)
{
    if (WIFSIGNALED(status))
        return WTERMSIG(status);
    return WEXITSTATUS(status) == FN_RETURNED ? 0 : -ECANCELED;
}

int mk_crash_probe_run(void (*fn)(void *ctx), void *ctx, unsigned seconds)
{
    if (!mk_platform.owns_process) /* a library does not fork: a crash ends the embedding program */
        return 0;
    int status = 0;
    pid_t pid = mk_crash_probe_start(fn, ctx, seconds), ended;
    if (pid < 0)
        return (int)pid;
    do
        ended = waitpid(pid, &status, 0);
    while (ended < 0 && errno == EINTR);
    return ended < 0 ? 0 : mk_crash_probe_result(status); /* waitpid() fails if SIGCHLD is
                                                             ignored */
}

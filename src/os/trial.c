/* SPDX-License-Identifier: Apache-2.0 */
#include "os/trial.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CAME_BACK = 86 /* an exit code that other code is unlikely to use */ };

static void die_of_crashes(unsigned seconds)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGALRM};
    for (size_t i = 0; i < MK_LEN(crashes); i++)
        signal(crashes[i], SIG_DFL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0});
    alarm(seconds);
}

int mk_trial_run(void (*fn)(void *ctx), void *ctx, unsigned seconds)
{
    int status = 0;
    pid_t pid = fork(), ended;
    if (pid < 0)
        return mk_err_last();
    if (pid == 0) {
        die_of_crashes(seconds);
        fn(ctx);
        _exit(CAME_BACK);
    }
    do
        ended = waitpid(pid, &status, 0);
    while (ended < 0 && errno == EINTR);
    if (ended < 0) /* no status if the program ignores SIGCHLD */
        return 0;
    if (WIFSIGNALED(status))
        return WTERMSIG(status);
    return WEXITSTATUS(status) == CAME_BACK ? 0 : -ECANCELED;
}

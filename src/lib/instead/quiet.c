/* SPDX-License-Identifier: Apache-2.0 */
/* What to do with SIGPIPE is for the program to say, but ours shall not reach it. Takes the place of
 * os/quiet.c. */
#include "os/quiet.h"

#include <errno.h>
#include <time.h>

static void only_pipe(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGPIPE);
}

void mk_quiet_begin(struct mk_quiet *q)
{
    sigset_t pipe;
    only_pipe(&pipe);
    /* Where it is blocked already, as in threads of ours, it may wait until it is ignored. */
    q->holds = pthread_sigmask(SIG_BLOCK, &pipe, &q->before) == 0 && sigismember(&q->before, SIGPIPE) == 0;
}

void mk_quiet_end(struct mk_quiet *q, ssize_t n)
{
    int kept = errno;
    sigset_t pipe;
    if (!q->holds)
        return;
    only_pipe(&pipe);
    if (n < 0 && kept == EPIPE) /* the signal is of this thread, and pending by now */
        (void)sigtimedwait(&pipe, NULL, &(struct timespec){0});
    (void)pthread_sigmask(SIG_SETMASK, &q->before, NULL);
    errno = kept;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "os/sigpipe.h"

#include <errno.h>
#include <time.h>

#include "base/platform.h"

static void init_sigpipe_set(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGPIPE);
}

void mk_sigpipe_block(struct mk_sigpipe_guard *q)
{
    sigset_t pipe;
    if (mk_platform.owns_process)
        return;
    init_sigpipe_set(&pipe);
    /* If the thread blocks SIGPIPE already, as our threads do, a pending SIGPIPE is harmless. */
    q->is_blocked =
        pthread_sigmask(SIG_BLOCK, &pipe, &q->before) == 0 && sigismember(&q->before, SIGPIPE) == 0;
}

void mk_sigpipe_restore(struct mk_sigpipe_guard *q, ssize_t n)
{
    int kept = errno;
    sigset_t pipe;
    if (mk_platform.owns_process || !q->is_blocked)
        return;
    init_sigpipe_set(&pipe);
    if (n < 0 && kept == EPIPE) /* SIGPIPE is pending in this thread: discard it */
        (void)sigtimedwait(&pipe, NULL, &(struct timespec){0});
    (void)pthread_sigmask(SIG_SETMASK, &q->before, NULL);
    errno = kept;
}

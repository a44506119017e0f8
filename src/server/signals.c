/* SPDX-License-Identifier: Apache-2.0 */
#include "server/signals.h"

#include <signal.h>
#include <sys/signalfd.h>

#include "base/err.h"
#include "base/mem.h"

static void fill_handled_signals(sigset_t *set)
{
    static const int ours[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD};
    sigemptyset(set);
    for (size_t i = 0; i < MK_LEN(ours); i++)
        sigaddset(set, ours[i]);
}

void mk_signals_block(void)
{
    sigset_t set;
    fill_handled_signals(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ,
           SIG_IGN); /* a log at the file size limit must cause a write() error, not a fatal signal */
    signal(SIGCHLD, SIG_DFL); /* if SIGCHLD was inherited as ignored, waitpid() would not report children */
}

int mk_signals_open_fd(void)
{
    sigset_t set;
    fill_handled_signals(&set);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? mk_err_last() : fd;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The umask is of the whole program, but for a thread that has left it. Takes the place of os/bind_unix.c. */
#include "os/bind_unix.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>

struct binding {
    int fd;
    const struct mk_addr *addr;
    unsigned mode;
    mk_err result;
};

/* Where a thread may not leave (a container may forbid it), the umask of the program decides. */
static void *bind_alone(void *data)
{
    struct binding *b = data;
    if (unshare(CLONE_FS) == 0)
        (void)umask(~(mode_t)b->mode & 0777);
    b->result = bind(b->fd, &b->addr->any, b->addr->len) < 0 ? mk_err_last() : 0;
    return NULL;
}

mk_err mk_bind_unix(int fd, const struct mk_addr *a, unsigned mode)
{
    struct binding b = {.fd = fd, .addr = a, .mode = mode};
    sigset_t all, before;
    pthread_t thread;
    if (fchmod(fd, mode) < 0)
        return mk_err_last();
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int e = pthread_create(&thread, NULL, bind_alone, &b);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (e)
        return -e;
    pthread_join(thread, NULL);
    return b.result;
}

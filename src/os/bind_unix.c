/* SPDX-License-Identifier: Apache-2.0 */
#include "os/bind_unix.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>

#include "base/platform.h"

struct binding {
    int fd;
    const struct mk_sockaddr *addr;
    unsigned mode;
    mk_err result;
};

static void bind_socket(struct binding *b)
{
    b->result = bind(b->fd, &b->addr->any, b->addr->len) < 0 ? mk_err_last() : 0;
}

static void bind_with_umask(struct binding *b)
{
    mode_t before = umask(~(mode_t)b->mode & 0777);
    bind_socket(b);
    (void)umask(before);
}

/* If a thread cannot unshare its umask (a container may forbid it), the program's umask applies. */
static void *bind_in_thread(void *data)
{
    struct binding *b = data;
    if (unshare(CLONE_FS) == 0)
        (void)umask(~(mode_t)b->mode & 0777);
    bind_socket(b);
    return NULL;
}

/* Binds in a new thread that unshares its umask, so that the umask of all other threads stays unchanged. */
static mk_err bind_in_new_thread(struct binding *b)
{
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int e = pthread_create(&thread, NULL, bind_in_thread, b);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!e)
        pthread_join(thread, NULL);
    return -e;
}

mk_err mk_bind_unix(int fd, const struct mk_sockaddr *a, unsigned mode)
{
    struct binding b = {.fd = fd, .addr = a, .mode = mode};
    if (fchmod(fd, mode) < 0)
        return mk_err_last();
    if (mk_platform.owns_process) {
        bind_with_umask(&b);
        return b.result;
    }
    mk_err e = bind_in_new_thread(&b);
    return e ? e : b.result;
}

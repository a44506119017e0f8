/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that listen on the same port, for tests that find them. */
#ifndef MK_UNIT_WR_HOLDERS_H
#define MK_UNIT_WR_HOLDERS_H

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/sockaddr.h"
#include "unit/test.h"

/* A port that is bound to keep it reserved; nothing listens. */
struct reserved {
    int fd;
    unsigned port;
};

static inline struct mk_sockaddr holders_address(const char *host, unsigned port)
{
    struct mk_sockaddr a;
    assert_int_equal(mk_sockaddr_parse(MK_STR("1"), mk_str_from_c(host), &a), 0);
    mk_sockaddr_set_port(&a, (uint16_t)port);
    return a;
}

static inline int holders_bind(const char *host, unsigned port)
{
    static const int on = 1;
    struct mk_sockaddr a = holders_address(host, port);
    int fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) < 0 ||
        bind(fd, &a.any, a.len) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static inline struct reserved holders_reserve(void)
{
    struct mk_sockaddr a;
    struct reserved r = {.fd = holders_bind("127.0.0.1", 0)};
    assert_true(r.fd >= 0);
    assert_int_equal(mk_sockaddr_getsockname(r.fd, &a), 0);
    r.port = mk_sockaddr_port(&a);
    return r;
}

/* Starts a process `name` that listens at `host` until holders_end(). With `child`, a child process listens
 * there as well, and dies with its parent. */
static inline pid_t holders_start(const char *name, const char *host, const char *child, unsigned port)
{
    int ready[2];
    char c;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        int fd = holders_bind(host, port);
        (void)prctl(PR_SET_NAME, name);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (fd < 0 || listen(fd, 1) < 0)
            _exit(1);
        if (child) {
            close(ready[0]);
            if (fork() == 0) {
                (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
                (void)prctl(PR_SET_NAME, "another");
                close(fd);
                fd = holders_bind(child, port);
                if (fd < 0 || listen(fd, 1) < 0)
                    _exit(1);
            } else {
                close(ready[1]); /* the child reports when both processes listen */
            }
        }
        if (write(ready[1], "", 1) < 0 && !child)
            _exit(1);
        for (;;)
            pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &c, 1), 1);
    close(ready[0]);
    return pid;
}

static inline void holders_end(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

#endif

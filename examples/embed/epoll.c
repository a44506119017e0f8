/* SPDX-License-Identifier: Apache-2.0 */
/* A program with its own event loop: one descriptor represents the whole server, including its timers. */
#include <monkey/server.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

static unsigned n_iterations; /* no lock: handlers run in the thread of the loop */

static enum mk_verdict tell(struct mk_request *request, struct mk_response *response, void *data)
{
    char buf[64];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    (void)request, (void)data;
    mk_buf_addf(&text, "iteration %u\n", n_iterations);
    mk_response_set_body(response, mk_buf_str(&text));
    return MK_DONE;
}

static int watch(int loop, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event);
}

/* Receives SIGINT and SIGTERM through a descriptor. */
static int open_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC);
}

static int run(struct mk_server *s, int fd)
{
    int loop = epoll_create1(EPOLL_CLOEXEC), signals = open_signals(), more = 1;
    if (watch(loop, fd) || watch(loop, signals))
        return -1;
    while (more > 0) {
        struct epoll_event event;
        if (epoll_wait(loop, &event, 1, -1) != 1)
            continue;
        n_iterations++;
        if (event.data.fd == signals) {
            struct signalfd_siginfo info;
            if (read(signals, &info, sizeof info) == sizeof info)
                mk_server_stop(s, 5000); /* open requests have 5 s to finish */
        } else {
            more = mk_server_step(s);
        }
    }
    close(signals);
    close(loop);
    return more;
}

int main(int argc, char **argv)
{
    unsigned port;
    int fd = -1;
    struct mk_server *s = mk_server_new(NULL);
    if (!mk_server_add_route(s, "GET /iteration", tell, NULL) &&
        !mk_server_listen(s, argc > 1 ? argv[1] : "127.0.0.1:2001", &port))
        fd = mk_server_fd(s);
    if (fd < 0) {
        fprintf(stderr, "epoll: %s\n", mk_server_error(s));
        mk_server_free(s);
        return 1;
    }
    printf("http://127.0.0.1:%u/iteration\n", port);
    fflush(stdout);
    int err = run(s, fd);
    mk_server_free(s);
    return err != 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Step 8: the server runs in the event loop of the program. Handlers and the sensor share one thread. */
#include "device.h"

#include <stdio.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

static int watch(int loop, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event);
}

static int open_timer(void)
{
    const struct itimerspec each_second = {.it_interval.tv_sec = 1, .it_value.tv_sec = 1};
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    timerfd_settime(timer, 0, &each_second, NULL);
    return timer;
}

static int run(struct mk_server *s)
{
    int server = mk_server_fd(s), loop = epoll_create1(EPOLL_CLOEXEC), timer = open_timer(), more = 1;
    if (watch(loop, server) || watch(loop, timer))
        return -1;
    while (more > 0) {
        struct epoll_event event;
        uint64_t n;
        if (epoll_wait(loop, &event, 1, -1) != 1)
            continue;
        if (event.data.fd == server)
            more = mk_server_step(s);
        else if (read(timer, &n, sizeof n) == sizeof n)
            sensor_measure();
    }
    close(timer);
    close(loop);
    return more;
}

int main(int argc, char **argv)
{
    unsigned port;
    struct mk_server *s = device_new(argc, argv, &port);
    if (!s)
        return 1;
    printf("https://localhost:%u/\n", port);
    fflush(stdout);
    int err = run(s);
    if (err)
        fprintf(stderr, "device: %s\n", mk_server_error(s));
    mk_server_free(s);
    return err != 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* wire: connects two network namespaces on its own core. Over loopback, the sender's core also does the
 * receiver's work, within the sender's system call. Here the sender hands packets to a device, as to a
 * network card, and this process delivers them. Needs root, /dev/net/tun and ip(8).
 *     cc -O2 -o wire wire.c
 *     ./wire NAMESPACE ADDRESS NAMESPACE ADDRESS     prints "ready", then runs until it is killed */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 64, MTU_MAX = 2048, PAUSE_NS = 50000 };

static void exit_on_error(int failed, const char *what)
{
    if (!failed)
        return;
    perror(what);
    exit(1);
}

/* Opens a device in the namespace, with a queue for a whole broadcast. */
static int open_tun_device(const char *namespace, const char *address, const char *peer)
{
    char text[256];
    struct ifreq r = {.ifr_name = "wire", .ifr_flags = IFF_TUN | IFF_NO_PI};
    snprintf(text, sizeof text, "/run/netns/%s", namespace);
    int space = open(text, O_RDONLY | O_CLOEXEC);
    exit_on_error(space < 0 || setns(space, CLONE_NEWNET), text);
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    exit_on_error(fd < 0 || ioctl(fd, TUNSETIFF, &r), "/dev/net/tun");
    snprintf(text, sizeof text,
             "ip link set lo up && ip addr add %s peer %s dev wire && ip link set wire txqueuelen 100000 up",
             address, peer);
    exit_on_error(system(text), "ip");
    close(space);
    return fd;
}

static int forward_packets(int from, int to)
{
    char packet[MTU_MAX];
    ssize_t len;
    int n = 0;
    while (n < BATCH && (len = read(from, packet, sizeof packet)) > 0) {
        (void)!write(to, packet, (size_t)len);
        n++;
    }
    return n;
}

int main(int argc, char **argv)
{
    exit_on_error(argc != 5, "usage: wire NAMESPACE ADDRESS NAMESPACE ADDRESS");
    int a = open_tun_device(argv[1], argv[2], argv[4]), b = open_tun_device(argv[3], argv[4], argv[2]);
    puts("ready");
    fflush(stdout);
    for (;;) { /* polls, because waking a blocked reader would cost the sender time */
        int n = forward_packets(a, b);
        n += forward_packets(b, a);
        if (!n)
            nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
}

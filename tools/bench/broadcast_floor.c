/* SPDX-License-Identifier: Apache-2.0 */
/* broadcast_floor: the lower bound for the cost of a broadcast: one send() per subscriber, and nothing else.
 *
 * Every connection is a subscriber and gets a WebSocket handshake response; a request for /say sends one
 * WebSocket message to all subscribers. One thread, no parsing.
 *     cc -O2 -o broadcast_floor broadcast_floor.c
 *     ./broadcast_floor PORT [ADDRESS] */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_FD = 65536, BATCH = 512 };

static const char welcome[] = "HTTP/1.1 101 Switching Protocols\r\n\r\n";
static const char done[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
static const char message[] = "\x81\x12hello to all of you";
static bool is_member[MAX_FD];
static int highest;

static void send_text(int fd, const char *text, size_t len)
{
    (void)!send(fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void accept_connection(int listener, int loop)
{
    int fd = accept(listener, NULL, NULL), one = 1;
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (fd < 0 || fd >= MAX_FD)
        exit(1);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event);
    highest = fd > highest ? fd : highest;
}

static void handle_join_or_broadcast(int fd)
{
    char buf[4096];
    ssize_t n = recv(fd, buf, sizeof buf, 0);
    if (n <= 0) {
        is_member[fd] = false;
        close(fd);
    } else if (n > 8 && memcmp(buf, "GET /say", 8) == 0) {
        for (int i = 0; i <= highest; i++)
            if (is_member[i])
                send_text(i, message, sizeof message - 1);
        send_text(fd, done, sizeof done - 1);
    } else {
        is_member[fd] = true;
        send_text(fd, welcome, sizeof welcome - 1);
    }
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    struct epoll_event events[BATCH], event = {.events = EPOLLIN};
    int listener = socket(AF_INET, SOCK_STREAM, 0), loop = epoll_create1(0);
    address.sin_addr.s_addr = inet_addr(argc > 2 ? argv[2] : "127.0.0.1");
    address.sin_port = htons((unsigned short)strtoul(argc > 1 ? argv[1] : "0", NULL, 10));
    event.data.fd = listener;
    if (bind(listener, (void *)&address, sizeof address) || listen(listener, 4096) ||
        epoll_ctl(loop, EPOLL_CTL_ADD, listener, &event))
        return 1;
    for (;;) {
        int n = epoll_wait(loop, events, BATCH, -1);
        for (int i = 0; i < n; i++) {
            if (events[i].data.fd == listener)
                accept_connection(listener, loop);
            else
                handle_join_or_broadcast(events[i].data.fd);
        }
    }
}

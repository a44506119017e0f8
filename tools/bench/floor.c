/* SPDX-License-Identifier: Apache-2.0 */
/* floor: the least that any epoll server can spend on a request, as a yardstick.
 *
 * One thread, no parsing, no logging, a canned answer. It is no server: it answers every
 * blank line with the same bytes; who says "Connection: close" is told so, and hung up on.
 *     cc -O2 -o floor floor.c
 *     ./floor PORT BYTES        answer BYTES bytes from memory
 *     ./floor PORT FILE         answer a file with sendfile, or from memory if it is small
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FD = 65536, SMALL = 16384 };
struct answer {
    char *text;
    size_t len;
};
static struct answer answers[2]; /* the second one ends the connection */
static char in[65536];
static size_t file_len;
static int file_fd = -1, loop;
static off_t sent[MAX_FD];
static char sending[MAX_FD], registered[MAX_FD], last[MAX_FD];

static int pump(int fd)
{
    while (sending[fd]) {
        ssize_t n = sendfile(fd, file_fd, &sent[fd], file_len - (size_t)sent[fd]);
        if (n < 0)
            return errno == EAGAIN ? 0 : -1;
        if ((size_t)sent[fd] == file_len)
            sending[fd] = 0;
    }
    return 0;
}

static void drop(int fd)
{
    sending[fd] = registered[fd] = last[fd] = 0;
    close(fd);
}

static void serve(int fd)
{
    if (sending[fd] && (pump(fd) < 0 || (last[fd] && !sending[fd]))) {
        drop(fd);
        return;
    }
    while (!sending[fd]) {
        ssize_t n = recv(fd, in, sizeof in, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN)) {
            drop(fd);
            return;
        }
        if (n < 0)
            break;
        last[fd] = memmem(in, (size_t)n, "Connection: close", 17) != NULL;
        const struct answer *answer = &answers[(int)last[fd]];
        for (char *p = in; (p = memmem(p, (size_t)(in + n - p), "\r\n\r\n", 4)); p += 4) {
            if (send(fd, answer->text, answer->len, MSG_NOSIGNAL | (file_fd < 0 ? 0 : MSG_MORE)) < 0) {
                drop(fd);
                return;
            }
            if (file_fd >= 0) {
                sent[fd] = 0;
                sending[fd] = 1;
                if (pump(fd) < 0) {
                    drop(fd);
                    return;
                }
            }
        }
        if (last[fd] && !sending[fd]) {
            drop(fd);
            return;
        }
        if ((size_t)n < sizeof in)
            break;
    }
    if (!registered[fd]) {
        struct epoll_event ev = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.fd = fd};
        epoll_ctl(loop, EPOLL_CTL_ADD, fd, &ev);
        registered[fd] = 1;
    }
}

static struct answer compose(const char *more, const char *body, size_t body_len)
{
    struct answer a = {.text = malloc(512 + body_len)};
    a.len = (size_t)snprintf(a.text, 512,
                             "HTTP/1.1 200 OK\r\nServer: floor\r\nDate: Fri, 20 Nov 2026 10:00:00 GMT\r\n"
                             "Last-Modified: Fri, 20 Nov 2026 10:00:00 GMT\r\nETag: \"1234567\"\r\n"
                             "Content-Type: text/html\r\n%sContent-Length: %zu\r\n\r\n",
                             more, file_len);
    memcpy(a.text + a.len, body, body_len);
    a.len += body_len;
    return a;
}

/* What is behind the head when it is sent from memory. */
static char *load(const char *what, size_t *len)
{
    char *body = NULL;
    struct stat st;
    if (isdigit((unsigned char)what[0])) {
        *len = file_len = strtoul(what, NULL, 10);
        body = malloc(file_len + 1);
        return memset(body, 'x', file_len);
    }
    file_fd = open(what, O_RDONLY | O_CLOEXEC);
    if (file_fd < 0 || fstat(file_fd, &st) < 0)
        return NULL;
    file_len = (size_t)st.st_size;
    *len = file_len <= SMALL ? file_len : 0;
    body = malloc(*len + 1);
    if (*len) {
        *len = read(file_fd, body, *len) == (ssize_t)*len ? *len : 0;
        close(file_fd);
        file_fd = -1;
    }
    return body;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return fprintf(stderr, "usage: floor PORT BYTES|FILE\n"), 2;
    size_t body_len = 0;
    char *body = load(argv[2], &body_len);
    if (!body)
        return perror(argv[2]), 1;
    signal(SIGPIPE, SIG_IGN); /* sendfile to a client that is gone */
    answers[0] = compose("", body, body_len);
    answers[1] = compose("Connection: close\r\n", body, body_len);

    int one = 1, room = 256 * 1024, door = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((unsigned short)strtoul(argv[1], NULL, 10)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(door, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    setsockopt(door, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(door, IPPROTO_TCP, TCP_DEFER_ACCEPT, &one, sizeof one);
    if (file_fd >= 0)
        setsockopt(door, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    if (bind(door, (struct sockaddr *)&at, sizeof at) < 0 || listen(door, 4096) < 0)
        return perror("listen"), 1;

    loop = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = door}, ready[512];
    epoll_ctl(loop, EPOLL_CTL_ADD, door, &ev);
    for (;;) {
        int n = epoll_wait(loop, ready, 512, -1);
        for (int i = 0; i < n; i++) {
            int fd = ready[i].data.fd;
            if (fd != door) {
                serve(fd);
                continue;
            }
            while ((fd = accept4(door, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
                if (fd < MAX_FD)
                    serve(fd);
                else
                    close(fd);
            }
        }
    }
}

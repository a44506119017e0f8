/* SPDX-License-Identifier: Apache-2.0 */
/* Shared helpers of library tests: a server on its own port, and a blocking client. */
#ifndef MK_TESTS_LIB_EMBED_H
#define MK_TESTS_LIB_EMBED_H

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <monkey/server.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PATIENCE_S = 30 };

#define assert_holds(text, part)                                                                             \
    do {                                                                                                     \
        if (!strstr((text), (part)))                                                                         \
            fail_msg("\"%s\" does not hold \"%s\"", (text), (part));                                         \
    } while (0)

/* Waits until other threads have incremented the counter to `value`. */
static inline void wait_until(atomic_int *n, int value)
{
    for (int i = 0; atomic_load(n) != value; i++) {
        assert_true(i < PATIENCE_S * 1000);
        usleep(1000);
    }
}

static inline void *run_server(void *s)
{
    assert_int_equal(mk_server_run(s), 0);
    return NULL;
}

static inline enum mk_verdict respond_hello(struct mk_request *request, struct mk_response *response,
                                            void *data)
{
    (void)request;
    (void)data;
    mk_response_set_body_nocopy(response, MK_STR("hello"));
    return MK_DONE;
}

/* Creates a server with this route that listens on *port; the caller starts it. */
static inline struct mk_server *server_with(const char *route, mk_server_fn *fn, void *data, unsigned *port)
{
    struct mk_server *s = mk_server_new(NULL);
    assert_non_null(s);
    assert_int_equal(mk_server_add_route(s, route, fn, data), 0);
    assert_int_equal(mk_server_listen(s, "127.0.0.1:0", port), 0);
    assert_true(*port > 0);
    return s;
}

static inline int dial(unsigned port)
{
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(fd, (struct sockaddr *)&a, sizeof a) == 0)
        return fd;
    close(fd);
    return -1;
}

static inline void send_request_on(int fd, const char *method, const char *path)
{
    char text[512];
    int len =
        snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", method, path);
    assert_int_equal(send(fd, text, (size_t)len, MSG_NOSIGNAL), len);
}

/* Returns everything up to the end of the connection, as text. */
static inline const char *receive_all(int fd)
{
    static _Thread_local char buffer[64 * 1024];
    size_t len = 0;
    ssize_t n;
    while ((n = recv(fd, buffer + len, sizeof buffer - 1 - len, 0)) > 0)
        len += (size_t)n;
    buffer[len] = '\0';
    close(fd);
    return buffer;
}

static inline const char *fetch(unsigned port, const char *method, const char *path)
{
    int fd = dial(port);
    assert_true(fd >= 0);
    send_request_on(fd, method, path);
    return receive_all(fd);
}

#endif

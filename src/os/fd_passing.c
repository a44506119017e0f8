/* SPDX-License-Identifier: Apache-2.0 */
#include "os/fd_passing.h"

#include <string.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "os/fd.h"

union fd_control_buffer {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(MK_FD_PASSING_MAX * sizeof(int))];
};

mk_err mk_fd_passing_pair(int *a, int *b)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
        return mk_err_last();
    *a = ends[0];
    *b = ends[1];
    return 0;
}

mk_err mk_fd_passing_send(int end, const struct iovec *parts, size_t n_parts, const int *fds, size_t n_fds)
{
    union fd_control_buffer buf = {0};
    struct iovec v[4];
    MK_ASSERT(n_parts <= MK_LEN(v) && n_fds <= MK_FD_PASSING_MAX);
    memcpy(v, parts, n_parts * sizeof *v);
    struct msghdr m = {.msg_iov = v, .msg_iovlen = (uint8_t)n_parts};
    if (n_fds) {
        m.msg_control = &buf;
        m.msg_controllen = (socklen_t)CMSG_SPACE(n_fds * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = (socklen_t)CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
    }
    return sendmsg(end, &m, MSG_NOSIGNAL) < 0 ? mk_err_last() : 0;
}

static void extract_fds(struct msghdr *m, int *fds)
{
    struct cmsghdr *c = CMSG_FIRSTHDR(m);
    for (size_t i = 0; i < MK_FD_PASSING_MAX; i++)
        fds[i] = -1;
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len > CMSG_LEN(0))
        memcpy(fds, CMSG_DATA(c), mk_min(c->cmsg_len - CMSG_LEN(0), MK_FD_PASSING_MAX * sizeof(int)));
}

ssize_t mk_fd_passing_receive(int end, void *buf, size_t cap, int *fds)
{
    union fd_control_buffer control;
    struct iovec v = {.iov_base = buf, .iov_len = cap};
    struct msghdr m = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t n;
    do
        n = recvmsg(end, &m, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return n == 0 || errno == ECONNRESET ? -EPIPE : mk_err_last();
    extract_fds(&m, fds);
    if (!(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
        return n;
    for (size_t i = 0; i < MK_FD_PASSING_MAX; i++)
        mk_fd_close(&fds[i]);
    return -EMSGSIZE;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "server/control.h"

#include <sys/socket.h>

union fd_room {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(sizeof(int))];
};

mk_err mk_control_open(int *master_end, int *worker_end)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
        return mk_err_last();
    *master_end = ends[0];
    *worker_end = ends[1];
    return 0;
}

static void attach_fd(struct msghdr *m, union fd_room *room, int fd)
{
    memset(room, 0, sizeof *room);
    m->msg_control = room;
    m->msg_controllen = sizeof *room;
    struct cmsghdr *c = CMSG_FIRSTHDR(m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
}

mk_err mk_control_send(int end, enum mk_control_kind kind, mk_str where, int fd)
{
    char bytes[1 + MK_CONTROL_TEXT];
    union fd_room room;
    if (where.len >= MK_CONTROL_TEXT)
        return -EMSGSIZE;
    bytes[0] = (char)kind;
    if (where.len)
        memcpy(bytes + 1, where.p, where.len);
    struct iovec v = {.iov_base = bytes, .iov_len = 1 + where.len};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
    if (fd >= 0)
        attach_fd(&m, &room, fd);
    return sendmsg(end, &m, MSG_NOSIGNAL) < 0 ? mk_err_last() : 0;
}

static int detach_fd(struct msghdr *m)
{
    int fd = -1;
    struct cmsghdr *c = CMSG_FIRSTHDR(m);
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
        c->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(&fd, CMSG_DATA(c), sizeof fd);
    return fd;
}

mk_err mk_control_receive(int end, struct mk_control_message *out)
{
    char bytes[1 + MK_CONTROL_TEXT];
    union fd_room room;
    struct iovec v = {.iov_base = bytes, .iov_len = sizeof bytes - 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &room, .msg_controllen = sizeof room};
    ssize_t n = recvmsg(end, &m, MSG_CMSG_CLOEXEC);
    if (n <= 0)
        return n < 0 ? mk_err_last() : -EPIPE;
    out->kind = (enum mk_control_kind)bytes[0];
    memcpy(out->where, bytes + 1, (size_t)n - 1);
    out->where[n - 1] = '\0';
    out->fd = detach_fd(&m);
    return 0;
}

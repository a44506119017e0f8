/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/sock_diag.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

#include "event/stream.h"
#include "os/fd.h"
#include "os/sigpipe.h"

static ssize_t plain_read(struct mk_stream *s, char *buf, size_t cap)
{
    ssize_t n;
    do
        n = recv(s->fd, buf, cap, 0);
    while (n < 0 && errno == EINTR);
    return n < 0 ? mk_err_last() : n;
}

static ssize_t plain_write(struct mk_stream *s, mk_str bytes, bool more)
{
    ssize_t n = send(s->fd, bytes.p, bytes.len, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
    return n < 0 ? mk_err_last() : n;
}

ssize_t mk_stream_plain_send_file(struct mk_stream *s, int file_fd, uint64_t offset, size_t len)
{
    off_t at = (off_t)offset;
    struct mk_sigpipe_guard quiet;
    mk_sigpipe_block(&quiet);
    ssize_t n = sendfile(s->fd, file_fd, &at, len);
    mk_sigpipe_restore(&quiet, n);
    return n < 0 ? mk_err_last() : n;
}

static size_t plain_room(const struct mk_stream *s)
{
    uint32_t info[SK_MEMINFO_VARS] = {0};
    socklen_t size = sizeof info;
    if (getsockopt(s->fd, SOL_SOCKET, SO_MEMINFO, info, &size) ||
        size <= sizeof *info * SK_MEMINFO_WMEM_QUEUED)
        return 0;
    size_t used = mk_max(info[SK_MEMINFO_WMEM_QUEUED], info[SK_MEMINFO_WMEM_ALLOC]);
    return info[SK_MEMINFO_SNDBUF] > used ? info[SK_MEMINFO_SNDBUF] - used : 0;
}

static void plain_shutdown(struct mk_stream *s)
{
    (void)shutdown(s->fd, SHUT_WR);
}

static void plain_close(struct mk_stream *s)
{
    mk_fd_close(&s->fd);
}

static const struct mk_stream_ops plain_ops = {
    .read = plain_read,
    .write = plain_write,
    .send_file = mk_stream_plain_send_file,
    .room = plain_room,
    .shutdown = plain_shutdown,
    .close = plain_close,
};

void mk_stream_plain_open(struct mk_stream *s, int fd)
{
    *s = (struct mk_stream){.ops = &plain_ops, .fd = fd};
}
